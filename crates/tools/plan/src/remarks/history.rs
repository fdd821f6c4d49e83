//! Checks that a history is long enough for the delays and losses of a stream's paths (IEEE
//! 802.1CB-2017, 7.4.3.4). A sequence number is rogue if its distance from the highest one is the
//! history length or more. Rogue frames do not restart the reset timer.

use super::streams::Offered;
use crate::simulate::places;
use report::time;
use sim::ethernet::cable::Faults;
use sim::network::{CableEnd, Path, Place, StreamConfig, Wiring};
use stats::random::Probability;
use tsn::frer::{Algorithm, Config};
use wire::{Duration, Instant};

/// One day in seconds. Rarer events get no remark.
const DAY: f64 = 86_400.0;

/// The ports through which a stream's frames leave on one path.
type Way = Vec<CableEnd>;

/// The ports through which a stream's frames leave on their way to a place, by path.
struct Ways<'a> {
    wiring: &'a Wiring<'a>,
    offered: Offered<'a>,
    ways: Vec<Way>,
}

/// Returns remarks on the recovery function of a stream at a place.
pub(super) fn find(
    wiring: &Wiring<'_>,
    stream: &StreamConfig,
    place: Place,
    recovery: Config,
) -> Vec<String> {
    let until = |path: &Path| -> Option<Way> {
        let hops = wiring.hops(stream.from, path).ok()?;
        let before = |hop: &&[CableEnd; 2]| hop[0].node() != place;
        let way: Way = hops.iter().take_while(before).map(|hop| hop[0]).collect();
        let last = hops.get(way.len().checked_sub(1)?)?[1].node();
        (last == place).then_some(way)
    };
    let ways: Vec<_> = stream.paths.iter().filter_map(until).collect();
    if ways.is_empty() {
        return Vec::new();
    }
    let ways = Ways { wiring, offered: Offered::new(wiring.network, stream), ways };
    let (skew, frames) = ways.skew();
    let behind = format!(
        "the copy on the slowest path comes {} behind that on the fastest, {frames} frames later",
        skew.exact()
    );
    match recovery.algorithm {
        Algorithm::Vector { history } if frames >= u64::from(history) => vec![format!(
            "{behind}, but the history has {history} numbers: copies are rogue and discarded, also \
             those that no other path brings (802.1CB-2017, 7.4.3.4)"
        )],
        Algorithm::Vector { history } => ways.losses(history, recovery.reset),
        Algorithm::Match if frames > 0 => vec![format!(
            "{behind}: match recovery takes it for another frame and passes it \
             (802.1CB-2017, 7.4.3.5)"
        )],
        Algorithm::Match => Vec::new(),
    }
}

impl Ways<'_> {
    fn travel(&self, way: &[CableEnd]) -> Duration {
        places::travel(self.wiring, way, self.offered.longest)
    }

    /// Returns the maximum time between copies of a frame, and the number of frames that may follow
    /// the frame in this time.
    fn skew(&self) -> (Duration, u64) {
        let times = || self.ways.iter().map(|way| self.travel(way));
        let skew = times().max().unwrap_or_default() - times().min().unwrap_or_default();
        (skew, self.offered.within(skew))
    }

    /// Finds effects of lost frames on a history that is long enough for the delays.
    fn losses(&self, history: u16, reset: Duration) -> Vec<String> {
        let run = history - 1;
        let lost = if run == 1 { "a frame".to_owned() } else { format!("{run} frames in a row") };
        let rest = format!(
            "with a history of {history} numbers all that follows is rogue and discarded for {} \
             (802.1CB-2017, 7.4.3.4)",
            reset.exact()
        );
        let mut found = Vec::new();
        if let Some(seconds) = self.every(self.lost_on_all(&self.all()), run) {
            found.push(format!(
                "its paths lose {lost} together about every {}: {rest}",
                time(seconds * 1e9)
            ));
        }
        for (from, until, up) in self.outages() {
            let span = until - from;
            let at = |at: Instant| (at - Instant::ZERO).exact();
            let when = match until {
                Instant::MAX => format!("from {} on", at(from)),
                until => format!("from {} to {}", at(from), at(until)),
            };
            if up.is_empty() {
                // A longer gap resets the history.
                let frames = if span < reset { self.offered.within(span) } else { 0 };
                if frames >= u64::from(run) {
                    found
                        .push(format!("all its paths are cut {when}, for {frames} frames: {rest}"));
                }
            } else if let Some(seconds) = self.every(self.lost_on_all(&up), run)
                && seconds * 1e12 <= span.as_ps() as f64
            {
                found.push(format!(
                    "{when} it has {} of its {} paths left and loses {lost} about every {}: {rest}",
                    up.len(),
                    self.ways.len(),
                    time(seconds * 1e9)
                ));
            }
        }
        let latest = |way: &&Way| self.travel(way) + self.delayed(way);
        let all = self.all();
        let fastest = all.iter().min_by_key(|way| (self.travel(way), latest(way)));
        let fastest = *fastest.expect("there is one");
        let others = all.iter().filter(|way| !std::ptr::eq(**way, fastest));
        let slowest = others.map(latest).max().unwrap_or_default();
        let behind = self.offered.within(slowest - self.travel(fastest));
        if behind >= u64::from(run)
            && let Some(seconds) = self.every(self.lost_on(fastest.iter()), run)
        {
            found.push(format!(
                "the fastest path loses {lost} about every {}, and the slowest is up to {behind} \
                 behind: \
                 with a history of {history} numbers the copies of the fastest are rogue from then \
                 on (802.1CB-2017, 7.4.3.4)",
                time(seconds * 1e9)
            ));
        }
        found
    }

    /// Returns the mean number of seconds until `run` frames in a row are lost, if it is at most
    /// one day.
    fn every(&self, lost: f64, run: u16) -> Option<f64> {
        let often = self.offered.per_second() * lost.powi(i32::from(run));
        (often * DAY >= 1.0).then(|| 1.0 / often)
    }

    /// Returns the share of frames that are lost on the cables of these ports.
    fn lost_on<'a>(&self, ports: impl Iterator<Item = &'a CableEnd>) -> f64 {
        let share = |chance: Probability| chance.part_of(1_000_000_000_000) as f64 / 1e12;
        let passes = ports.filter_map(|port| {
            let faults = self.faults(*port)?;
            Some((1.0 - share(faults.loss)) * (1.0 - share(faults.corruption)))
        });
        1.0 - passes.product::<f64>()
    }

    fn all(&self) -> Vec<&Way> {
        self.ways.iter().collect()
    }

    /// Returns the faults of the cable at a port, in the port's direction.
    fn faults(&self, port: CableEnd) -> Option<&Faults> {
        let (cable, _) = self.wiring.across(port)?;
        let cable = &self.wiring.network.cables[cable];
        Some(&cable.faults[usize::from(cable.a != port)])
    }

    /// Returns the maximum delay that faults add to frames of a path, on those of its cables that
    /// another path does not use.
    fn delayed(&self, way: &Way) -> Duration {
        let own = way.iter().filter(|port| !self.ways.iter().all(|way| way.contains(*port)));
        let faults = own.filter_map(|port| self.faults(*port));
        let delays = faults.filter(|faults| faults.delay != Probability::NEVER);
        delays.fold(Duration::ZERO, |sum, faults| sum + faults.delay_up_to)
    }

    /// Returns the share of frames that are lost on all of these paths.
    fn lost_on_all(&self, ways: &[&Way]) -> f64 {
        let common = |port: &&CableEnd| ways.iter().all(|way| way.contains(*port));
        let own = |way: &&Way| self.lost_on(way.iter().filter(|port| !common(port)));
        let before = self.lost_on(ways[0].iter().filter(common));
        before + (1.0 - before) * ways.iter().map(own).product::<f64>()
    }

    /// Returns the times in which some paths are down because cables are cut or bridges have no
    /// power, each with the paths that are up.
    fn outages(&self) -> Vec<(Instant, Instant, Vec<&Way>)> {
        let all: Vec<_> = self.ways.iter().map(|way| (way, self.cuts(way))).collect();
        let cuts = all.iter().flat_map(|(_, cuts)| cuts);
        let mut times: Vec<Instant> = cuts.flat_map(|cut| <[Instant; 2]>::from(*cut)).collect();
        times.sort_unstable();
        times.dedup();
        let mut found: Vec<(Instant, Instant, Vec<&Way>)> = Vec::new();
        for (from, until) in times.iter().copied().zip(times.iter().copied().skip(1)) {
            let is_cut =
                |cuts: &[(Instant, Instant)]| cuts.iter().any(|cut| (cut.0..cut.1).contains(&from));
            let up = all.iter().filter(|(_, cuts)| !is_cut(cuts)).map(|(way, _)| *way);
            let up: Vec<&Way> = up.collect();
            match found.last_mut() {
                Some((_, end, same)) if *end == from && *same == up => *end = until,
                _ if up.len() < all.len() => found.push((from, until, up)),
                _ => {}
            }
        }
        found
    }

    fn cuts(&self, way: &Way) -> Vec<(Instant, Instant)> {
        let mut cuts = Vec::new();
        for port in way {
            cuts.extend(self.faults(*port).iter().flat_map(|faults| &faults.cuts));
            let outages = self.wiring.network.bridge_outages.iter();
            let outages_here = outages.filter(|outage| port.node() == Place::Bridge(outage.bridge));
            cuts.extend(
                outages_here.map(|outage| (outage.from, outage.until.unwrap_or(Instant::MAX))),
            );
        }
        cuts
    }
}
