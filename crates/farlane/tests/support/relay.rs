//! A TCP relay that records what passes, byte for byte, in both directions.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Which way bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From who connected to the relay.
    ToTarget,
    /// Back.
    ToClient,
}

/// Bytes that were read at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// Since the relay started. Taken before the bytes were passed on, so what
    /// they cause is never earlier than they are.
    pub at: Duration,
    /// Which way they went.
    pub direction: Direction,
    /// Which bytes of that direction they are.
    pub bytes: Range<usize>,
}

/// All that passed on one connection.
#[derive(Debug)]
pub struct Recording {
    /// The bytes of [`Direction::ToTarget`].
    pub to_target: Vec<u8>,
    /// The bytes of [`Direction::ToClient`].
    pub to_client: Vec<u8>,
    /// The chunks of both, by time.
    pub chunks: Vec<Chunk>,
}

/// A running relay; ends with its owner.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    target: SocketAddr,
    folder: PathBuf,
    started: Instant,
    ended: AtomicBool,
    connections: Mutex<Vec<Connection>>,
}

struct Connection {
    streams: [TcpStream; 2],
    pumps: Vec<JoinHandle<()>>,
    chunks: Arc<Mutex<Vec<Chunk>>>,
}

impl Relay {
    /// Listens on loopback and passes every connection on to `target`. For
    /// connection N it writes `N.to_target`, `N.to_client` and, when it ends,
    /// `N.index` (nanoseconds, direction, offset, length) into `folder`.
    pub fn start(target: SocketAddr, folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen on loopback");
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target,
            folder: folder.to_owned(),
            started: Instant::now(),
            ended: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let acceptor = thread::spawn(move || {
            for client in listener.incoming() {
                if own.ended.load(Ordering::SeqCst) {
                    return;
                }
                // A target that is not there looks to the client as it would
                // without a relay, only later: closed.
                if let Ok(client) = client
                    && let Ok(target) = TcpStream::connect(own.target)
                {
                    own.join(client, target).expect("relay a connection");
                }
            }
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// Where to connect instead of to the target.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the relay. What passed, a recording for each connection.
    pub fn finish(mut self) -> Vec<Recording> {
        self.end();
        let connections = self.shared.connections.lock().unwrap();
        let read = |number: usize, direction| {
            let path = self.shared.path(number, direction);
            fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        connections
            .iter()
            .enumerate()
            .map(|(number, connection)| Recording {
                to_target: read(number, "to_target"),
                to_client: read(number, "to_client"),
                chunks: connection.chunks.lock().unwrap().clone(),
            })
            .collect()
    }

    fn end(&mut self) {
        let Some(acceptor) = self.acceptor.take() else {
            return;
        };
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then sees that it is over.
        drop(TcpStream::connect(self.address));
        let _ = acceptor.join();
        let mut connections = self.shared.connections.lock().unwrap();
        for (number, connection) in connections.iter_mut().enumerate() {
            connection.close();
            for pump in connection.pumps.drain(..) {
                let _ = pump.join();
            }
            let index = File::create(self.shared.path(number, "index"));
            let written = index.and_then(|mut file| connection.write_index(&mut file));
            if let Err(error) = written {
                eprintln!("index of relay connection {number}: {error}");
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn path(&self, number: usize, kind: &str) -> PathBuf {
        self.folder.join(format!("{number}.{kind}"))
    }

    /// Passes on and records, both ways, until both sides have closed.
    fn join(&self, client: TcpStream, target: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        target.set_nodelay(true)?;
        let mut connections = self.connections.lock().unwrap();
        let number = connections.len();
        let chunks = Arc::new(Mutex::new(Vec::new()));
        let pump = |from: &TcpStream, to: &TcpStream, kind, direction| -> io::Result<_> {
            let mut pump = Pump {
                from: from.try_clone()?,
                to: to.try_clone()?,
                file: File::create(self.path(number, kind))?,
                direction,
                started: self.started,
                chunks: Arc::clone(&chunks),
            };
            Ok(thread::spawn(move || {
                // Either side may go at any time; then the other is told.
                let _ = pump.run();
                let _ = pump.to.shutdown(Shutdown::Write);
                let _ = pump.from.shutdown(Shutdown::Read);
            }))
        };
        let pumps = vec![
            pump(&client, &target, "to_target", Direction::ToTarget)?,
            pump(&target, &client, "to_client", Direction::ToClient)?,
        ];
        connections.push(Connection { streams: [client, target], pumps, chunks });
        Ok(())
    }
}

impl Connection {
    fn close(&self) {
        for stream in &self.streams {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn write_index(&self, file: &mut File) -> io::Result<()> {
        let mut text = String::new();
        for chunk in &*self.chunks.lock().unwrap() {
            use std::fmt::Write;
            let (at, bytes) = (chunk.at.as_nanos(), &chunk.bytes);
            let direction = chunk.direction;
            writeln!(text, "{at} {direction:?} {} {}", bytes.start, bytes.len()).unwrap();
        }
        file.write_all(text.as_bytes())
    }
}

/// One direction of a connection.
struct Pump {
    from: TcpStream,
    to: TcpStream,
    file: File,
    direction: Direction,
    started: Instant,
    chunks: Arc<Mutex<Vec<Chunk>>>,
}

impl Pump {
    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut offset = 0;
        loop {
            let read = self.from.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            self.file.write_all(&buffer[..read])?;
            {
                // Under the lock, so that the chunks are in the order of time.
                let mut chunks = self.chunks.lock().unwrap();
                chunks.push(Chunk {
                    at: self.started.elapsed(),
                    direction: self.direction,
                    bytes: offset..offset + read,
                });
            }
            offset += read;
            self.to.write_all(&buffer[..read])?;
        }
    }
}

#[test]
fn relay_records_both_directions() {
    let target = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = target.local_addr().unwrap();
    let doubling = thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = target.accept().unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            stream.write_all(&[bytes.clone(), bytes].concat()).unwrap();
        }
    });
    let relay = Relay::start(address, &crate::support::folder::kept("relay"));
    let sent: Vec<u8> = (0..1_000_000u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(relay.address()).unwrap();
        stream.write_all(&sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert_eq!(back.len(), 2 * sent.len());
    }
    doubling.join().unwrap();

    let recordings = relay.finish();
    assert_eq!(recordings.len(), 2);
    for recording in recordings {
        assert!(recording.to_target == sent);
        assert!(recording.to_client == [&sent[..], &sent[..]].concat());
        assert!(recording.chunks.is_sorted_by_key(|chunk| chunk.at));
        for (direction, whole) in [(Direction::ToTarget, 1), (Direction::ToClient, 2)] {
            let chunks = recording.chunks.iter();
            let end = chunks.filter(|chunk| chunk.direction == direction).fold(0, |end, chunk| {
                assert_eq!(chunk.bytes.start, end);
                chunk.bytes.end
            });
            assert_eq!(end, whole * sent.len());
        }
    }
}
