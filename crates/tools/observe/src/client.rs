//! Requests for the state of another node.

use crate::document::NodeDocument;
use crate::until::Until;
use credentials::{Credentials, connect_status};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The longest wait for an answer, which a node gives within 2 s.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer in bytes.
const LONGEST: u64 = 16 << 20;

/// Requests the state of a node by its control socket.
///
/// # Errors
/// If no node answers in time, or a program of another kind answers.
pub fn fetch(path: &Path) -> io::Result<NodeDocument> {
    let stream = Until::new(UnixStream::connect(path)?, PATIENCE);
    request(stream, path.display().to_string())
}

/// Requests the state of a node by its address, HOST:PORT.
///
/// # Errors
/// As [`fetch`], or if one side does not accept the key of the other.
pub fn fetch_by_tls(text: &str, keys: &Arc<Credentials>) -> io::Result<NodeDocument> {
    let mut last = io::Error::other("expected HOST:PORT");
    for address in text.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                let stream = Until::new(stream, PATIENCE);
                let tls = connect_status(keys, stream).map_err(io::Error::other)?;
                return request(tls, text.to_owned());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn request(mut stream: impl Read + Write, socket: String) -> io::Result<NodeDocument> {
    stream.write_all(b"GET /status HTTP/1.1\r\nHost: node\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer)?;
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Response::new(&mut headers);
    let other = || io::Error::other("no control socket of farlane");
    let length = match head.parse(&answer).map_err(|_| other())? {
        httparse::Status::Complete(length) if head.code == Some(200) => length,
        _ => return Err(other()),
    };
    let node = serde_json::from_slice(&answer[length..]).map_err(|error| {
        io::Error::other(format!("a document of another version of farlane: {error}"))
    })?;
    Ok(NodeDocument { socket, ..node })
}
