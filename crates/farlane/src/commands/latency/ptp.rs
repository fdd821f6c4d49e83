//! Asks ptp4l how far its clock is from its master's, once a second.

use latency::{ClockPoint, ptp};
use live::latency::now;
use report::Failure;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where ptp4l listens (ptp4l(8), `uds_address` and `uds_ro_address`): the first for root alone.
const PATHS: [&str; 2] = ["/var/run/ptp4l", "/var/run/ptp4lro"];
/// How long ptp4l may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// Answers are asked for so often.
const PERIOD: Duration = Duration::from_secs(1);
/// Points that are kept: eleven days.
const MOST: usize = 1_000_000;

/// A thread that asks.
pub struct Follower {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<ClockPoint>>,
}

impl Follower {
    /// Asks once, and then every second. Fails if nobody answers.
    pub fn start(path: Option<&Path>, domain: u8) -> Result<Self, Failure> {
        let paths = path.map_or(PATHS.map(PathBuf::from).to_vec(), |path| vec![path.into()]);
        let mut why = String::new();
        for path in &paths {
            let socket = match connect(path) {
                Ok(socket) => socket,
                Err(error) => {
                    why += &format!("; {}: {error}", path.display());
                    continue;
                }
            };
            let Some(first) = ask(&socket, 0, domain) else {
                why += &format!("; {}: no answer in domain {domain}", path.display());
                continue;
            };
            let stop = Arc::new(AtomicBool::new(false));
            let own = stop.clone();
            let thread = std::thread::spawn(move || follow(&socket, domain, first, &own));
            return Ok(Self { stop, thread });
        }
        Err(Failure(format!("ptp4l cannot be asked{why}")))
    }

    /// What it said. At the talker the sign is the other one: the series is of the listener's
    /// clock less the talker's.
    pub fn finish(self, sign: i64) -> Vec<ClockPoint> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let series = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let turned = series.into_iter();
        turned.map(|of| ClockPoint { offset_ns: of.offset_ns * sign, ..of }).collect()
    }
}

fn connect(path: &Path) -> std::io::Result<UnixDatagram> {
    // An address without a file, for the answers.
    let name = format!("farlane-latency-{:016x}", live::random_number());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    socket.connect(path)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// An answer, as a point of the series. The offset is what the servo last measured, and no better
/// known than that: its bound is its size.
fn ask(socket: &UnixDatagram, number: u16, domain: u8) -> Option<ClockPoint> {
    // 0 of the default profile, 1 of gPTP (802.1AS-2020, 10.6.2.2.1).
    for transport_specific in [0, 1] {
        socket.send(&ptp::request(number, domain, transport_specific)).ok()?;
    }
    let mut buffer = [0; 512];
    loop {
        let bytes = socket.recv(&mut buffer).ok()?;
        if let Some(status) = ptp::answer(&buffer[..bytes]) {
            let offset_ns = status.master_offset_ns;
            return Some(ClockPoint {
                at_ns: now(),
                offset_ns,
                bound_ns: offset_ns.unsigned_abs(),
            });
        }
    }
}

fn follow(
    socket: &UnixDatagram,
    domain: u8,
    first: ClockPoint,
    stop: &AtomicBool,
) -> Vec<ClockPoint> {
    let mut series = vec![first];
    for number in 1..MOST {
        std::thread::park_timeout(PERIOD);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        series.extend(ask(socket, number as u16, domain));
    }
    series
}
