//! A small HTTP server (RFC 9112): `GET /status` and `GET /metrics`, one request per connection. Each
//! connection has a thread, so that a slow reader costs only itself.

use crate::until::Until;
use crate::{Board, metrics};
use credentials::{Credentials, accept_status};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// Connections at the same time; further ones are closed.
const MOST: usize = 16;
/// The longest request in bytes.
const LONGEST: usize = 8 << 10;
/// The time for a request with its answer.
const TIME: Duration = Duration::from_secs(5);
/// Pause after a failed `accept(2)`, such as without free descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the control socket.
///
/// # Errors
/// If no thread can start.
pub fn on_socket(listener: UnixListener, board: Arc<Board>) -> io::Result<()> {
    serve(move || Ok(listener.accept()?.0), move |stream| answer(stream, &board))
}

/// Serves an address; with `keys`, by TLS.
///
/// # Errors
/// If no thread can start.
pub fn on_address(
    listener: TcpListener,
    keys: Option<Arc<Credentials>>,
    board: Arc<Board>,
) -> io::Result<()> {
    let accept = move || Ok(listener.accept()?.0);
    serve(accept, move |stream| {
        let Some(keys) = &keys else { return answer(stream, &board) };
        let mut tls = accept_status(keys, stream).map_err(io::Error::other)?;
        let answered = answer(&mut tls, &board);
        tls.conn.send_close_notify();
        answered.and(tls.flush())
    })
}

/// Serves until the process ends. Fails if no thread can start.
fn serve<S: AsFd + Send + 'static>(
    accept: impl Fn() -> io::Result<S> + Send + 'static,
    answer: impl Fn(Until<S>) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    let (open, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    let serve = move || {
        loop {
            let Ok(stream) = accept() else {
                std::thread::sleep(PAUSE);
                continue;
            };
            if open.load(Ordering::SeqCst) >= MOST {
                continue;
            }
            open.fetch_add(1, Ordering::SeqCst);
            let (counted, answer) = (Counted(open.clone()), answer.clone());
            // Without a thread the connection is closed. Errors concern only the peer.
            let _ = Builder::new().name("status".to_owned()).spawn(move || {
                let _counted = counted;
                let _ = answer(Until::new(stream, TIME));
            });
        }
    };
    Builder::new().name("control".to_owned()).spawn(serve)?;
    Ok(())
}

/// Counts an open connection until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads a request and answers it.
fn answer(mut stream: impl Read + Write, board: &Board) -> io::Result<()> {
    let (status, kind, body) = match request(&mut stream)? {
        Some(Request::Status) => {
            let document = serde_json::to_string(&board.request()).map_err(io::Error::other)?;
            ("200 OK", "application/json", document + "\n")
        }
        Some(Request::Metrics) => ("200 OK", metrics::CONTENT_TYPE, metrics::text(board.request())),
        Some(Request::Other) => {
            ("404 Not Found", "text/plain", "expected GET /status or GET /metrics\n".to_owned())
        }
        None => ("400 Bad Request", "text/plain", "expected an HTTP request\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    stream.flush()
}

/// A request.
enum Request {
    Status,
    Metrics,
    Other,
}

/// Reads a request; `None` if it is malformed.
fn request(stream: &mut impl Read) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(&bytes) {
            Err(_) => return Ok(None),
            Ok(httparse::Status::Complete(_)) => {
                let path = parsed.path.map(|path| path.split('?').next().unwrap_or_default());
                return Ok(Some(match (parsed.method, path) {
                    (Some("GET"), Some("/status")) => Request::Status,
                    (Some("GET"), Some("/metrics")) => Request::Metrics,
                    _ => Request::Other,
                }));
            }
            Ok(httparse::Status::Partial) if bytes.len() >= LONGEST => return Ok(None),
            Ok(httparse::Status::Partial) => {}
        }
        let mut part = [0; 1024];
        match stream.read(&mut part)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&part[..count]),
        }
    }
}
