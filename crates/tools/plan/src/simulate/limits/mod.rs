//! Compares every wait of a simulation with the limits of real systems: completion timeouts,
//! timeouts of drivers, and retransmission timers.
//!
//! [`planned_rows`] needs only the configuration. It finds closed gates, and round trips that are
//! too long even in an empty network. [`all_rows`] adds the waits that [`Waits`] measured.

mod acks;
mod bounds;
mod least;
mod print;
mod waits;

#[cfg(test)]
pub(super) use least::Trips;
pub use print::text;
pub(super) use print::{cells, signed_time};
pub use waits::Waits;

use schemars::JsonSchema;
use serde::Serialize;
use sim::Config;
use wire::{Duration, Instant};

/// The Completion Timeout Value of Device Control 2 (PCIe Base 4.0, 7.5.3.16; the mechanism is in
/// 2.8). It sets the earliest and the latest time at which a requester gives up. Values and ranges
/// were compared with these sources: Intel 6 Series Chipset datasheet, 19.1.37 (ranges B and C;
/// that hardware waits 40 to 50 ms by default); Xeon C5500/C3500 datasheet volume 1, 3.20.3.23
/// (ranges A to D); `pci_print_pcie_compl_timeout` of NetBSD's `sys/dev/pci/pci_subr.c`; the output
/// of lspci.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionTimeout {
    /// Value of the field, bits 3:0.
    pub value: u8,
    /// Name of the range.
    pub name: &'static str,
    /// The requester may give up after this time.
    pub earliest: Duration,
    /// The requester has given up after this time.
    pub latest: Duration,
}

impl CompletionTimeout {
    /// The default range, 50 us to 50 ms. The limit for requesters with this range is 10 ms, the
    /// minimum that the specification strongly recommends (2.8).
    pub const DEFAULT: Self = Self::new(0b0000, "50us-50ms", 10_000, 50_000);
    /// All defined values.
    pub const ALL: [Self; 9] = [
        Self::DEFAULT,
        Self::new(0b0001, "50us-100us", 50, 100),
        Self::new(0b0010, "1ms-10ms", 1_000, 10_000),
        Self::new(0b0101, "16ms-55ms", 16_000, 55_000),
        Self::new(0b0110, "65ms-210ms", 65_000, 210_000),
        Self::new(0b1001, "260ms-900ms", 260_000, 900_000),
        Self::new(0b1010, "1s-3.5s", 1_000_000, 3_500_000),
        Self::new(0b1101, "4s-13s", 4_000_000, 13_000_000),
        Self::new(0b1110, "17s-64s", 17_000_000, 64_000_000),
    ];

    const fn new(value: u8, name: &'static str, earliest_us: u64, latest_us: u64) -> Self {
        let (earliest, latest) = (Duration::from_us(earliest_us), Duration::from_us(latest_us));
        Self { value, name, earliest, latest }
    }
}

/// The end of a range without an end.
pub(super) const NEVER: Duration = Duration::from_ps(u64::MAX);

/// The timeouts of the systems around the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumptions {
    /// Completion timeout of the drive's reads of host memory.
    pub completion_timeout: CompletionTimeout,
    /// Time after which the driver aborts an I/O command: 30 s (Linux, drivers/nvme/host/core.c,
    /// `nvme_io_timeout`).
    pub io_timeout: Duration,
    /// Time after which the driver aborts an admin command: 60 s (`admin_timeout`).
    pub admin_timeout: Duration,
    /// Minimum time after which TCP retransmits: 200 ms (Linux, include/net/tcp.h, `TCP_RTO_MIN`).
    pub rto_min: Duration,
    /// Time after which TCP retransmits before a round trip was measured: 1 s (RFC 6298, 2.1).
    pub rto_initial: Duration,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            completion_timeout: CompletionTimeout::DEFAULT,
            io_timeout: Duration::from_ms(30_000),
            admin_timeout: Duration::from_ms(60_000),
            rto_min: Duration::from_ms(200),
            rto_initial: Duration::from_ms(1_000),
        }
    }
}

/// The result of comparing a wait with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitVerdict {
    /// No wait reaches the limit.
    Holds,
    /// A wait reaches the limit of some systems, but not of all.
    AtRisk,
    /// A wait reaches the limit of every system, or has no end.
    Breaks,
}

/// A wait that was measured, or that can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Start of the wait; `None` for a wait that follows from the plan alone.
    pub at: Option<Instant>,
    /// Duration of the wait.
    pub span: Duration,
    /// Description of the request that waited.
    pub what: String,
}

/// A limit and the waits compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name of the limit.
    pub name: String,
    /// Some systems give up after this time.
    pub limit: Duration,
    /// All systems have given up after this time.
    pub latest: Duration,
    /// The longest wait; `None` if there was no wait of this kind.
    pub worst: Option<Event>,
    /// The first wait beyond the limit.
    pub first: Option<Event>,
    /// Whether the wait follows from the plan alone, before anything runs.
    pub planned: bool,
    /// Whether the wait has no end.
    pub endless: bool,
    /// Source of the limit.
    pub source: &'static str,
}

/// The time after which some systems give up, and the time after which all have given up.
type Limits = (Duration, Duration);

impl Row {
    fn new(name: impl Into<String>, (limit, latest): Limits, source: &'static str) -> Self {
        let (name, worst, first) = (name.into(), None, None);
        Self { name, limit, latest, worst, first, planned: false, endless: false, source }
    }

    /// Adds a wait that follows from the plan; `None` is a wait without end.
    fn planned(self, span: Option<Duration>, event: String) -> Self {
        let worst = Event { at: None, span: span.unwrap_or(NEVER), what: event };
        let first = (worst.span >= self.limit).then(|| worst.clone());
        Self { worst: Some(worst), first, planned: true, endless: span.is_none(), ..self }
    }

    fn add(&mut self, since: Instant, until: Instant, description: impl FnOnce() -> String) {
        self.add_span(since, until.since(since), description);
    }

    fn add_span(&mut self, since: Instant, span: Duration, description: impl FnOnce() -> String) {
        let longest = self.worst.as_ref().is_none_or(|longest| span > longest.span);
        let earlier = |first: &Event| Some(since) < first.at;
        let first = span >= self.limit && self.first.as_ref().is_none_or(earlier);
        if !longest && !first {
            return;
        }
        let event = Event { at: Some(since), span, what: description() };
        if first {
            self.first = Some(event.clone());
        }
        if longest {
            self.worst = Some(event);
        }
    }

    /// Returns the limit less the longest wait, in picoseconds; negative if the wait exceeds the
    /// limit, `None` if nothing waited.
    pub fn margin_ps(&self) -> Option<i128> {
        let worst = self.worst.as_ref()?;
        Some(i128::from(self.limit.as_ps()) - i128::from(worst.span.as_ps()))
    }

    /// Returns the limit divided by the longest wait; `None` if nothing waited.
    pub fn factor(&self) -> Option<f64> {
        let worst = self.worst.as_ref()?;
        Some(self.limit.as_ps() as f64 / worst.span.as_ps().max(1) as f64)
    }

    /// Formats the row as one line.
    pub fn sentence(&self) -> String {
        let [limit, worst, _, _, verdict, event] = print::words(self);
        format!("{}: {worst} against {limit}: {verdict}; {event}", self.name)
    }

    /// Returns the verdict.
    pub fn verdict(&self) -> LimitVerdict {
        match &self.worst {
            _ if self.endless => LimitVerdict::Breaks,
            Some(worst) if worst.span >= self.latest => LimitVerdict::Breaks,
            Some(worst) if worst.span >= self.limit => LimitVerdict::AtRisk,
            _ => LimitVerdict::Holds,
        }
    }
}

/// Returns the limits that follow from the configuration, without a run; none without hosts.
pub fn planned_rows(config: &Config, assumed: &Assumptions) -> Vec<Row> {
    if config.hosts.is_empty() {
        return Vec::new();
    }
    let mut rows = bounds::rows(config, assumed);
    rows.extend(least::rows(config, assumed));
    rows
}

/// Returns every limit, with the measured waits; none without hosts.
pub fn all_rows(config: &Config, assumed: &Assumptions, waits: &Waits) -> Vec<Row> {
    if config.hosts.is_empty() {
        return Vec::new();
    }
    let mut rows = waits.rows();
    rows.extend(planned_rows(config, assumed));
    rows
}

/// Returns the rows that need the user's attention before the plan is run.
pub fn flagged(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.verdict() != LimitVerdict::Holds)
}

/// A limit of real systems and the longest wait against it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Limit {
    /// The name of the limit.
    limit: String,
    /// Some systems give up after this time.
    limit_ns: u64,
    /// All systems have given up after this time; null if a system may wait without end.
    latest_ns: Option<u64>,
    /// The longest wait; null if nothing waited.
    worst_ns: Option<u64>,
    /// `limit_ns` less `worst_ns`; null if nothing waited.
    margin_ns: Option<i64>,
    /// `limit_ns` divided by `worst_ns`; null if nothing waited.
    factor: Option<f64>,
    /// What the wait means.
    verdict: LimitVerdict,
    /// Whether the wait follows from the plan alone, before anything runs.
    planned: bool,
    /// What waited for `worst_ns`; null if nothing waited.
    worst: Option<String>,
    /// The first wait beyond `limit_ns`; null if there is none.
    first: Option<String>,
    /// The source of the limit.
    source: &'static str,
}

impl From<&Row> for Limit {
    fn from(row: &Row) -> Self {
        Self {
            limit: row.name.clone(),
            limit_ns: row.limit.as_ns(),
            latest_ns: (row.latest != NEVER).then(|| row.latest.as_ns()),
            worst_ns: row.worst.as_ref().map(|event| event.span.as_ns()),
            margin_ns: row.margin_ps().map(|ps| (ps / 1000) as i64),
            factor: row.factor(),
            verdict: row.verdict(),
            planned: row.planned,
            worst: row.worst.as_ref().map(Event::words),
            first: row.first.as_ref().map(Event::words),
            source: row.source,
        }
    }
}

impl Event {
    /// Formats the start of the wait, if it was measured, and the description of the request.
    pub fn words(&self) -> String {
        match self.at {
            Some(at) => format!("at {}: {}", report::time(at.as_ns() as f64), self.what),
            None => self.what.clone(),
        }
    }
}
