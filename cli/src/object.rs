//! Parquet objects of a store, read by range: footers first, then only the columns and row groups
//! that are needed.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use dynalake_pipeline::store::{ObjectMeta, Store};
use futures::stream::{self, StreamExt, TryStreamExt};
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicate, ArrowReaderMetadata, ArrowReaderOptions, RowFilter,
};
use parquet::arrow::push_decoder::ParquetPushDecoderBuilder;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder};

use crate::exit::{Failure, Outcome};

/// Footers read at the same time.
const CONCURRENCY: usize = 16;
/// Bytes read from the end of an object at once: nearly every footer fits.
const FOOTER_GUESS: u64 = 32 * 1024;

/// An object and its footer.
#[derive(Debug, Clone)]
pub(crate) struct Footer {
    /// Key in its store.
    pub(crate) key: String,
    /// Bytes of the whole object.
    pub(crate) size: u64,
    /// What the footer says.
    pub(crate) metadata: Arc<ParquetMetaData>,
}

/// Whether a key is that of a Parquet object.
pub(crate) fn is_parquet(key: &str) -> bool {
    key.ends_with(".parquet")
}

/// Reads an object's footer.
pub(crate) async fn footer(store: &Store, key: &str, size: u64) -> Outcome<Footer> {
    let broken = |error: ParquetError| {
        Failure::findings(format!("`{key}` is not a whole Parquet object: {error}"))
            .hint("it is unreadable for query engines as well: restore it, or remove it")
    };
    let mut decoder = ParquetMetaDataPushDecoder::try_new(size)
        .map_err(broken)?
        .with_page_index_policy(PageIndexPolicy::Skip);
    let tail = size.saturating_sub(FOOTER_GUESS)..size;
    let mut wanted = Vec::from([tail]);
    loop {
        let data = ranges(store, key, &wanted).await?;
        decoder.push_ranges(wanted, data).map_err(broken)?;
        match decoder.try_decode().map_err(broken)? {
            DecodeResult::NeedsData(more) => wanted = more,
            DecodeResult::Data(metadata) => {
                return Ok(Footer {
                    key: key.to_owned(),
                    size,
                    metadata: Arc::new(metadata),
                });
            }
            DecodeResult::Finished => {
                return Err(broken(ParquetError::EOF("no footer".to_owned())));
            }
        }
    }
}

/// Reads the footers of many objects, several at a time, in the order given.
pub(crate) async fn footers(store: &Store, objects: &[&ObjectMeta]) -> Outcome<Vec<Footer>> {
    stream::iter(
        objects
            .iter()
            .map(|object| footer(store, &object.key, object.size)),
    )
    .buffered(CONCURRENCY)
    .try_collect()
    .await
}

/// What to read of an object.
pub(crate) struct Selection {
    /// Top-level columns, by index.
    pub(crate) columns: Vec<usize>,
    /// Row groups, by index.
    pub(crate) row_groups: Vec<usize>,
    /// Row filters, applied in this order before the other columns are read.
    pub(crate) filters: Vec<Box<dyn ArrowPredicate>>,
}

/// Reads the selected rows of an object, batch by batch, until `each` breaks.
pub(crate) async fn read(
    store: &Store,
    footer: &Footer,
    selection: Selection,
    mut each: impl FnMut(RecordBatch) -> Outcome<ControlFlow<()>>,
) -> Outcome<ControlFlow<()>> {
    let key = footer.key.as_str();
    let broken = |error: ParquetError| {
        Failure::findings(format!("cannot read `{key}`: {error}"))
            .hint(format!("look at it with `dynalake inspect`: `{key}`"))
    };
    let metadata =
        ArrowReaderMetadata::try_new(Arc::clone(&footer.metadata), ArrowReaderOptions::default())
            .map_err(broken)?;
    let descriptor = footer.metadata.file_metadata().schema_descr();
    let mut decoder = ParquetPushDecoderBuilder::new_with_metadata(metadata)
        .with_projection(ProjectionMask::roots(descriptor, selection.columns))
        .with_row_groups(selection.row_groups)
        .with_row_filter(RowFilter::new(selection.filters))
        .build()
        .map_err(broken)?;
    loop {
        match decoder.try_decode().map_err(broken)? {
            DecodeResult::NeedsData(wanted) => {
                let data = ranges(store, key, &wanted).await?;
                decoder.push_ranges(wanted, data).map_err(broken)?;
            }
            DecodeResult::Data(batch) => {
                if each(batch)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            DecodeResult::Finished => return Ok(ControlFlow::Continue(())),
        }
    }
}

async fn ranges(store: &Store, key: &str, wanted: &[Range<u64>]) -> Outcome<Vec<Bytes>> {
    stream::iter(
        wanted
            .iter()
            .cloned()
            .map(|range| store.get_range(key, range)),
    )
    .buffered(CONCURRENCY)
    .try_collect()
    .await
    .map_err(Failure::from)
}
