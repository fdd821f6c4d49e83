//! A small HTTP server (RFC 9112): `GET /status` and `GET /metrics`, one request per connection. Each
//! connection has a thread, so that a slow reader costs only itself.

use super::Board;
use super::metrics;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Connections at the same time; further ones are closed.
const MOST: usize = 16;
/// The longest request in bytes.
const LONGEST: usize = 8 << 10;
/// The time for the whole request, and for the whole answer.
const TIME: Duration = Duration::from_secs(5);
/// Pause after a failed `accept(2)`, such as without free descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A listening socket.
pub trait Listening: Send + 'static {
    /// Its connections.
    type Stream: Stream;

    /// The next connection.
    fn next(&self) -> io::Result<Self::Stream>;
}

/// A connection.
pub trait Stream: Read + Write + Send + 'static {
    /// Limits the next read and write.
    fn limit(&self, time: Duration) -> io::Result<()>;
}

impl Listening for TcpListener {
    type Stream = TcpStream;

    fn next(&self) -> io::Result<TcpStream> {
        Ok(self.accept()?.0)
    }
}

impl Stream for TcpStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Listening for UnixListener {
    type Stream = UnixStream;

    fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept()?.0)
    }
}

impl Stream for UnixStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// Serves until the process ends. Fails if no thread can start.
pub fn serve(listener: impl Listening, board: Arc<Board>) -> io::Result<()> {
    let open = Arc::new(AtomicUsize::new(0));
    let accept = move || {
        loop {
            let Ok(stream) = listener.next() else {
                std::thread::sleep(PAUSE);
                continue;
            };
            if open.load(Ordering::SeqCst) >= MOST {
                continue;
            }
            open.fetch_add(1, Ordering::SeqCst);
            let (of_thread, board) = (Counted(open.clone()), board.clone());
            // Without a thread the connection is closed.
            let _ = Builder::new().name("status".to_owned()).spawn(move || {
                let _counted = of_thread;
                let _ = answer(stream, &board);
            });
        }
    };
    Builder::new().name("control".to_owned()).spawn(accept)?;
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
fn answer(mut stream: impl Stream, board: &Board) -> io::Result<()> {
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
    let until = Instant::now() + TIME;
    let bytes = [head.as_bytes(), body.as_bytes()].concat();
    let mut left = &bytes[..];
    while !left.is_empty() {
        limit(&stream, until)?;
        let written = stream.write(left)?;
        left = &left[written..];
    }
    stream.flush()
}

/// A request.
enum Request {
    Status,
    Metrics,
    Other,
}

/// Reads a request; `None` if it is malformed.
fn request(stream: &mut impl Stream) -> io::Result<Option<Request>> {
    let (mut bytes, until) = (Vec::new(), Instant::now() + TIME);
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
        limit(stream, until)?;
        let mut part = [0; 1024];
        match stream.read(&mut part)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&part[..count]),
        }
    }
}

/// Limits the next read and write to the time that is left.
fn limit(stream: &impl Stream, until: Instant) -> io::Result<()> {
    match until.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => stream.limit(left),
        _ => Err(io::ErrorKind::TimedOut.into()),
    }
}
