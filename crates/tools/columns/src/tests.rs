use crate::*;
use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use std::io;
use std::sync::{Arc, Mutex};

const SCHEMA: Schema = &[
    Column::text("job"),
    Column::unsigned("at", "ns"),
    Column::signed("change", ""),
    Column::optional("end", "ns"),
];

type Row = (String, u64, i64, Option<u64>);

/// A sink of limited size whose bytes stay readable.
#[derive(Clone, Debug, Default)]
struct Memory {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Option<usize>,
}

impl Memory {
    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }
}

impl io::Write for Memory {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap();
        if self.room.is_some_and(|room| bytes.len() + more.len() > room) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        bytes.extend(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn batch(rows: &[Row]) -> Batch {
    let mut batch = Batch::new(SCHEMA);
    for (job, at, change, end) in rows {
        let end = Value::Optional(*end);
        batch.push(&[Value::Text(job), Value::Unsigned(*at), Value::Signed(*change), end]);
    }
    batch
}

fn parquet_of(batches: &[Batch]) -> Vec<u8> {
    let memory = Memory::default();
    let mut file = Parquet::new(memory.clone(), SCHEMA).unwrap();
    batches.iter().for_each(|batch| file.write(batch).unwrap());
    file.finish(&[("serial", "FL-1".to_owned())]).unwrap();
    memory.bytes()
}

fn read(bytes: Vec<u8>) -> Vec<Row> {
    let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    let row = |row: parquet::record::Row| {
        let cells: Vec<Field> = row.into_columns().into_iter().map(|(_, field)| field).collect();
        let [Field::Str(job), Field::ULong(at), Field::Long(change), end] = &cells[..] else {
            panic!("{cells:?}");
        };
        let end = match end {
            Field::ULong(end) => Some(*end),
            Field::Null => None,
            other => panic!("{other:?}"),
        };
        (job.clone(), *at, *change, end)
    };
    reader.get_row_iter(None).unwrap().map(|found| row(found.unwrap())).collect()
}

#[test]
fn csv_has_a_header_and_quotes_separators() {
    let memory = Memory::default();
    let mut csv = Csv::new(memory.clone(), SCHEMA).unwrap();
    let row = |job: &str, change, end| (job.to_owned(), u64::MAX, change, end);
    let rows = [row("fill", -1, None), row("a,b", 0, Some(0)), row("say \"so\"", 1, Some(7))];
    csv.write(&batch(&rows)).unwrap();
    let text = String::from_utf8(memory.bytes()).unwrap();
    let wanted = "job,at,change,end\nfill,18446744073709551615,-1,\n\
        \"a,b\",18446744073709551615,0,0\n\"say \"\"so\"\"\",18446744073709551615,1,7\n";
    assert_eq!(text, wanted);
}

#[test]
fn metadata_have_units_and_keys_of_the_caller() {
    let bytes = Bytes::from(parquet_of(&[batch(&[("a".to_owned(), 1, 2, None)])]));
    let reader = SerializedFileReader::new(bytes).unwrap();
    let file = reader.metadata().file_metadata();
    let pairs: Vec<_> = file.key_value_metadata().unwrap().iter().collect();
    let pairs: Vec<_> =
        pairs.iter().map(|pair| (&*pair.key, pair.value.as_deref().unwrap())).collect();
    assert_eq!(pairs, [("serial", "FL-1"), ("unit.at", "ns"), ("unit.end", "ns")]);
}

#[test]
fn memory_is_bounded_by_row_groups() {
    let rows: Vec<Row> = (0..50_000)
        .map(|n| (format!("job{}", n % 3), n, -(n as i64), (n % 2 == 0).then_some(n)))
        .collect();
    let bytes = parquet_of(&vec![batch(&rows); 7]);
    // Each of 350,000 rows needs less than one byte: 2 bits for the index of the word and 1 bit for
    // the definition level. The numbers have constant differences, which need almost no space.
    assert!(bytes.len() < 350_000, "{}", bytes.len());
    let reader = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
    let groups: Vec<i64> =
        reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    // A group is written with the batch that fills it: 3 × 50,000 are more than 131,072.
    assert_eq!(groups, [150_000, 150_000, 50_000]);
    let found = read(bytes);
    assert_eq!((found.len(), &found[100_000..100_003]), (350_000, &rows[..3]));
}

#[test]
fn a_cut_file_is_refused() {
    let whole = parquet_of(&[batch(&[("a".to_owned(), 1, 2, None)])]);
    for length in [0, 4, whole.len() / 2, whole.len() - 1] {
        let cut = Bytes::from(whole[..length].to_vec());
        assert!(SerializedFileReader::new(cut).is_err(), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn full_disk_is_an_error_of_the_sink() {
    let memory = Memory { room: Some(10), ..Memory::default() };
    let mut file = Parquet::new(memory.clone(), SCHEMA).unwrap();
    file.write(&batch(&[("a".to_owned(), 1, 2, None)])).unwrap();
    let error = file.finish(&[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    let none = Memory { room: Some(10), ..Memory::default() };
    assert_eq!(Csv::new(none, SCHEMA).unwrap_err().kind(), io::ErrorKind::StorageFull);
}

/// Writes a file with a column for each type of numbers, compressed as other programs do.
fn foreign_parquet() -> std::fs::File {
    use parquet::basic::Compression;
    use parquet::data_type::{DoubleType, Int32Type, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    let schema = "message s { required int64 t (TIMESTAMP(NANOS, true)); required double d; \
                  optional int32 n; required binary b; }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let snappy = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = tempfile::tempfile().unwrap();
    let sink = file.try_clone().unwrap();
    let mut writer = SerializedFileWriter::new(sink, schema, Arc::new(snappy)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let times = [1_700_000_000_000_000_001, 5];
    column.typed::<Int64Type>().write_batch(&times, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[1.5e-7, 20.0], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[-3], Some(&[1, 0]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let texts = ["x", "y"].map(parquet::data_type::ByteArray::from);
    column.typed::<parquet::data_type::ByteArrayType>().write_batch(&texts, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    io::Seek::rewind(&mut file).unwrap();
    file
}

#[test]
fn numbers_of_other_programs_are_read_as_texts() {
    let rows = Rows::open(foreign_parquet()).unwrap();
    assert_eq!(rows.names, ["t", "d", "n", "b"]);
    let found: Vec<_> = rows.of(&[2, 0, 1]).unwrap().map(Result::unwrap).collect();
    let cells = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    assert_eq!(found[0].1, cells(["-3", "1700000000.000000001", "0.00000015"]));
    assert_eq!(found[1], ("row 2".to_owned(), cells(["", "0.000000005", "20"])));
    let texts = Rows::open(foreign_parquet()).unwrap().of(&[3]).err().unwrap();
    assert_eq!(texts.to_string(), "column b has no numbers");
}

#[test]
#[should_panic(expected = "at: Signed(1) in a column of Unsigned")]
fn cell_of_another_type_panics() {
    Batch::new(SCHEMA).push(&[
        Value::Text("a"),
        Value::Signed(1),
        Value::Signed(1),
        Value::Optional(None),
    ]);
}

proptest! {
    #[test]
    fn rows_round_trip(batches in prop::collection::vec(
        prop::collection::vec((".{0,3}", any::<u64>(), any::<i64>(), any::<Option<u64>>()), 0..20), 0..5,
    )) {
        let all: Vec<Batch> = batches.iter().map(|rows| batch(rows)).collect();
        prop_assert_eq!(read(parquet_of(&all)), batches.concat());
    }
}
