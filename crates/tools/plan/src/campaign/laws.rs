//! Runs the plan of a seed and checks the laws that hold under every fault.

use super::fault::Kind;
use super::reached::Condition;
use super::scenario::Scenario;
use super::watcher::Watcher;
use crate::simulate::Shared;
use crate::{Plan, Planned};
use node::faults::FaultKind;
use pcie::Errors;
use sim::World;
use sim::network::CableEnd;
use sim::workload::Fio;
use sim::world::{Attached, DisturbanceKind, Error, HostReport, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wire::{Duration, Instant};

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Digest of all events; 0 without a report.
    pub digest: u64,
    /// How often each kind of fault acted.
    pub acted: BTreeMap<Kind, u64>,
    pub reached: BTreeSet<Condition>,
    /// The law that was broken, and how.
    pub broken: Option<String>,
}

/// Virtual time between two looks at the tunnels.
const STEP: Duration = Duration::from_us(200);
/// The most TLPs that may be on their way in a world.
const MOST_TLPS: usize = 1 << 14;

/// Survivals from this on outlast all faults of a scenario but the loss of power.
const LONG_SURVIVAL: Duration = Duration::from_ms(10_000);

/// Runs the plan of a scenario. A panic is a failed assertion of farlane.
pub(super) fn run(scenario: &Scenario) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| simulate(scenario))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Outcome { broken: Some(format!("panic: {text}")), ..Outcome::default() }
    })
}

fn simulate(scenario: &Scenario) -> Outcome {
    let planned = match Plan::parse("plan", &scenario.text()).and_then(|plan| plan.build()) {
        Ok(planned) => planned,
        Err(error) => {
            let broken = Some(format!("the plan is refused: {error}"));
            return Outcome { broken, ..Outcome::default() };
        }
    };
    let config = &planned.config;
    let watcher = Shared::new(Watcher::new(config));
    let mut world = match World::new(config) {
        Ok(world) => world,
        Err(error) => return Outcome { broken: Some(error.to_string()), ..Outcome::default() },
    };
    world.observe(Box::new(watcher.clone()));
    let ended = steps(&mut world, &planned, &watcher);
    let watcher = &mut watcher.0.borrow_mut();
    // A driver does not start with a drive whose link went down meanwhile.
    let boots = |host: usize| !watcher.downs.contains_key(&(host as u16));
    let is_given_up =
        matches!(&ended, Err(Ended::Failed(Error::Boot { host, .. })) if !boots(*host));
    let mut run = Run { scenario, planned: &planned, watcher, is_given_up };
    if let (false, Err(why)) = (is_given_up, ended) {
        run.watcher.require(world.now(), Err(why.to_string()));
    }
    let report = world.report();
    run.laws(&mut world, &report);
    let acted = run.acted(&world, &report);
    run.conditions(&world, &report, &acted);
    let Watcher { broken, reached, .. } = std::mem::take(run.watcher);
    Outcome { digest: report.digest, acted, reached, broken }
}

/// Runs a world to its end, and looks at the bounds of its queues.
fn steps(world: &mut World, planned: &Planned, watcher: &Shared<Watcher>) -> Result<(), Ended> {
    let switches = planned.config.hosts.iter().filter_map(|host| match &host.attached {
        Attached::Switch(switch) => Some(switch.keep + switch.max_frame),
        Attached::Direct(_) => None,
    });
    // A frame more than the limit may be kept, with its header and the largest TLP in front.
    let most = switches.max().unwrap_or(0) + 8192;
    let mut until = Instant::ZERO;
    loop {
        until += STEP;
        if world.run_until(until).map_err(Ended::Failed)? {
            return Ok(());
        }
        let mut watcher = watcher.0.borrow_mut();
        for end in world.tunnel_states() {
            watcher.reach(Condition::ReplayFull, end.is_full);
            let waits = end.is_full && end.is_interrupted;
            watcher.reach(Condition::ReplayFullWhileInterrupted, waits);
            let bounded = bound("bytes that a tunnel keeps", end.kept, most);
            watcher.require(until, bounded);
        }
        let bounded = bound("TLPs on their way", world.tlps_in_flight(), MOST_TLPS);
        watcher.require(until, bounded);
        if let Some(broken) = &watcher.broken {
            return Err(Ended::Broken(broken.clone()));
        }
    }
}

fn bound(what: &str, found: usize, most: usize) -> Result<(), String> {
    match found <= most {
        true => Ok(()),
        false => Err(format!("{found} {what}, at most {most} are allowed")),
    }
}

/// Why a run ended early.
enum Ended {
    /// The simulation failed.
    Failed(Error),
    /// A law was broken.
    Broken(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Broken(law) => law.fmt(f),
        }
    }
}

/// A run with its expectations.
struct Run<'a> {
    scenario: &'a Scenario,
    planned: &'a Planned,
    watcher: &'a mut Watcher,
    /// Whether the driver did not start, because a link went down.
    is_given_up: bool,
}

impl Run<'_> {
    fn has(&self, kind: Kind) -> bool {
        self.scenario.has(kind)
    }

    fn moves(&self) -> bool {
        !self.planned.config.moves.is_empty()
    }

    /// Whether a link may go down.
    fn may_go_down(&self) -> bool {
        let survival = self.planned.config.hosts.iter().map(|host| host.outage()).min();
        let is_short = survival.is_some_and(|survival| survival < LONG_SURVIVAL);
        let interrupts = self.scenario.faults.iter().any(|fault| fault.kind.interrupts());
        let overflows = self.scenario.has_short_queues;
        self.has(Kind::Outage) || self.moves() || is_short && (interrupts || overflows)
    }

    fn laws(&mut self, world: &mut World, report: &Report) {
        let now = report.time;
        let may_go_down = self.may_go_down();
        let downs: u64 = self.watcher.downs.values().sum();
        self.require(now, downs == 0 || may_go_down, || "a link went down without cause".into());
        for (number, host) in report.hosts.iter().enumerate() {
            self.host_laws(now, number, host);
        }
        let (_, wrong) = world.compare_contents();
        self.require(now, wrong == 0, || format!("{wrong} ranges of a drive hold other data"));
        let fails = self.scenario.faults.iter().any(|fault| fault.kind.fails_commands());
        for errors in world.errors() {
            let Errors { malformed, ecrc, poisoned, acs_violation, .. } = errors;
            let never = malformed + ecrc + poisoned + acs_violation;
            let rare = if may_go_down || fails { 0 } else { errors.total() };
            self.require(now, never + rare == 0, || format!("PCIe errors: {errors}"));
        }
        self.queue_laws(report);
    }

    fn require(&mut self, now: Instant, holds: bool, why: impl FnOnce() -> String) {
        self.watcher.require(now, if holds { Ok(()) } else { Err(why()) });
    }

    fn host_laws(&mut self, now: Instant, number: usize, host: &HostReport) {
        let config = &self.planned.config;
        let HostReport { mismatches, spurious, failures, .. } = *host;
        let wrong = |count: u64, what: &str| format!("host {number}: {count} {what}");
        self.require(now, mismatches == 0, || wrong(mismatches, "reads returned other data"));
        self.require(now, spurious == 0, || wrong(spurious, "completions without a command"));
        let fio = config.hosts[number].workload.fio().unwrap_or_else(|| Fio::dd(false, 512, 0));
        let wanted = fio.transfers().unwrap_or(0) * fio.numjobs as u64;
        let done = host.latency.count() + failures;
        let all = done == wanted || self.moves() || self.is_given_up;
        self.require(now, all, || wrong(done, &format!("of {wanted} commands were answered")));
        let faults = config.hosts[number].drives().into_iter().flat_map(|drive| &drive.faults);
        let errors = faults.clone().filter(|fault| matches!(fault.kind, FaultKind::Error(_)));
        let errors: u64 = errors.filter_map(|fault| fault.count).sum();
        let lost = faults.filter(|fault| fault.kind == FaultKind::LostCompletion).count() as u64;
        let resets = config.disturbances.iter();
        let own = resets.filter(|one| one.kind == DisturbanceKind::DriveReset(number)).count();
        let downs = self.watcher.downs.get(&(number as u16)).copied().unwrap_or(0);
        // Commands under way, and those that wait for a drive that loses its contents.
        let each = 2 * (fio.iodepth * fio.numjobs) as u64;
        let most = errors + (downs + lost + own as u64) * each;
        let expected = || wrong(failures, &format!("commands failed; the faults explain {most}"));
        self.require(now, failures <= most || self.moves(), expected);
    }

    /// The queues of bridges.
    fn queue_laws(&mut self, report: &Report) {
        let network = &self.planned.config.network;
        for (direction, queue) in report.queues.iter().enumerate() {
            let from = network.sender(direction);
            let CableEnd::Bridge(..) = from else { continue };
            for (class, stats) in queue.classes.iter().enumerate() {
                let most = network.port(from).classes[class].queue_frames;
                let bounded = bound("frames in a queue", stats.most_frames, most);
                self.watcher.require(report.time, bounded);
            }
        }
    }

    fn conditions(&mut self, world: &World, report: &Report, acted: &BTreeMap<Kind, u64>) {
        use Condition::*;
        let resumed = self.watcher.reached.contains(&Resumed);
        let failures: u64 = report.hosts.iter().map(|host| host.failures).sum();
        let acted = |kind| acted.contains_key(&kind);
        let volatile = self.planned.config.drives().any(|drive| drive.volatile);
        let drops = |(direction, _): &(usize, _)| {
            let network = &self.planned.config.network;
            matches!(network.sender(*direction), CableEnd::Bridge(..))
        };
        let full = report.queues.iter().enumerate().filter(drops);
        let pushed = report.hosts.iter().map(|host| host.pushed);
        let again = world.tunnel_states().any(|end| end.counters.frames_sent_again > 0);
        let two_paths = !self.scenario.seconds.is_empty();
        let interrupted = self.watcher.reached.contains(&Interrupted);
        let moved = self.moves() && report.hosts.iter().all(|host| host.commands > 0);
        let found = [
            (SentAgain, again),
            (MediaErrorSeen, acted(Kind::MediaError) && failures > 0),
            (LostWithPower, acted(Kind::Outage) && failures > 0),
            (ContentsLost, acted(Kind::Outage) && volatile),
            (ResetAfterLostCompletion, acted(Kind::LostCompletion) && failures > 0),
            (DuplicateDropped, world.raw_duplicates() > 0),
            (Retransmitted, report.retransmitted > 0),
            (QueueFull, full.map(|(_, queue)| queue.dropped).sum::<u64>() > 0),
            (PushUsed, pushed.clone().any(|pushed| pushed.hits > 0)),
            (PushInvalidated, pushed.clone().any(|pushed| pushed.unused_bytes > 0)),
            (Moved, moved),
            (Shared, self.scenario.is_shared && report.hosts.iter().all(|host| host.bytes > 0)),
            (FailedOver, report.tunnels.iter().any(|tunnel| tunnel.failovers > 0)),
            (BothPathsLost, two_paths && interrupted),
            (RestoredAfterKill, world.restored() > 0 && resumed),
            (ResumedBehindSwitchNode, resumed && self.scenario.is_cascade),
        ];
        found.into_iter().for_each(|(condition, is)| self.watcher.reach(condition, is));
    }

    /// How often each kind of fault acted.
    fn acted(&self, world: &World, report: &Report) -> BTreeMap<Kind, u64> {
        let cables = world.cable_counters();
        let mut acted = self.watcher.acted.clone();
        let frames = [
            (Kind::Loss, cables.lost),
            (Kind::Corruption, cables.corrupted),
            (Kind::Delay, cables.delayed),
            (Kind::Reordering, cables.reordered),
            (Kind::Duplication, cables.duplicated),
        ];
        acted.extend(frames.into_iter().filter(|(kind, count)| self.has(*kind) && *count > 0));
        let disturbed = self.planned.config.disturbances.iter().filter(|one| one.at < report.time);
        for one in disturbed {
            let kind = match one.kind {
                DisturbanceKind::Stall(..) => Kind::Stall,
                DisturbanceKind::ConnectionReset(_) => Kind::ConnectionReset,
                DisturbanceKind::DriveReset(_) => Kind::DriveReset,
            };
            *acted.entry(kind).or_default() += 1;
        }
        for kind in [Kind::Cut, Kind::CutOneWay, Kind::BridgeOutage, Kind::Outage, Kind::Kill] {
            let begins = |text: &str| text.split("..").next().and_then(|at| at.parse().ok());
            let begun = self.scenario.faults.iter().filter(|fault| {
                let at: Option<Duration> = begins(&fault.value);
                fault.kind == kind && at.is_some_and(|at| Instant::ZERO + at < report.time)
            });
            let count = begun.count() as u64;
            acted.extend((count > 0).then_some((kind, count)));
        }
        acted
    }
}
