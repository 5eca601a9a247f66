//! Column buffers: what Arrow builders do, and can take back a half-written row.
//!
//! A row is written straight into its columns. When it turns out to belong in quarantine, every
//! column is cut back to the length it had before ([`ColumnBuffer::truncate`]).

use std::sync::Arc;

use arrow::array::NullBufferBuilder;
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, Date32Array, Decimal128Array,
    Float64Array, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray,
    TimestampMillisecondArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// One column, or a part of one.
#[derive(Debug)]
pub(crate) struct ColumnBuffer {
    validity: NullBufferBuilder,
    pub(crate) data: Data,
}

/// The values of a column by their layout.
#[derive(Debug)]
pub(crate) enum Data {
    Boolean(BooleanBufferBuilder),
    /// Also days.
    Int(Vec<i32>),
    /// Also milliseconds.
    Long(Vec<i64>),
    Double(Vec<f64>),
    Decimal(Vec<i128>),
    /// Text and binary.
    Bytes(Bytes),
    List {
        offsets: Vec<i32>,
        child: Box<ColumnBuffer>,
    },
    Map {
        offsets: Vec<i32>,
        keys: Box<ColumnBuffer>,
        values: Box<ColumnBuffer>,
    },
    Struct(Vec<ColumnBuffer>),
}

/// Values of any length, end to end.
#[derive(Debug)]
pub(crate) struct Bytes {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Bytes {
    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.close();
    }

    /// Lets the caller append the bytes of one value.
    pub(crate) fn push_with<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        if let Err(error) = write(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        self.close();
        Ok(())
    }

    fn close(&mut self) {
        self.offsets.push(offset(self.bytes.len()));
    }
}

/// A buffer's length as an Arrow offset. The pipeline hands batches on long before 2 GiB (see
/// [`crate::pipeline::MAX_BATCH_BYTES`]).
pub(crate) fn offset(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

impl ColumnBuffer {
    /// An empty buffer for values of this Arrow type.
    pub(crate) fn new(ty: &DataType) -> Self {
        let bytes = || {
            Data::Bytes(Bytes {
                offsets: vec![0],
                bytes: Vec::new(),
            })
        };
        let data = match ty {
            DataType::Boolean => Data::Boolean(BooleanBufferBuilder::new(0)),
            DataType::Int32 | DataType::Date32 => Data::Int(Vec::new()),
            DataType::Int64 | DataType::Timestamp(..) => Data::Long(Vec::new()),
            DataType::Float64 => Data::Double(Vec::new()),
            DataType::Decimal128(..) => Data::Decimal(Vec::new()),
            DataType::List(element) => Data::List {
                offsets: vec![0],
                child: Box::new(Self::new(element.data_type())),
            },
            DataType::Map(entries, _) => {
                let (keys, values) = entry_types(entries.data_type());
                Data::Map {
                    offsets: vec![0],
                    keys: Box::new(Self::new(keys)),
                    values: Box::new(Self::new(values)),
                }
            }
            DataType::Struct(fields) => Data::Struct(
                fields
                    .iter()
                    .map(|field| Self::new(field.data_type()))
                    .collect(),
            ),
            _ => bytes(),
        };
        Self {
            validity: NullBufferBuilder::new(0),
            data,
        }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.validity.len()
    }

    /// Marks the value that was just pushed into [`Self::data`] as present.
    pub(crate) fn present(&mut self) {
        self.validity.append_non_null();
    }

    /// Appends NULL.
    pub(crate) fn push_null(&mut self) {
        self.validity.append_null();
        match &mut self.data {
            Data::Boolean(values) => values.append(false),
            Data::Int(values) => values.push(0),
            Data::Long(values) => values.push(0),
            Data::Double(values) => values.push(0.0),
            Data::Decimal(values) => values.push(0),
            Data::Bytes(bytes) => bytes.close(),
            Data::List { offsets, child } => offsets.push(offset(child.len())),
            Data::Map { offsets, keys, .. } => offsets.push(offset(keys.len())),
            Data::Struct(children) => children.iter_mut().for_each(Self::push_null),
        }
    }

    /// Appends text or bytes (to a [`Data::Bytes`] column; NULL to any other).
    pub(crate) fn push_bytes(&mut self, value: &[u8]) {
        if let Data::Bytes(bytes) = &mut self.data {
            bytes.push(value);
            self.present();
        } else {
            self.push_null();
        }
    }

    /// Appends text or NULL.
    pub(crate) fn push_text(&mut self, value: Option<&str>) {
        match value {
            Some(text) => self.push_bytes(text.as_bytes()),
            None => self.push_null(),
        }
    }

    /// Cuts the column back to its first `len` values.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        self.validity.truncate(len);
        match &mut self.data {
            Data::Boolean(values) => values.truncate(len),
            Data::Int(values) => values.truncate(len),
            Data::Long(values) => values.truncate(len),
            Data::Double(values) => values.truncate(len),
            Data::Decimal(values) => values.truncate(len),
            Data::Bytes(Bytes { offsets, bytes }) => bytes.truncate(cut(offsets, len)),
            Data::List { offsets, child } => child.truncate(cut(offsets, len)),
            Data::Map {
                offsets,
                keys,
                values,
            } => {
                let entries = cut(offsets, len);
                keys.truncate(entries);
                values.truncate(entries);
            }
            Data::Struct(children) => children.iter_mut().for_each(|child| child.truncate(len)),
        }
    }

    /// The finished Arrow array.
    pub(crate) fn finish(self, ty: &DataType) -> Result<ArrayRef, ArrowError> {
        let Self { validity, data } = self;
        let len = validity.len();
        let nulls = validity.build();
        Ok(match data {
            Data::Boolean(values) => Arc::new(BooleanArray::new(values.build(), nulls)),
            Data::Int(values) if *ty == DataType::Date32 => {
                Arc::new(Date32Array::try_new(values.into(), nulls)?)
            }
            Data::Int(values) => Arc::new(Int32Array::try_new(values.into(), nulls)?),
            Data::Long(values) => match ty {
                DataType::Timestamp(_, zone) => Arc::new(
                    TimestampMillisecondArray::try_new(values.into(), nulls)?
                        .with_timezone_opt(zone.clone()),
                ),
                _ => Arc::new(Int64Array::try_new(values.into(), nulls)?),
            },
            Data::Double(values) => Arc::new(Float64Array::try_new(values.into(), nulls)?),
            Data::Decimal(values) => {
                Arc::new(Decimal128Array::try_new(values.into(), nulls)?.with_data_type(ty.clone()))
            }
            Data::Bytes(Bytes { offsets, bytes }) => {
                let (offsets, bytes) = (finish_offsets(offsets), Buffer::from_vec(bytes));
                if *ty == DataType::Binary {
                    Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
                } else {
                    Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
                }
            }
            Data::List { offsets, child } => finish_list(ty, offsets, *child, nulls)?,
            Data::Map {
                offsets,
                keys,
                values,
            } => finish_map(ty, offsets, *keys, *values, nulls)?,
            Data::Struct(children) => finish_struct(ty, children, len, nulls)?,
        })
    }
}

fn finish_list(
    ty: &DataType,
    offsets: Vec<i32>,
    child: ColumnBuffer,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let DataType::List(element) = ty else {
        return Err(wrong_layout(ty));
    };
    let values = child.finish(element.data_type())?;
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(element),
        finish_offsets(offsets),
        values,
        nulls,
    )?))
}

fn finish_map(
    ty: &DataType,
    offsets: Vec<i32>,
    keys: ColumnBuffer,
    values: ColumnBuffer,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let DataType::Map(entries, sorted) = ty else {
        return Err(wrong_layout(ty));
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(wrong_layout(ty));
    };
    let (key_type, value_type) = entry_types(entries.data_type());
    let columns = vec![keys.finish(key_type)?, values.finish(value_type)?];
    let structs = StructArray::try_new(fields.clone(), columns, None)?;
    let offsets = finish_offsets(offsets);
    Ok(Arc::new(MapArray::try_new(
        Arc::clone(entries),
        offsets,
        structs,
        nulls,
        *sorted,
    )?))
}

fn finish_struct(
    ty: &DataType,
    children: Vec<ColumnBuffer>,
    len: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let DataType::Struct(fields) = ty else {
        return Err(wrong_layout(ty));
    };
    let columns = children
        .into_iter()
        .zip(fields)
        .map(|(child, field)| child.finish(field.data_type()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(
        fields.clone(),
        columns,
        nulls,
        len,
    )?))
}

fn wrong_layout(ty: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("a column buffer does not have the layout of {ty}"))
}

fn finish_offsets(offsets: Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(offsets))
}

/// Cuts offsets back to `len` values and gives the length of what they point into.
fn cut(offsets: &mut Vec<i32>, len: usize) -> usize {
    offsets.truncate(len + 1);
    offsets
        .last()
        .and_then(|&last| usize::try_from(last).ok())
        .unwrap_or(0)
}

fn entry_types(entries: &DataType) -> (&DataType, &DataType) {
    match entries {
        DataType::Struct(fields) => match fields.as_ref() {
            [key, value] => (key.data_type(), value.data_type()),
            _ => (&DataType::Utf8, &DataType::Utf8),
        },
        _ => (&DataType::Utf8, &DataType::Utf8),
    }
}
