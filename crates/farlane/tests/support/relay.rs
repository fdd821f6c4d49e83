//! A TCP relay that records the bytes of both directions.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use analysis::commands::Direction;
use analysis::commands::stream::StreamRange;

/// The bytes of one connection.
#[derive(Debug, Default)]
pub struct Recording {
    /// Bytes from the client that connected to the relay.
    pub down: Vec<u8>,
    /// Bytes from the target.
    pub up: Vec<u8>,
    /// Ranges of both directions, each read at once, with the time since the relay started. The
    /// time is taken before the relay forwards the bytes, so effects are never earlier than their
    /// causes.
    pub ranges: Vec<StreamRange>,
}

/// A running relay, which ends when the value is dropped.
pub struct Relay {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<Vec<Recording>>>,
}

impl Relay {
    /// Listens on loopback, and forwards every connection to `target`.
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen on loopback");
        let address = listener.local_addr().unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&ended);
        let acceptor = thread::spawn(move || {
            let (started, mut connections) = (Instant::now(), Vec::new());
            for client in listener.incoming() {
                if own.load(Ordering::SeqCst) {
                    break;
                }
                // Without a target, the client's connection closes. Without a relay it would fail
                // earlier.
                if let (Ok(client), Ok(target)) = (client, TcpStream::connect(target)) {
                    connections.push(Connection::start([client, target], started).expect("relay"));
                }
            }
            connections.into_iter().map(Connection::finish).collect()
        });
        Self { address, ended, acceptor: Some(acceptor) }
    }

    /// Returns the address to which clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the relay, and returns a recording of each connection.
    pub fn finish(mut self) -> Vec<Recording> {
        self.end()
    }

    fn end(&mut self) -> Vec<Recording> {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts connections, which then ends.
        drop(TcpStream::connect(self.address));
        self.acceptor.take().map_or_else(Vec::new, |acceptor| acceptor.join().expect("a relay"))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

struct Connection {
    streams: [TcpStream; 2],
    pumps: [JoinHandle<()>; 2],
    recording: Arc<Mutex<Recording>>,
}

impl Connection {
    /// Forwards and records both directions until both sides have closed.
    fn start(streams: [TcpStream; 2], started: Instant) -> io::Result<Self> {
        let recording = Arc::new(Mutex::new(Recording::default()));
        let pump = |from: &TcpStream, to: &TcpStream, direction| -> io::Result<_> {
            from.set_nodelay(true)?;
            let (from, to, recording) = (from.try_clone()?, to.try_clone()?, recording.clone());
            Ok(thread::spawn(move || {
                // If one side closes, the relay closes the other connection in this direction.
                let _ = pump(&from, &to, direction, started, &recording);
                let _ = to.shutdown(Shutdown::Write);
                let _ = from.shutdown(Shutdown::Read);
            }))
        };
        let [client, target] = &streams;
        let pumps = [pump(client, target, Direction::Down)?, pump(target, client, Direction::Up)?];
        Ok(Self { streams, pumps, recording })
    }

    fn finish(self) -> Recording {
        // The connections may be closed already.
        self.streams.iter().for_each(|stream| _ = stream.shutdown(Shutdown::Both));
        self.pumps.into_iter().for_each(|pump| pump.join().expect("a pump"));
        std::mem::take(&mut self.recording.lock().unwrap())
    }
}

/// Forwards one direction of a connection.
fn pump(
    mut from: &TcpStream,
    mut to: &TcpStream,
    direction: Direction,
    started: Instant,
    recording: &Mutex<Recording>,
) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        // The time is taken while the lock is held, so that the ranges are in order of time.
        let mut recording = recording.lock().unwrap();
        let at = wire::Instant::from_ns(started.elapsed().as_nanos() as u64);
        let all =
            if direction == Direction::Down { &mut recording.down } else { &mut recording.up };
        let bytes = all.len()..all.len() + read;
        all.extend_from_slice(&buffer[..read]);
        recording.ranges.push(StreamRange { at, direction, bytes });
        drop(recording);
        to.write_all(&buffer[..read])?;
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
    let relay = Relay::start(address);
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
        assert!(recording.down == sent);
        assert!(recording.up == [&sent[..], &sent[..]].concat());
        assert!(recording.ranges.is_sorted_by_key(|range| range.at));
        for (direction, whole) in [(Direction::Down, 1), (Direction::Up, 2)] {
            let ranges = recording.ranges.iter();
            let end = ranges.filter(|range| range.direction == direction).fold(0, |end, range| {
                assert_eq!(range.bytes.start, end);
                range.bytes.end
            });
            assert_eq!(end, whole * sent.len());
        }
    }
}
