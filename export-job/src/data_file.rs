//! One data file of an export: compressed bytes in, lines out, MD5 and counts at the end.
//!
//! Streams: memory is one line and two buffers, whatever the file's size. The MD5 is taken over the
//! compressed bytes as they pass, as the manifest does. A [`Mark`] says where a reader stands, so that
//! another one can go on there.

use std::io::{self, BufRead, BufReader, Read};

use flate2::Crc;
use flate2::bufread::MultiGzDecoder;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

/// Longest line read. An item of 400 KB has at most some 3 MB of JSON (a list of NULLs).
const MAX_LINE: u64 = 16 * 1024 * 1024;
/// Buffer on either side of the decompressor, bytes.
const BUFFER: usize = 256 * 1024;

/// Why a data file cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataFileError {
    /// The place it is read from failed.
    #[error("{0}")]
    Source(io::Error),
    /// There are no compressed bytes.
    #[error("the file has no bytes; even one without items has 20")]
    NoBytes,
    /// The compressed bytes end too early.
    #[error("the gzip data ends too early, {}", place(*line))]
    Truncated { line: u64 },
    /// The compressed bytes are not gzip.
    #[error("not gzip data {}: {message}", place(*line))]
    NotGzip { line: u64, message: String },
    /// No item is as long.
    #[error("line {line} is longer than {} MiB, which no item is", MAX_LINE / 1024 / 1024)]
    LongLine { line: u64 },
}

fn place(line: u64) -> String {
    match line {
        0 => "before its first line".to_owned(),
        line => format!("after line {line}"),
    }
}

/// What was read, once all of it was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    /// MD5 of the compressed bytes.
    pub(crate) md5: [u8; 16],
    /// Compressed bytes.
    pub(crate) bytes: u64,
    /// Lines that are not blank.
    pub(crate) items: u64,
}

/// A place between two lines of a data file, and what lies before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Decompressed bytes before it.
    pub(crate) offset: u64,
    /// Lines before it.
    pub(crate) line: u64,
    /// Lines before it that are not blank.
    pub(crate) items: u64,
    /// CRC-32 of the decompressed bytes before it: tells the same file from another.
    pub(crate) crc: u32,
}

/// Reads the lines of a gzip file.
pub(crate) struct DataFileReader<R: Read> {
    lines: BufReader<MultiGzDecoder<BufReader<Hashed<R>>>>,
    line: Vec<u8>,
    number: u64,
    items: u64,
    offset: u64,
    crc: Crc,
    limit: u64,
}

impl<R: Read> DataFileReader<R> {
    pub(crate) fn new(compressed: R) -> Self {
        let hashed = Hashed {
            inner: compressed,
            md5: Md5::new(),
            bytes: 0,
            failed: false,
        };
        let gunzip = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, hashed));
        Self {
            lines: BufReader::with_capacity(BUFFER, gunzip),
            line: Vec::new(),
            number: 0,
            items: 0,
            offset: 0,
            crc: Crc::new(),
            limit: u64::MAX,
        }
    }

    /// Reads only lines that begin before this many decompressed bytes.
    pub(crate) fn set_limit(&mut self, offset: u64) {
        self.limit = offset;
    }

    /// Goes to a mark of another reader of this file. `false`: what lies before it is not what that
    /// one read, or there is less of it; then this reader is of no use any more.
    pub(crate) fn skip_to(&mut self, mark: &Mark) -> Result<bool, DataFileError> {
        while self.offset < mark.offset {
            let left = usize::try_from(mark.offset - self.offset).unwrap_or(usize::MAX);
            let read = match self.lines.fill_buf() {
                Ok(bytes) => {
                    let bytes = bytes.get(..left).unwrap_or(bytes);
                    self.crc.update(bytes);
                    bytes.len()
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.explain(error)),
            };
            if read == 0 {
                return Ok(false);
            }
            self.lines.consume(read);
            self.offset += count(read);
        }
        self.number = mark.line;
        self.items = mark.items;
        Ok(self.mark() == *mark)
    }

    /// Where the next line begins.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            offset: self.offset,
            line: self.number,
            items: self.items,
            crc: self.crc.sum(),
        }
    }

    /// Whether there is no further line, not even a blank one.
    pub(crate) fn at_end(&mut self) -> Result<bool, DataFileError> {
        loop {
            match self.lines.fill_buf() {
                Ok(bytes) => return Ok(bytes.is_empty()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(error)),
            }
        }
    }

    /// The next line that is not blank, without its line feed, and its number from 1. `None` at the end
    /// of the file or where the limit is reached.
    pub(crate) fn next_line(&mut self) -> Result<Option<(u64, &[u8])>, DataFileError> {
        while self.offset < self.limit {
            self.line.clear();
            let read = (&mut self.lines)
                .take(MAX_LINE + 1)
                .read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| self.explain(error))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.offset += count(read);
            self.crc.update(&self.line);
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
            } else if count(read) > MAX_LINE {
                return Err(DataFileError::LongLine { line: self.number });
            }
            if !self.line.trim_ascii().is_empty() {
                self.items += 1;
                return Ok(Some((self.number, &self.line)));
            }
        }
        Ok(None)
    }

    /// Compressed bytes taken in so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.lines.get_ref().get_ref().get_ref().bytes
    }

    /// The totals, after [`Self::next_line`] gave `None`.
    pub(crate) fn finish(&mut self) -> Result<Totals, DataFileError> {
        let buffered = self.lines.get_mut().get_mut();
        // The decompressor reads to the end of its input, but to be sure of the MD5:
        io::copy(buffered, &mut io::sink()).map_err(DataFileError::Source)?;
        let hashed = buffered.get_ref();
        Ok(Totals {
            md5: hashed.md5.clone().finalize().into(),
            bytes: hashed.bytes,
            items: self.items,
        })
    }

    fn explain(&self, error: io::Error) -> DataFileError {
        let line = self.number;
        if self.lines.get_ref().get_ref().get_ref().failed {
            DataFileError::Source(error)
        } else if self.bytes() == 0 {
            DataFileError::NoBytes
        } else if error.kind() == io::ErrorKind::UnexpectedEof {
            DataFileError::Truncated { line }
        } else {
            DataFileError::NotGzip {
                line,
                message: error.to_string(),
            }
        }
    }
}

/// Takes the MD5 of what passes.
struct Hashed<R> {
    inner: R,
    md5: Md5,
    bytes: u64,
    failed: bool,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self.inner.read(buffer) {
            Ok(read) => read,
            Err(error) => {
                self.failed = error.kind() != io::ErrorKind::Interrupted;
                return Err(error);
            }
        };
        self.md5.update(buffer.get(..read).unwrap_or_default());
        self.bytes += count(read);
        Ok(read)
    }
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read(compressed: &[u8]) -> Result<(Vec<(u64, String)>, Totals), DataFileError> {
        let mut reader = DataFileReader::new(compressed);
        let mut lines = Vec::new();
        while let Some((number, line)) = reader.next_line()? {
            lines.push((number, String::from_utf8(line.to_vec()).unwrap()));
        }
        Ok((lines, reader.finish()?))
    }

    #[test]
    fn lines_are_numbered_and_blank_ones_are_no_items() {
        let file = gzip(b"a\n\n  \nb\nlast without line feed");
        let (lines, totals) = read(&file).unwrap();
        let expected = [(1, "a"), (4, "b"), (5, "last without line feed")];
        assert_eq!(
            lines,
            expected.map(|(number, text)| (number, text.to_owned()))
        );
        assert_eq!(totals.items, 3);
        assert_eq!(usize::try_from(totals.bytes).unwrap(), file.len());
        assert_eq!(totals.md5, <[u8; 16]>::from(Md5::digest(&file)));
    }

    #[test]
    fn a_reader_goes_on_at_the_mark_of_another_one() {
        let file = gzip(b"a\n\nb\nc\n");
        let mut first = DataFileReader::new(file.as_slice());
        let mut marks = vec![first.mark()];
        while first.next_line().unwrap().is_some() {
            marks.push(first.mark());
        }
        let offsets: Vec<u64> = marks.iter().map(|mark| mark.offset).collect();
        assert_eq!(offsets, [0, 2, 5, 7]);
        assert!(first.at_end().unwrap());
        let totals = first.finish().unwrap();
        for mark in &marks {
            let mut other = DataFileReader::new(file.as_slice());
            assert!(other.skip_to(mark).unwrap());
            assert_eq!(other.mark(), *mark);
            while other.next_line().unwrap().is_some() {}
            assert_eq!(other.finish().unwrap(), totals);
        }
        let changed = gzip(b"a\n\nx\nc\n");
        let short = gzip(b"a\n");
        for other in [changed, short] {
            let mut other = DataFileReader::new(other.as_slice());
            assert!(!other.skip_to(&marks[2]).unwrap());
        }
    }

    #[test]
    fn an_empty_member_has_no_lines_and_several_members_are_one_file() {
        assert_eq!(read(&gzip(b"")).unwrap().1.items, 0);
        let two = [gzip(b"a\nb"), gzip(b""), gzip(b"c\nd\n")].concat();
        let (lines, totals) = read(&two).unwrap();
        assert_eq!(
            lines
                .iter()
                .map(|(_, line)| line.as_str())
                .collect::<Vec<_>>(),
            ["a", "bc", "d"]
        );
        assert_eq!(totals.md5, <[u8; 16]>::from(Md5::digest(&two)));
    }

    #[test]
    fn truncated_at_every_byte_is_never_taken_for_whole() {
        let file = gzip(b"{\"Item\":{}}\n{\"Item\":{}}\n");
        for end in 0..file.len() {
            let outcome = read(&file[..end]);
            let expected = match end {
                0 => matches!(outcome, Err(DataFileError::NoBytes)),
                _ => matches!(outcome, Err(DataFileError::Truncated { .. })),
            };
            assert!(expected, "cut at {end}: {outcome:?}");
        }
    }

    #[test]
    fn plain_text_and_trailing_garbage_are_not_gzip() {
        assert!(matches!(
            read(b"{\"Item\":{}}\n"),
            Err(DataFileError::NotGzip { line: 0, .. })
        ));
        let garbage = [gzip(b"a\n"), b"garbage, more than a header".to_vec()].concat();
        assert!(matches!(
            read(&garbage),
            Err(DataFileError::NotGzip { line: 1, .. })
        ));
        let mut flipped = gzip(b"some text that is long enough to matter");
        let crc = flipped.len() - 8;
        flipped[crc] ^= 1;
        assert!(matches!(read(&flipped), Err(DataFileError::NotGzip { .. })));
    }

    #[test]
    fn a_failing_source_is_not_taken_for_damage() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "connection reset",
                ))
            }
        }
        let half = gzip(b"abc")[..15].to_vec();
        let mut reader = DataFileReader::new(half.as_slice().chain(Failing));
        assert!(matches!(reader.next_line(), Err(DataFileError::Source(_))));
    }

    #[test]
    fn lines_of_megabytes_are_read_and_endless_ones_refused() {
        let long = vec![b'x'; 5_000_000];
        assert_eq!(read(&gzip(&long)).unwrap().0[0].1.len(), long.len());
        let endless = vec![b'x'; usize::try_from(MAX_LINE).unwrap() + 1];
        assert!(matches!(
            read(&gzip(&endless)),
            Err(DataFileError::LongLine { line: 1 })
        ));
    }
}
