//! The clock error of a run, read from ptp4l and hardware clocks once per second.

use crate::options::{Clock, MachineOptions};
use crate::phc::HardwareClock;
use crate::ptp::Ptp4l;
use latency::phc::{Reading, point};
use latency::{ClockError, ClockPoint, Source};
use linux::time::tai_offset_s;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The interval between two readings.
const PERIOD: Duration = Duration::from_secs(1);
/// The most points of a series: eleven days.
const MOST: usize = 1_000_000;

/// The sources of the clock error during a run.
#[derive(Default)]
pub(crate) struct Clocks {
    ptp4l: Option<Follower>,
    phc: Option<Follower>,
}

impl Clocks {
    /// Starts the sources that the options name. Fails if a source does not answer.
    pub(crate) fn start(machine: &MachineOptions) -> io::Result<Self> {
        let mut clocks = Self::default();
        for clock in &machine.clocks {
            match clock {
                Clock::Ptp4l(path) => {
                    let mut ptp4l = Ptp4l::find(path.as_deref(), machine.ptp_domain)?;
                    clocks.ptp4l = Some(Follower::start(move || ptp4l.ask()));
                }
                Clock::Phc2sys(device) => clocks.phc = Some(follow(device)?),
                Clock::Unknown | Clock::Shared => {}
            }
        }
        Ok(clocks)
    }

    /// The collected series: the listener's clock minus the talker's. `sign` is 1 at the listener,
    /// -1 at the talker. Without sources the series is empty, and the clocks count as shared if
    /// `address` is a loopback address.
    pub(crate) fn finish(
        self,
        sign: i64,
        machine: &MachineOptions,
        address: Option<SocketAddr>,
    ) -> ClockError {
        let series = |follower: Follower| follower.finish(sign);
        match (self.ptp4l.map(series), self.phc.map(series)) {
            (Some(ptp4l), Some(phc)) => ClockError::sum(phc, ptp4l),
            (Some(ptp4l), None) => ClockError::from_series(Source::Ptp4l, ptp4l),
            (None, Some(phc)) => ClockError::from_series(Source::Phc2sys, phc),
            (None, None) => {
                let is_loopback = address.is_some_and(|address| address.ip().is_loopback());
                let is_shared = match machine.clocks.first() {
                    // The stamps of this end are shifted, so they do not show its clock.
                    _ if machine.stamp_offset != 0 => false,
                    None => is_loopback,
                    Some(clock) => *clock == Clock::Shared,
                };
                let source = if is_shared { Source::Shared } else { Source::Unknown };
                ClockError::from_series(source, Vec::new())
            }
        }
    }
}

/// Starts a thread that compares the system clock with a hardware clock.
fn follow(device: &Path) -> io::Result<Follower> {
    let refused =
        |why: String| io::Error::other(format!("--clock phc2sys={}: {why}", device.display()));
    let clock = HardwareClock::open(&device.to_string_lossy()).map_err(refused)?;
    Ok(Follower::start(move || {
        let readings = clock.readings().ok()?;
        let readings =
            readings.map(|[before, hardware, after]| Reading { before, hardware, after });
        point(&readings, tai_offset_s() * 1_000_000_000)
    }))
}

/// A thread that reads a source.
struct Follower {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<ClockPoint>>,
}

impl Follower {
    /// Reads the source at once, and then every second.
    fn start(mut ask: impl FnMut() -> Option<ClockPoint> + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let own = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut series = Vec::new();
            while series.len() < MOST && !own.load(Ordering::Relaxed) {
                series.extend(ask());
                std::thread::park_timeout(PERIOD);
            }
            series
        });
        Self { stop, thread }
    }

    fn finish(self, sign: i64) -> Vec<ClockPoint> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let series = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let turned = series.into_iter();
        turned.map(|point| ClockPoint { offset_ns: point.offset_ns * sign, ..point }).collect()
    }
}
