//! Whether a history is long enough for the delays and the losses of a stream's paths (IEEE
//! 802.1CB-2017, 7.4.3.4): a number that is as far from the highest one as the history is long is
//! rogue, and rogue frames do not restart the reset timer.

use super::streams::Offered;
use crate::simulate::places;
use report::time;
use sim::network::{CableEnd, Place, StreamConfig, Wiring};
use stats::random::Probability;
use tsn::frer::{Algorithm, Config};
use wire::{Duration, Instant};

/// What happens less often than once a day is not worth a remark, in seconds.
const DAY: f64 = 86_400.0;

/// The ports that a stream's frames leave through on their way to a place, path by path.
struct Ways<'a> {
    wiring: &'a Wiring<'a>,
    offered: Offered<'a>,
    ways: Vec<Vec<CableEnd>>,
}

/// Remarks on the recovery function of a stream at a place.
pub(super) fn find(
    wiring: &Wiring<'_>,
    stream: &StreamConfig,
    place: Place,
    recovery: Config,
) -> Vec<String> {
    let until = |path: &Vec<usize>| -> Option<Vec<CableEnd>> {
        let hops = stream.hops(wiring, path).ok()?;
        let before = |hop: &&[CableEnd; 2]| hop[0].node() != place;
        let way: Vec<CableEnd> = hops.iter().take_while(before).map(|hop| hop[0]).collect();
        let last = hops.get(way.len().checked_sub(1)?)?[1].node();
        (last == place).then_some(way)
    };
    let ways: Vec<_> = stream.paths.iter().filter_map(until).collect();
    if ways.is_empty() {
        return Vec::new();
    }
    let ways = Ways { wiring, offered: Offered::of(wiring.network, stream), ways };
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
        Algorithm::Vector { history } => ways.losses(frames, history, recovery.reset),
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

    /// How far the copies of a frame come apart, and how many frames may follow it meanwhile.
    fn skew(&self) -> (Duration, u64) {
        let times = || self.ways.iter().map(|way| self.travel(way));
        let skew = times().max().unwrap_or_default() - times().min().unwrap_or_default();
        (skew, self.offered.within(skew))
    }

    /// What lost frames do to a history that is long enough for the delays.
    fn losses(&self, behind: u64, history: u16, reset: Duration) -> Vec<String> {
        let run = history - 1;
        let lost = if run == 1 { "a frame".to_owned() } else { format!("{run} frames in a row") };
        let rest = format!(
            "with a history of {history} numbers all that follows is rogue and discarded for {} \
             (802.1CB-2017, 7.4.3.4)",
            reset.exact()
        );
        let mut found = Vec::new();
        if let Some(seconds) = self.every(self.lost_on_all(), run) {
            found.push(format!(
                "its paths lose {lost} together about every {}: {rest}",
                time(seconds * 1e9)
            ));
        }
        for (from, until) in self.dark() {
            let frames = self.offered.within(until - from);
            if until - from < reset && frames >= u64::from(run) {
                found.push(format!(
                    "all its paths are cut from {} to {}, for {frames} frames: {rest}",
                    (from - Instant::ZERO).exact(),
                    (until - Instant::ZERO).exact()
                ));
            }
        }
        let fastest = self.ways.iter().min_by_key(|way| self.travel(way)).expect("there is one");
        if behind >= u64::from(run)
            && let Some(seconds) = self.every(self.lost_on(fastest.iter()), run)
        {
            found.push(format!(
                "the fastest path loses {lost} about every {}, and the slowest is {behind} behind: \
                 with a history of {history} numbers the copies of the fastest are rogue from then \
                 on (802.1CB-2017, 7.4.3.4)",
                time(seconds * 1e9)
            ));
        }
        found
    }

    /// After how many seconds on average so many frames in a row are lost, if that is within a day.
    fn every(&self, lost: f64, run: u16) -> Option<f64> {
        let often = self.offered.per_second() * lost.powi(i32::from(run));
        (often * DAY >= 1.0).then(|| 1.0 / often)
    }

    /// The share of frames that these ports lose on their cables.
    fn lost_on<'a>(&self, ports: impl Iterator<Item = &'a CableEnd>) -> f64 {
        let share = |chance: Probability| chance.of(1_000_000_000_000) as f64 / 1e12;
        let passes = ports.filter_map(|port| {
            let (cable, _) = self.wiring.across(*port)?;
            let cable = &self.wiring.network.cables[cable];
            let faults = &cable.faults[usize::from(cable.a != *port)];
            Some((1.0 - share(faults.loss)) * (1.0 - share(faults.corruption)))
        });
        1.0 - passes.product::<f64>()
    }

    /// The share of frames that no path brings.
    fn lost_on_all(&self) -> f64 {
        let common = |port: &&CableEnd| self.ways.iter().all(|way| way.contains(*port));
        let own = |way: &Vec<CableEnd>| self.lost_on(way.iter().filter(|port| !common(port)));
        let before = self.lost_on(self.ways[0].iter().filter(common));
        before + (1.0 - before) * self.ways.iter().map(own).product::<f64>()
    }

    /// When no path brings anything, since cables are cut or bridges without power.
    fn dark(&self) -> Vec<(Instant, Instant)> {
        let mut all: Vec<Vec<_>> = self.ways.iter().map(|way| self.cuts(way)).collect();
        let first = all.swap_remove(0);
        all.iter().fold(first, |dark, other| {
            let pairs = dark.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
            let both = pairs.map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
            both.filter(|(from, until)| from < until).collect()
        })
    }

    fn cuts(&self, way: &[CableEnd]) -> Vec<(Instant, Instant)> {
        let mut cuts = Vec::new();
        for port in way {
            if let Some((cable, _)) = self.wiring.across(*port) {
                let cable = &self.wiring.network.cables[cable];
                cuts.extend(&cable.faults[usize::from(cable.a != *port)].cuts);
            }
            let outages = self.wiring.network.bridge_outages.iter();
            let here = outages.filter(|of| port.node() == Place::Bridge(of.bridge));
            cuts.extend(here.filter_map(|of| Some((of.from, of.until?))));
        }
        cuts
    }
}
