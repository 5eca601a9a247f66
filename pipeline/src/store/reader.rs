//! Reading an object as a stream of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures::Stream;
use futures::stream::BoxStream;
use tokio::io::{AsyncRead, ReadBuf};

/// An object opened for reading.
pub struct ObjectReader {
    size: u64,
    inner: Pin<Box<dyn AsyncRead + Send>>,
}

impl ObjectReader {
    pub(super) fn new(size: u64, inner: impl AsyncRead + Send + 'static) -> Self {
        Self {
            size,
            inner: Box::pin(inner),
        }
    }

    /// Size of the object in bytes when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl std::fmt::Debug for ObjectReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectReader")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl AsyncRead for ObjectReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_read(context, buffer)
    }
}

/// Chunks that arrive one after another, read as one body.
pub(super) struct ChunkReader {
    chunks: BoxStream<'static, io::Result<Bytes>>,
    current: Bytes,
}

impl ChunkReader {
    pub(super) fn new(chunks: BoxStream<'static, io::Result<Bytes>>) -> Self {
        Self {
            chunks,
            current: Bytes::new(),
        }
    }
}

impl AsyncRead for ChunkReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.current.is_empty() {
            match ready!(Pin::new(&mut self.chunks).poll_next(context)) {
                Some(Ok(chunk)) => self.current = chunk,
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = buffer.remaining().min(self.current.len());
        buffer.put_slice(self.current.get(..length).unwrap_or_default());
        self.current.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// The bytes, if they are as many as were asked for.
pub(super) fn exact(bytes: Bytes, wanted: u64) -> Result<Bytes, String> {
    let got = bytes.len();
    if u64::try_from(got).is_ok_and(|got| got == wanted) {
        Ok(bytes)
    } else {
        Err(format!(
            "{wanted} bytes were asked for, but the object ends after {got} of them"
        ))
    }
}
