//! Tables as Arrow record batches.

use arrow_array::builder::StringBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, PrimitiveArray, RecordBatch, RecordBatchIterator,
    UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, Schema};
use columns::{Cells, Kind, TableColumn};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::HashMap;
use std::sync::Arc;

/// A table in memory that Arrow libraries read without copies.
#[pyclass(frozen, module = "farlane._farlane")]
pub struct Table(RecordBatch);

impl Table {
    /// Takes the cells of a table. Only the different texts of a column are copied.
    pub fn new(table: columns::Table) -> Result<Self, ArrowError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for column in table.columns {
            let unit = (!column.unit.is_empty()).then(|| ("unit".to_owned(), column.unit.clone()));
            let (name, is_nullable) = (column.name.clone(), column.kind == Kind::Optional);
            let array = array(column)?;
            let field = Field::new(name, array.data_type().clone(), is_nullable);
            fields.push(field.with_metadata(unit.into_iter().collect::<HashMap<_, _>>()));
            arrays.push(array);
        }
        let version = ("farlane.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let schema = Schema::new_with_metadata(fields, HashMap::from([version]));
        RecordBatch::try_new(Arc::new(schema), arrays).map(Self)
    }
}

fn array(column: TableColumn) -> Result<ArrayRef, ArrowError> {
    Ok(match (column.cells, column.kind) {
        (Cells::Numbers(numbers), Kind::Unsigned) => Arc::new(unsigned(numbers, None)),
        (Cells::Numbers(numbers), _) => Arc::new(Int64Array::from(numbers)),
        (Cells::Optional(cells), _) => {
            let (bits, rows) = (Buffer::from_vec(cells.present), cells.numbers.len());
            let present = NullBuffer::new(BooleanBuffer::new(bits, 0, rows));
            Arc::new(unsigned(cells.numbers, Some(present)))
        }
        (Cells::Texts(texts), _) => {
            let mut words = StringBuilder::new();
            texts.words.iter().for_each(|word| words.append_value(word));
            let rows = texts.cells.len();
            // pandas reads only signed indices.
            let cells = ScalarBuffer::<i32>::new(Buffer::from_vec(texts.cells), 0, rows);
            let cells = PrimitiveArray::<Int32Type>::try_new(cells, None)?;
            Arc::new(DictionaryArray::try_new(cells, Arc::new(words.finish()))?)
        }
    })
}

/// Reads the same 64 bits of each number as an unsigned one.
fn unsigned(numbers: Vec<i64>, present: Option<NullBuffer>) -> UInt64Array {
    let rows = numbers.len();
    UInt64Array::new(ScalarBuffer::new(Buffer::from_vec(numbers), 0, rows), present)
}

#[pymethods]
impl Table {
    /// The rows as a stream of one batch (Arrow PyCapsule interface). Consumers convert types.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let rows = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(rows));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Units of the columns that have one, by name.
    #[getter]
    fn units(&self) -> HashMap<String, String> {
        let unit = |field: &Arc<Field>| {
            Some((field.name().clone(), field.metadata().get("unit")?.clone()))
        };
        self.0.schema().fields().iter().filter_map(unit).collect()
    }
}
