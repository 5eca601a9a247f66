//! Layout tests: what is physically in the file, and that nothing is lost in it.

use std::collections::HashMap;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array,
    Int64Array, ListArray, MapArray, NullArray, StructArray, TimestampMillisecondArray,
    new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use bytes::Bytes;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::schema::types::Type;

use PhysicalType::{BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, INT32, INT64};

use super::*;

fn field(name: &str, ty: DataType, id: i32) -> Field {
    nested(name, ty, id, true)
}

fn nested(name: &str, ty: DataType, id: i32, nullable: bool) -> Field {
    Field::new(name, ty, nullable).with_metadata(HashMap::from([(
        PARQUET_FIELD_ID_META_KEY.to_owned(),
        id.to_string(),
    )]))
}

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

fn line_fields() -> Fields {
    Fields::from(vec![
        field("sku", DataType::Utf8, 31),
        field("qty", DataType::Int32, 32),
    ])
}

fn list_type(element: DataType, id: i32) -> DataType {
    DataType::List(Arc::new(field("element", element, id)))
}

fn map_type() -> DataType {
    let entries = Fields::from(vec![
        nested("key", DataType::Utf8, 41, false),
        field("value", DataType::Int64, 42),
    ]);
    DataType::Map(
        Arc::new(Field::new("key_value", DataType::Struct(entries), false)),
        false,
    )
}

/// The row columns, then one column of every type.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        nested("_pk", DataType::Utf8, 1, false),
        field("_sk", DataType::Utf8, 2),
        nested("_op", DataType::Utf8, 3, false),
        field("_reason", DataType::Utf8, 4),
        nested("_at", utc(), 5, false),
        field("_stream", DataType::Utf8, 6),
        field("_seq", DataType::Utf8, 7),
        field("_event_id", DataType::Utf8, 8),
        nested("_source", DataType::Utf8, 9, false),
        nested("_schema", DataType::Int32, 10, false),
        field("_rest", DataType::Utf8, 11),
        field("_old", DataType::Utf8, 12),
        field("paid", DataType::Boolean, 20),
        field("stock", DataType::Int32, 21),
        field("views", DataType::Int64, 22),
        field("score", DataType::Float64, 23),
        field("total", DataType::Decimal128(12, 2), 24),
        field("digit", DataType::Decimal128(1, 0), 25),
        field("huge", DataType::Decimal128(38, 10), 26),
        field("photo", DataType::Binary, 27),
        field("born", DataType::Date32, 28),
        field("placed_at", utc(), 29),
        field("lines", list_type(DataType::Struct(line_fields()), 30), 33),
        field("tags", list_type(DataType::Utf8, 34), 35),
        field("counts", map_type(), 40),
    ]))
}

fn metadata() -> ObjectMetadata {
    ObjectMetadata {
        entity: "order".to_owned(),
        table: "orders".to_owned(),
        schema_version: 3,
    }
}

fn row_columns(keys: &[(&str, Option<&str>, Option<&str>)]) -> Vec<ArrayRef> {
    let text = |values: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(values)) };
    let constant = |value: &'static str| text(vec![Some(value); keys.len()]);
    vec![
        text(keys.iter().map(|key| Some(key.0)).collect()),
        text(keys.iter().map(|key| key.1).collect()),
        constant("INSERT"),
        text(vec![None; keys.len()]),
        Arc::new(
            TimestampMillisecondArray::from(vec![1_795_003_600_123; keys.len()])
                .with_timezone("UTC"),
        ),
        constant("2026-11-01T00:00:00.000"),
        text(keys.iter().map(|key| key.2).collect()),
        constant("0cc175b9c0f1b6a831c399e269772661"),
        constant("stream"),
        Arc::new(Int32Array::from(vec![3; keys.len()])),
        text(vec![None; keys.len()]),
        text(vec![None; keys.len()]),
    ]
}

/// Three rows: everything filled, everything empty, everything NULL.
fn full_batch() -> RecordBatch {
    let mut columns = row_columns(&[
        ("USER#1", None, Some("0001")),
        ("USER#1", Some("ORDER#1"), Some("0001")),
        ("USER#1", Some("ORDER#1"), Some("0002")),
    ]);
    let lines = StructArray::new(
        line_fields(),
        vec![
            Arc::new(StringArray::from(vec![Some("a"), None])),
            Arc::new(Int32Array::from(vec![Some(1), Some(-2)])),
        ],
        None,
    );
    let nulls = || Some(NullBuffer::from(vec![true, true, false]));
    let DataType::List(line) = list_type(DataType::Struct(line_fields()), 30) else {
        panic!()
    };
    let DataType::List(tag) = list_type(DataType::Utf8, 34) else {
        panic!()
    };
    let DataType::Map(entries, _) = map_type() else {
        panic!()
    };
    let DataType::Struct(entry_fields) = entries.data_type() else {
        panic!()
    };
    let counts = StructArray::new(
        entry_fields.clone(),
        vec![
            Arc::new(StringArray::from(vec!["x", "y"])),
            Arc::new(Int64Array::from(vec![Some(1), None])),
        ],
        None,
    );
    let typed: [ArrayRef; 13] = [
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
        Arc::new(Int32Array::from(vec![Some(i32::MAX), Some(0), None])),
        Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(0), None])),
        Arc::new(Float64Array::from(vec![Some(0.1), Some(0.0), None])),
        decimal(vec![Some(1_250), Some(0), None], 12, 2),
        decimal(vec![Some(9), Some(0), None], 1, 0),
        decimal(vec![Some(10_i128.pow(38) - 1), Some(0), None], 38, 10),
        Arc::new(BinaryArray::from(vec![
            Some(&b"\x00\xff"[..]),
            Some(b""),
            None,
        ])),
        Arc::new(Date32Array::from(vec![Some(20_000), Some(0), None])),
        Arc::new(
            TimestampMillisecondArray::from(vec![Some(-1), Some(0), None]).with_timezone("UTC"),
        ),
        Arc::new(ListArray::new(
            line,
            OffsetBuffer::new(vec![0, 2, 2, 2].into()),
            Arc::new(lines),
            nulls(),
        )),
        Arc::new(ListArray::new(
            tag,
            OffsetBuffer::new(vec![0, 2, 2, 2].into()),
            Arc::new(StringArray::from(vec![Some(""), None])),
            nulls(),
        )),
        Arc::new(MapArray::new(
            entries,
            OffsetBuffer::new(vec![0, 2, 2, 2].into()),
            counts,
            nulls(),
            false,
        )),
    ];
    columns.extend(typed);
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn decimal(values: Vec<Option<i128>>, precision: u8, scale: i8) -> ArrayRef {
    let array = Decimal128Array::from(values);
    Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
}

fn null_batch(rows: usize) -> RecordBatch {
    let keys: Vec<_> = (0..rows).map(|_| ("USER#1", None, None)).collect();
    let mut columns = row_columns(&keys);
    for field in schema().fields().iter().skip(columns.len()) {
        columns.push(new_null_array(field.data_type(), rows));
    }
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn encode(batches: &[RecordBatch]) -> (Bytes, ObjectStats) {
    let mut writer = ObjectWriter::with_schema(schema(), &metadata(), Vec::new()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    let (bytes, stats) = writer.finish().unwrap();
    (bytes.into(), stats)
}

fn encode_one(batch: &RecordBatch) -> Result<Vec<u8>, EncodeError> {
    let mut writer = ObjectWriter::with_schema(schema(), &metadata(), Vec::new())?;
    writer.write(batch)?;
    Ok(writer.finish()?.0)
}

fn footer(bytes: &Bytes) -> ParquetMetaData {
    ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(bytes)
        .unwrap()
}

fn read(bytes: &Bytes) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}

fn node<'a>(metadata: &'a ParquetMetaData, path: &[&str]) -> &'a Type {
    let mut node = metadata.file_metadata().schema();
    for name in path {
        node = node
            .get_fields()
            .iter()
            .find(|child| child.name() == *name)
            .unwrap();
    }
    node
}

#[test]
fn every_type_comes_back_as_it_was() {
    let batch = full_batch();
    let (bytes, stats) = encode(std::slice::from_ref(&batch));
    assert_eq!(
        stats,
        ObjectStats {
            rows: 3,
            row_groups: 1
        }
    );
    let back = read(&bytes);
    assert_eq!(back.len(), 1);
    assert_eq!(back[0].num_columns(), batch.num_columns());
    for (index, column) in batch.columns().iter().enumerate() {
        // The reader's nested fields carry other metadata; the values decide.
        let theirs = cast(back[0].column(index), column.data_type()).unwrap();
        assert_eq!(&theirs, column, "{}", batch.schema().field(index).name());
    }
}

#[test]
fn columns_have_the_declared_physical_and_logical_types() {
    let metadata = footer(&encode(&[full_batch()]).0);
    let leaf = |path: &[&str]| {
        let Type::PrimitiveType {
            basic_info,
            physical_type,
            ..
        } = node(&metadata, path)
        else {
            panic!("{path:?} is a group")
        };
        (
            *physical_type,
            basic_info.logical_type_ref().cloned(),
            basic_info.repetition(),
        )
    };
    let text = Some(LogicalType::String);
    let millis = Some(LogicalType::timestamp(
        true,
        parquet::basic::TimeUnit::MILLIS,
    ));
    let (optional, required) = (Repetition::OPTIONAL, Repetition::REQUIRED);
    assert_eq!(leaf(&["_pk"]), (BYTE_ARRAY, text.clone(), required));
    assert_eq!(leaf(&["_sk"]), (BYTE_ARRAY, text.clone(), optional));
    assert_eq!(leaf(&["_schema"]), (INT32, None, required));
    assert_eq!(leaf(&["paid"]), (BOOLEAN, None, optional));
    assert_eq!(leaf(&["stock"]), (INT32, None, optional));
    assert_eq!(leaf(&["views"]), (INT64, None, optional));
    assert_eq!(leaf(&["score"]), (DOUBLE, None, optional));
    assert_eq!(leaf(&["photo"]), (BYTE_ARRAY, None, optional));
    assert_eq!(leaf(&["born"]), (INT32, Some(LogicalType::Date), optional));
    for (name, repetition) in [("_at", required), ("placed_at", optional)] {
        assert_eq!(leaf(&[name]), (INT64, millis.clone(), repetition));
    }
    for (name, physical, precision, scale) in [
        ("total", INT64, 12, 2),
        ("huge", FIXED_LEN_BYTE_ARRAY, 38, 10),
    ] {
        let decimal = Some(LogicalType::decimal(scale, precision));
        assert_eq!(leaf(&[name]), (physical, decimal, optional));
    }
    // One digit is a special case of the Parquet library; the annotation is what readers go by.
    assert_eq!(leaf(&["digit"]).1, Some(LogicalType::decimal(0, 1)));
    // No column carries an annotation that Athena cannot read.
    for column in metadata.file_metadata().schema_descr().columns() {
        assert!(!matches!(
            column.converted_type(),
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
                | ConvertedType::TIMESTAMP_MICROS
        ));
    }
}

#[test]
fn lists_and_maps_have_the_names_of_the_format() {
    let metadata = footer(&encode(&[full_batch()]).0);
    let repetition = |path: &[&str]| node(&metadata, path).get_basic_info().repetition();
    let lines = node(&metadata, &["lines"]).get_basic_info();
    assert_eq!(lines.logical_type_ref(), Some(&LogicalType::List));
    assert_eq!(repetition(&["lines", "list"]), Repetition::REPEATED);
    assert_eq!(
        repetition(&["lines", "list", "element"]),
        Repetition::OPTIONAL
    );
    assert_eq!(
        repetition(&["lines", "list", "element", "sku"]),
        Repetition::OPTIONAL
    );
    assert_eq!(
        repetition(&["tags", "list", "element"]),
        Repetition::OPTIONAL
    );
    let counts = node(&metadata, &["counts"]).get_basic_info();
    assert_eq!(counts.logical_type_ref(), Some(&LogicalType::Map));
    assert_eq!(repetition(&["counts", "key_value"]), Repetition::REPEATED);
    assert_eq!(
        repetition(&["counts", "key_value", "key"]),
        Repetition::REQUIRED
    );
    assert_eq!(
        repetition(&["counts", "key_value", "value"]),
        Repetition::OPTIONAL
    );
}

#[test]
fn field_ids_are_those_of_the_schema_at_every_depth() {
    let metadata = footer(&encode(&[full_batch()]).0);
    let id = |path: &[&str]| node(&metadata, path).get_basic_info().id();
    for (path, expected) in [
        (&["_pk"][..], 1),
        (&["_old"], 12),
        (&["total"], 24),
        (&["lines"], 33),
        (&["lines", "list", "element"], 30),
        (&["lines", "list", "element", "qty"], 32),
        (&["tags", "list", "element"], 34),
        (&["counts"], 40),
        (&["counts", "key_value", "key"], 41),
        (&["counts", "key_value", "value"], 42),
    ] {
        assert_eq!(id(path), expected, "{path:?}");
    }
}

#[test]
fn footer_names_entity_table_version_and_writer_and_nothing_else() {
    let metadata = footer(&encode(&[full_batch()]).0);
    let file = metadata.file_metadata();
    assert_eq!(file.created_by(), Some(properties::CREATED_BY));
    assert_eq!(file.version(), 1);
    let pairs: Vec<(&str, Option<&str>)> = file
        .key_value_metadata()
        .unwrap()
        .iter()
        .map(|pair| (pair.key.as_str(), pair.value.as_deref()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("dynalake.entity", Some("order")),
            ("dynalake.table", Some("orders")),
            ("dynalake.schema_version", Some("3")),
            ("dynalake.writer", Some(env!("CARGO_PKG_VERSION"))),
        ]
    );
}

#[test]
fn row_groups_are_batches_and_say_how_they_are_sorted() {
    let (bytes, stats) = encode(&[full_batch(), null_batch(2), null_batch(0)]);
    assert_eq!(
        stats,
        ObjectStats {
            rows: 5,
            row_groups: 2
        }
    );
    let metadata = footer(&bytes);
    let rows: Vec<i64> = metadata
        .row_groups()
        .iter()
        .map(RowGroupMetaData::num_rows)
        .collect();
    assert_eq!(rows, [3, 2]);
    for group in metadata.row_groups() {
        let sorted: Vec<(i32, bool, bool)> = group
            .sorting_columns()
            .unwrap()
            .iter()
            .map(|column| (column.column_idx, column.descending, column.nulls_first))
            .collect();
        assert_eq!(
            sorted,
            [(0, false, true), (1, false, true), (6, false, true)]
        );
        for column in group.columns() {
            assert!(matches!(column.compression(), Compression::ZSTD(_)));
            assert_eq!(column.bloom_filter_offset(), None);
            assert!(column.statistics().is_some(), "{}", column.column_path());
            assert!(column.column_index_offset().is_some());
            assert!(column.offset_index_offset().is_some());
        }
    }
}

#[test]
fn dictionaries_are_where_values_repeat() {
    let metadata = footer(&encode(&[full_batch()]).0);
    let group = metadata.row_group(0);
    let dictionary = |name: &str| {
        let column = group
            .columns()
            .iter()
            .find(|column| column.column_path().string() == name);
        column.unwrap().dictionary_page_offset().is_some()
    };
    for name in properties::WITHOUT_DICTIONARY {
        assert!(!dictionary(name), "{name}");
    }
    for name in [
        "_op",
        "_source",
        "_stream",
        "_at",
        "_schema",
        "total",
        "lines.list.element.sku",
    ] {
        assert!(dictionary(name), "{name}");
    }
}

#[test]
fn a_batch_of_only_nulls_keeps_the_declared_types() {
    let full = footer(&encode(&[full_batch()]).0);
    let (bytes, _) = encode(&[null_batch(3)]);
    assert_eq!(
        footer(&bytes).file_metadata().schema(),
        full.file_metadata().schema()
    );
    let back = read(&bytes);
    for column in back[0].columns().iter().skip(12) {
        assert_eq!(column.null_count(), 3);
        assert!(column.as_any().downcast_ref::<NullArray>().is_none());
    }
}

#[test]
fn an_object_without_rows_is_still_a_parquet_file_with_its_schema() {
    let (bytes, stats) = encode(&[]);
    assert_eq!(stats, ObjectStats::default());
    assert!(read(&bytes).is_empty());
    let full = footer(&encode(&[full_batch()]).0);
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&bytes)
        .unwrap();
    assert_eq!(
        metadata.file_metadata().schema(),
        full.file_metadata().schema()
    );
}

#[test]
fn the_same_batches_give_the_same_bytes() {
    let first = encode(&[full_batch(), null_batch(2)]).0;
    assert_eq!(first, encode(&[full_batch(), null_batch(2)]).0);
    // Nothing of the Arrow library is in the file.
    let text = String::from_utf8_lossy(&first);
    assert!(!text.contains("ARROW:schema") && !text.contains("parquet-rs"));
}

#[test]
fn rows_out_of_order_are_refused() {
    let ordered = [
        ("A", None, None),
        ("A", Some("1"), Some("1")),
        ("A", Some("1"), Some("2")),
    ];
    let columns = |keys: &[(&str, Option<&str>, Option<&str>)]| {
        let mut columns = row_columns(keys);
        for field in schema().fields().iter().skip(12) {
            columns.push(new_null_array(field.data_type(), keys.len()));
        }
        RecordBatch::try_new(schema(), columns).unwrap()
    };
    assert!(encode_one(&columns(&ordered)).is_ok());
    for (left, right) in [(0, 1), (1, 2), (0, 2)] {
        let mut keys = ordered;
        keys.swap(left, right);
        let error = encode_one(&columns(&keys)).unwrap_err();
        assert!(matches!(error, EncodeError::NotSorted { .. }), "{error}");
        assert!(!error.to_string().contains('#'));
    }
}

#[test]
fn a_batch_of_another_schema_is_refused() {
    let batch = full_batch();
    let fewer = batch.project(&[0, 1, 2, 3, 4, 5, 6]).unwrap();
    let error = encode_one(&fewer).unwrap_err();
    assert!(matches!(error, EncodeError::Schema { .. }), "{error}");
}

#[test]
fn a_schema_without_row_columns_or_with_an_empty_struct_is_an_error() {
    let no_rows = Arc::new(Schema::new(vec![field("a", DataType::Int32, 1)]));
    assert!(ObjectWriter::with_schema(no_rows, &metadata(), Vec::new()).is_err());
    let mut fields = schema().fields().to_vec();
    fields.push(Arc::new(field(
        "empty",
        DataType::Struct(Fields::empty()),
        99,
    )));
    let empty = Arc::new(Schema::new(fields));
    assert!(ObjectWriter::with_schema(empty, &metadata(), Vec::new()).is_err());
}

#[test]
fn a_failing_write_is_an_error_with_its_cause() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("disk is full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = ObjectWriter::with_schema(schema(), &metadata(), Full)
        .and_then(|mut writer| {
            writer.write(&full_batch())?;
            writer.finish()
        })
        .map(|_| ())
        .unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("disk is full"), "{source}");
}

#[test]
fn an_entity_s_object_has_its_schema_and_footer() {
    let columns = vec![dynalake_schemas::Column {
        name: "total".to_owned(),
        source: dynalake_schemas::ColumnSource::Capture(0),
        ty: dynalake_schemas::ColumnType::Decimal {
            precision: 12,
            scale: 2,
        },
        transform: None,
        on_mismatch: dynalake_schemas::OnMismatch::Rest,
        lossless: true,
        field_id: 100,
    }];
    let entity = Entity {
        name: "order".to_owned(),
        table: "orders".to_owned(),
        description: None,
        version: 3,
        matcher: dynalake_schemas::Matcher::default(),
        columns,
        keep_old_image: false,
    };
    let schema = entity.arrow_schema();
    let mut columns = row_columns(&[("USER#1", None, None)]);
    columns.push(new_null_array(schema.field(12).data_type(), 1));
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let bytes = Bytes::from(encode_batch(&entity, &batch).unwrap());
    let file = footer(&bytes);
    assert_eq!(node(&file, &["total"]).get_basic_info().id(), 100);
    let pairs = file.file_metadata().key_value_metadata().unwrap();
    assert_eq!(pairs[1].value.as_deref(), Some("orders"));
    assert_eq!(read(&bytes)[0].num_rows(), 1);
}
