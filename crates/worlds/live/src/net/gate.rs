//! The gate in front of a line, on a clock that other machines share: the windows of a gate control
//! list, implemented in user space. [`switch::egress::Gate`] decides; this module adds the clocks.

use linux::time::{WallClock, oversleep, tai_offset_s};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use switch::congestion::Rate;
use switch::egress::{Gate, Windows};
use tsn::{GateControlList, Gates};
use wire::{Duration, Instant};

/// The longest wait for a window. A closing connection waits twice as long for its last frames.
const LONGEST_WAIT: Duration = Duration::from_ms(50);
/// Times beyond this restart at a cycle's start, because they are counted in picoseconds.
const SPAN_NS: u64 = 86_400_000_000_000;
/// Number of wake-ups measured for the margin, and the requested sleep of each, in ns.
const WAKE_UPS: u64 = 100;
const SLEEP: u64 = 200_000;
/// The longest frame of an ordinary Ethernet without its FCS, in bytes.
pub(super) const FRAME: usize = 1514;

/// The gate in front of a line. Clones are the same gate, which all connections of a node share.
#[derive(Clone, Debug)]
pub struct LineGate(Arc<Mutex<Line>>);

/// Clones of a gate are equal; separate gates of the same list are not.
impl PartialEq for LineGate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[derive(Debug)]
struct Line {
    gate: Gate,
    windows: Cycle,
    clock: WallClock,
    /// Start of a cycle, in nanoseconds of the clock. The gate's times count from here.
    origin: u64,
    latest: Instant,
    margin: Duration,
    longest_wait: Duration,
}

/// The list, with a cycle that begins at zero.
#[derive(Debug)]
struct Cycle {
    gates: Gates,
    queue: usize,
}

impl Windows for Cycle {
    fn earliest_start(&self, from: Instant, duration: Duration) -> Option<Instant> {
        self.gates.earliest_start(self.queue, from, duration)
    }
}

impl LineGate {
    /// The gate of `queue`, 0 to 7, in front of a line of `rate`. The default of `margin` is the
    /// greatest delay of 100 wake-ups, whose measurement takes about 30 ms.
    ///
    /// # Errors
    /// A sentence: the TAI offset is not set, no window is long enough for the longest frame, or
    /// windows are too far apart.
    pub fn new(
        list: &GateControlList,
        queue: usize,
        rate: Rate,
        margin: Option<Duration>,
        clock: WallClock,
    ) -> io::Result<Self> {
        if clock == WallClock::Tai && tai_offset_s() == 0 {
            return Err(io::Error::other(
                "CLOCK_TAI equals CLOCK_REALTIME: the kernel's TAI offset is not set; use ptp4l and \
                phc2sys or --gate-clock realtime",
            ));
        }
        let entries = GateControlList::new(Instant::ZERO, list.cycle_time(), list.entries());
        let gates = Gates::new(entries.map_err(io::Error::other)?, tsn::Clock::default());
        let margin = margin.unwrap_or_else(|| Duration::from_ns(oversleep(SLEEP, WAKE_UPS).most));
        let gate = Gate::new(rate, margin);
        let base = list.base_time().as_ns();
        let (cycle, now) = (list.cycle_time().as_ns(), clock.now());
        let origin = base + (now.saturating_sub(base) / cycle).saturating_sub(1) * cycle;
        let (windows, latest) = (Cycle { gates, queue }, Instant::ZERO);
        let longest_wait = LONGEST_WAIT;
        let line = Line { gate, windows, clock, origin, latest, margin, longest_wait };
        let made = Self(Arc::new(Mutex::new(line)));
        let wait = made.check(FRAME)?;
        made.line().longest_wait = wait;
        Ok(made)
    }

    /// The longest wait of a frame of `bytes` without FCS.
    ///
    /// # Errors
    /// A sentence, if no window is long enough, or windows are too far apart.
    pub fn check(&self, bytes: usize) -> io::Result<Duration> {
        let line = self.line();
        let (queue, needs) = (line.windows.queue, line.gate.needs(bytes));
        match line.windows.gates.longest_wait(queue, needs) {
            None => Err(io::Error::other(format!(
                "no window of gate {queue} takes a frame of {bytes} bytes: it needs {} with the \
                 wake-up margin of {}",
                needs.exact(),
                line.margin.exact()
            ))),
            Some(wait) if wait > LONGEST_WAIT => Err(io::Error::other(format!(
                "a frame of {bytes} bytes may have to wait {} for gate {queue}, above the limit \
                 of {}",
                wait.exact(),
                LONGEST_WAIT.exact()
            ))),
            Some(wait) => Ok(wait),
        }
    }

    /// The longest wait of an Ethernet frame without jumbo size.
    pub fn longest_wait(&self) -> Duration {
        self.line().longest_wait
    }

    /// The time until which a frame of `bytes` has to wait, on the clock that shows `now`; `None`
    /// if the frame need not wait.
    pub(super) fn holds(&self, now: Instant, bytes: usize) -> Option<Instant> {
        let mut line = self.line();
        let line = &mut *line;
        let here = line.now();
        let opens = line.gate.ask(here, bytes, &line.windows).err()?;
        // The frame fits some window, because its length was checked.
        Some(now + opens.map_or(LONGEST_WAIT, |at| at.since(here)))
    }

    /// Notes the hand-over of a frame of `bytes`.
    pub(super) fn sent(&self, bytes: usize) {
        let mut line = self.line();
        let line = &mut *line;
        let after = line.now();
        line.gate.sent(after, bytes, &line.windows);
    }

    /// The counters and the margin, for a report.
    pub fn report(&self) -> String {
        let line = self.line();
        format!(
            "{}; wake-up margin {}; with TCP the figures are for the hand-over to the kernel",
            line.gate.counters(),
            line.margin.exact()
        )
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// The time since the origin. If the clock was set back, earlier frames are forgotten.
    fn now(&mut self) -> Instant {
        let clock = self.clock.now();
        let cycle = self.windows.gates.list().cycle_time().as_ns();
        if clock < self.origin || clock - self.origin > SPAN_NS {
            // The origin keeps its phase, so that cycles begin where they did.
            let phase = self.origin % cycle;
            self.origin = clock.saturating_sub(cycle + phase) / cycle * cycle + phase;
            (self.latest, _) = (Instant::ZERO, self.gate.forget());
        }
        let now = Instant::from_ns(clock.saturating_sub(self.origin));
        if now < self.latest {
            self.gate.forget();
        }
        self.latest = now;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { bits_per_second: 1_000_000_000, burst: 1 };

    fn gate(list: &str, margin: u64) -> io::Result<LineGate> {
        let list = tsn::taprio::parse(list).unwrap();
        LineGate::new(&list, 3, RATE, Some(Duration::from_us(margin)), WallClock::Realtime)
    }

    #[test]
    fn a_closed_gate_holds_frames_until_the_cycle_says() {
        // 20 ms, of which gate 3 has the first half; the base is that of 2023-11-14 and 1.5 ms.
        let gate =
            gate("base-time 1700000000001500000 sched-entry S 08 10ms sched-entry S 00 10ms", 0)
                .unwrap();
        let now = Instant::from_ns(5);
        for _ in 0..50 {
            let phase = |at: u64| (at - 1_700_000_000_001_500_000) % 20_000_000;
            let before = phase(WallClock::Realtime.now());
            let held = gate.holds(now, FRAME);
            let after = phase(WallClock::Realtime.now());
            if after < before || (before < 10_000_000 && after > 9_980_000) {
                continue;
            }
            match held {
                None => assert!(after < 10_000_000, "{before} to {after}"),
                Some(at) => {
                    let wait = at.since(now).as_ns();
                    let least = 20_000_000 - after;
                    assert!((least..=20_000_000 - before).contains(&wait), "{wait} from {before}");
                }
            }
            std::thread::sleep(std::time::Duration::from_micros(730));
        }
    }

    #[test]
    fn lists_without_a_usable_window_are_refused() {
        let error = |list, margin| gate(list, margin).unwrap_err().to_string();
        let never = error("sched-entry S 04 1ms", 0);
        assert!(never.contains("no window of gate 3 takes a frame of 1514 bytes"), "{never}");
        // 12.304 us and the margin.
        let short = error("sched-entry S 08 20us sched-entry S 00 1ms", 10);
        assert!(short.contains("it needs 22304ns with the wake-up margin of 10us"), "{short}");
        let far = error("sched-entry S 08 1ms sched-entry S 00 90ms", 0);
        assert!(far.contains("above the limit of 50ms"), "{far}");
    }

    #[test]
    fn tai_without_an_offset_is_refused() {
        let list = tsn::taprio::parse("sched-entry S ff 1ms").unwrap();
        let made = LineGate::new(&list, 0, RATE, Some(Duration::ZERO), WallClock::Tai);
        match made {
            Ok(_) => assert!(tai_offset_s() > 0),
            Err(error) => assert!(error.to_string().contains("--gate-clock realtime"), "{error}"),
        }
    }
}
