//! A TCP relay that records what passes, byte for byte, in both directions.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use analysis::commands::Direction;
use analysis::commands::stream::StreamRange;

/// All that passed on one connection.
#[derive(Debug, Default)]
pub struct Recording {
    /// What who connected to the relay sent.
    pub down: Vec<u8>,
    /// What came back.
    pub up: Vec<u8>,
    /// What was read at once, of both, by the time since the relay started. It is
    /// taken before the bytes are passed on, so what they cause is never earlier.
    pub ranges: Vec<StreamRange>,
}

/// A running relay; ends with its owner.
pub struct Relay {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<Vec<Recording>>>,
}

impl Relay {
    /// Listens on loopback and passes every connection on to `target`.
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
                // A target that is not there looks to the client as it would
                // without a relay, only later: closed.
                if let (Ok(client), Ok(target)) = (client, TcpStream::connect(target)) {
                    connections.push(Connection::start([client, target], started).expect("relay"));
                }
            }
            connections.into_iter().map(Connection::finish).collect()
        });
        Self { address, ended, acceptor: Some(acceptor) }
    }

    /// Where to connect instead of to the target.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the relay. What passed, a recording for each connection.
    pub fn finish(mut self) -> Vec<Recording> {
        self.end()
    }

    fn end(&mut self) -> Vec<Recording> {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then sees that it is over.
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
    /// Passes on and records, both ways, until both sides have closed.
    fn start(streams: [TcpStream; 2], started: Instant) -> io::Result<Self> {
        let recording = Arc::new(Mutex::new(Recording::default()));
        let pump = |from: &TcpStream, to: &TcpStream, direction| -> io::Result<_> {
            from.set_nodelay(true)?;
            let (from, to, recording) = (from.try_clone()?, to.try_clone()?, recording.clone());
            Ok(thread::spawn(move || {
                // If either side closes, the other connection is shut down.
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
        // They may be closed already.
        self.streams.iter().for_each(|stream| _ = stream.shutdown(Shutdown::Both));
        self.pumps.into_iter().for_each(|pump| pump.join().expect("a pump"));
        std::mem::take(&mut self.recording.lock().unwrap())
    }
}

/// One direction of a connection.
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
        // The time under the lock, so that the ranges are in its order.
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
