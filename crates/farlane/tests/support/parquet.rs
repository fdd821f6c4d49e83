//! Parquet files as text.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the rows of a Parquet file as in CSV, and the keys and values of its metadata.
pub fn rows(path: &Path) -> (Vec<Vec<String>>, BTreeMap<String, String>) {
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let cell = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        number => number.to_string(),
    };
    let row = |row: Row| row.get_column_iter().map(|(_, field)| cell(field)).collect();
    let rows = reader.get_row_iter(None).unwrap().map(|found| row(found.unwrap())).collect();
    let about = reader.metadata().file_metadata().key_value_metadata().unwrap().iter();
    let about = about.map(|pair| (pair.key.clone(), pair.value.clone().unwrap())).collect();
    (rows, about)
}
