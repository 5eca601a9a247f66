//! As much of HTTP/1.1 (RFC 9112) as the Runtime API and the proxy need, over blocking sockets.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A request or response: its head as it was received, and its body.
#[derive(Debug)]
pub(crate) struct Message {
    /// The first line and the header lines, each without its line end.
    pub(crate) lines: Vec<String>,
    /// The body, decoded where it was chunked.
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// The n-th word of the first line.
    pub(crate) fn word(&self, n: usize) -> &str {
        word(&self.lines, n)
    }
}

pub(crate) fn word(lines: &[String], n: usize) -> &str {
    lines
        .first()
        .and_then(|line| line.split(' ').nth(n))
        .unwrap_or("")
}

/// Value of the first header of this name.
pub(crate) fn header<'a>(lines: &'a [String], name: &str) -> Option<&'a str> {
    lines.iter().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Reads a head; `None` when the peer closed the connection before another message.
pub(crate) fn read_head(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return if lines.is_empty() {
                Ok(None)
            } else {
                Err(broken("head"))
            };
        }
        let line = String::from_utf8(line).map_err(io::Error::other)?;
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            return Ok(Some(lines));
        }
        lines.push(line.to_owned());
    }
}

/// Reads the body that a head announces. `until_close`: a response without length ends with the
/// connection; a request without length has no body.
pub(crate) fn read_body(
    reader: &mut BufReader<TcpStream>,
    head: &[String],
    until_close: bool,
) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if header(head, "transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        read_chunks(reader, &mut body)?;
    } else if let Some(length) = header(head, "content-length") {
        let length: u64 = length.parse().map_err(io::Error::other)?;
        reader.by_ref().take(length).read_to_end(&mut body)?;
        if u64::try_from(body.len()).ok() != Some(length) {
            return Err(broken("body"));
        }
    } else if until_close {
        reader.read_to_end(&mut body)?;
    }
    Ok(body)
}

fn read_chunks(reader: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = line.trim().split(';').next().unwrap_or("");
        let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
        if size == 0 {
            // Trailers, up to an empty line.
            while read_head(reader)?.is_some_and(|trailers| !trailers.is_empty()) {}
            return Ok(());
        }
        let before = body.len();
        reader.by_ref().take(size).read_to_end(body)?;
        if u64::try_from(body.len() - before).ok() != Some(size) {
            return Err(broken("chunk"));
        }
        reader.read_line(&mut String::new())?;
    }
}

/// Reads a whole request; `None` when the peer closed the connection.
pub(crate) fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Message>> {
    let Some(lines) = read_head(reader)? else {
        return Ok(None);
    };
    let body = read_body(reader, &lines, false)?;
    Ok(Some(Message { lines, body }))
}

/// Writes a response with a length.
pub(crate) fn respond(
    stream: &mut TcpStream,
    status: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<()> {
    // One write: a head that comes in pieces waits for the peer's delayed acknowledgements.
    let mut message = Vec::with_capacity(body.len() + 512);
    write!(message, "HTTP/1.1 {status}\r\n")?;
    for (name, value) in headers {
        write!(message, "{name}: {value}\r\n")?;
    }
    write!(message, "content-length: {}\r\n\r\n", body.len())?;
    message.extend_from_slice(body);
    stream.write_all(&message)?;
    stream.flush()
}

fn broken(part: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("the connection ended within a {part}"),
    )
}
