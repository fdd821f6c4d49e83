//! Random phases between hosts, streams, gate cycles and clocks, and trials that shift them.

use super::owners::is_without_hosts;
use super::port::Parts;
use super::section;
use super::section::Defaults;
use super::units::Offset;
use super::{Plan, Planned, port, workload};
use keys::{KeyError, Section, allowed};
use sim::ethernet::traffic::{Pattern, StreamId};
use sim::workload::Workload;
use stats::random::Random;
use std::collections::BTreeSet;
use wire::Duration;

/// A value with a random phase: the start of a host or stream, or the offset of a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shift {
    /// Dotted path of the key.
    pub key: String,
    /// Value in the plan in picoseconds; the offset of a clock may be negative.
    pub written_ps: i64,
    /// Trials add a time shorter than this.
    pub within: Duration,
}

/// A plan with other phases.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The time that is added to each shifted value; empty for the plan as written.
    pub added: Vec<Duration>,
    /// Keys and values that change the plan to this trial; empty for the plan as written.
    pub set: Vec<(String, String)>,
    /// The changed plan.
    pub planned: Planned,
}

impl Plan {
    /// Keys that trials can shift: starts of hosts, starts of periodic streams, and offsets of
    /// clocks.
    pub const SHIFTED: [&str; 3] = ["startdelay", "start", "clock_offset"];

    /// Returns `count` trials: the plan as written, and trials that shift the starts and clocks
    /// with these `keys` (of [`SHIFTED`](Self::SHIFTED)). Every range is divided into `count` - 1
    /// equal parts. Each further trial uses another part, in a random order for each range: Latin
    /// hypercube sampling (M. McKay, R. Beckman and W. Conover, "A Comparison of Three Methods for
    /// Selecting Values of Input Variables", Technometrics 21(2), 1979). The same seed gives the
    /// same trials.
    ///
    /// # Errors
    /// As [`Plan::build`], and if nothing in the plan is periodic.
    pub fn phases(
        &self,
        count: u64,
        seed: u64,
        keys: &[String],
    ) -> Result<(Vec<Shift>, Vec<Trial>), KeyError> {
        let planned = self.build()?;
        let shifts = self.shifts(&planned, keys)?;
        let others = count.saturating_sub(1);
        let drawn: Vec<Vec<Duration>> =
            shifts.iter().map(|shift| shift.draws(others, seed)).collect();
        let mut trials = vec![Trial { added: Vec::new(), set: Vec::new(), planned }];
        for trial in 0..others as usize {
            trials.push(self.trial(&shifts, drawn.iter().map(|drawn| drawn[trial]).collect())?);
        }
        Ok((shifts, trials))
    }

    /// Returns the trial that adds a time to each of the `shifts`.
    ///
    /// # Errors
    /// As [`Plan::build`].
    pub fn trial(&self, shifts: &[Shift], added: Vec<Duration>) -> Result<Trial, KeyError> {
        let pairs = shifts.iter().zip(&added);
        let set: Vec<_> =
            pairs.map(|(shift, added)| (shift.key.clone(), shift.value(*added))).collect();
        let mut shifted = self.clone();
        set.iter().try_for_each(|(key, value)| shifted.set(key, value, "--set"))?;
        Ok(Trial { added, set, planned: shifted.build()? })
    }

    /// Returns all values with a random phase that have one of these keys.
    fn shifts(&self, planned: &Planned, keys: &[String]) -> Result<Vec<Shift>, KeyError> {
        let root = &section::root(&self.value);
        let defaults = Defaults::read(root);
        let mut shifts = clocks(root, &defaults)?;
        shifts.extend(streams(root, planned));
        let cycle = shifts.iter().filter(|shift| shift.key.ends_with("clock_offset"));
        let cycle = cycle.map(|shift| shift.within).max().unwrap_or_default();
        let longest = shifts.iter().map(|shift| shift.within).max().unwrap_or_default();
        shifts.extend(hosts(root, &defaults, planned, cycle, longest));
        if shifts.is_empty() {
            let message = "nothing in this plan repeats: without gates, periodic streams, and hosts \
                        with rate, thinktime or gap there are no phases to try";
            return Err(root.origin.fail(message));
        }
        let last = |shift: &Shift| shift.key.rsplit('.').next().map(str::to_owned);
        shifts.retain(|shift| last(shift).is_some_and(|key| keys.contains(&key)));
        if shifts.is_empty() {
            let message = format!("this plan has no phases of {} to try", keys.join(", "));
            return Err(root.origin.fail(message));
        }
        Ok(shifts)
    }
}

impl Shift {
    fn new(key: String, written: Duration, within: Duration) -> Self {
        Self { key, written_ps: written.as_ps() as i64, within }
    }

    /// Draws one added time per trial, each from another part of the range.
    fn draws(&self, count: u64, seed: u64) -> Vec<Duration> {
        const STEPS: u64 = 1 << 20;
        let mut random = Random::for_component(seed, &format!("phase of {}", self.key));
        let mut parts: Vec<u64> = (0..count).collect();
        for at in (1..parts.len()).rev() {
            parts.swap(at, random.below(at as u64 + 1) as usize);
        }
        let range = u128::from(self.within.as_ps());
        let draw = |part: u64| {
            let steps = u128::from(part * STEPS + random.below(STEPS));
            let ps = (range * steps / u128::from(count * STEPS)) as u64;
            Duration::from_ps(ps / self.grain() * self.grain())
        };
        parts.into_iter().map(draw).collect()
    }

    /// Added times are multiples of this, in picoseconds. Whole nanoseconds are easier to read.
    pub(crate) fn grain(&self) -> u64 {
        if self.within.as_ps() > 1_000_000 { 1_000 } else { 1 }
    }

    /// Returns the value of the key with `added` added.
    fn value(&self, added: Duration) -> String {
        let ps = self.written_ps + added.as_ps() as i64;
        let sign = if ps < 0 { "-" } else { "" };
        format!("{sign}{}", allowed::time(Duration::from_ps(ps.unsigned_abs())))
    }
}

/// Returns the clocks of stations and bridges with gates, each with its cycle as range. Copies
/// share one range.
fn clocks(root: &Section, defaults: &Defaults) -> Result<Vec<Shift>, KeyError> {
    let parts = Parts::read(root)?;
    let (mut shifts, mut known) = (Vec::new(), BTreeSet::new());
    let mut add = |key: String, section: &Section, ports: &[(String, Section)]| {
        let mut cycle = None;
        for section in std::iter::once(section).chain(ports.iter().map(|(_, port)| port)) {
            cycle = cycle.max(parts.cycle(section)?);
        }
        let Offset(written_ps) = section.get("clock_offset").unwrap_or(Offset(0));
        if let Some(within) = cycle
            && known.insert(key.clone())
        {
            shifts.push(Shift { key, written_ps, within });
        }
        Ok::<(), KeyError>(())
    };
    for (path, host) in host_sections(root, defaults) {
        if host.text("transport").or(root.text("transport")) == Some("direct") {
            continue;
        }
        let key = path.map_or("link.clock_offset".into(), |p| format!("{p}.link.clock_offset"));
        add(key, &host.table("link").with_defaults(&defaults.link), &[])?;
    }
    let named = !root.named("nodes").is_empty();
    for (name, section) in root.named_or("nodes", "device", &defaults.link) {
        let path = if named { format!("nodes.{name}") } else { "link".to_owned() };
        add(format!("{path}.clock_offset"), &section, &[])?;
    }
    for (name, section) in root.named("bridges") {
        add(format!("bridges.{name}.clock_offset"), &section, &port::tables(&section))?;
    }
    Ok(shifts)
}

/// Returns the tables of hosts with their paths; none for the only host of a plan without
/// `[hosts]`.
fn host_sections<'a>(
    root: &Section<'a>,
    defaults: &Defaults<'a>,
) -> Vec<(Option<String>, Section<'a>)> {
    if is_without_hosts(root) {
        return Vec::new();
    }
    let named = !root.named("hosts").is_empty();
    let named_section = |(name, section)| (named.then(|| format!("hosts.{name}")), section);
    root.named_or("hosts", "host", &defaults.host).into_iter().map(named_section).collect()
}

/// Returns the periodic streams, each with its interval as range.
fn streams(root: &Section, planned: &Planned) -> Vec<Shift> {
    let shift = |((name, section), (_, id)): ((String, Section), &(String, StreamId))| {
        let traffic = planned.config.network.stream(*id);
        let Pattern::Periodic(interval) = traffic.pattern else { return None };
        // A stream must start before it stops.
        let left = traffic.stop.map_or(interval, |stop| stop.since(traffic.start));
        let written = section.get("start").unwrap_or_default();
        Some(Shift::new(format!("traffic.{name}.start"), written, interval.min(left)))
    };
    root.named("traffic").into_iter().zip(&planned.streams).filter_map(shift).collect()
}

/// Returns the hosts. The range is the host's period or the longest gate cycle, whichever is
/// longer; without either, `longest`, the longest of all ranges.
fn hosts(
    root: &Section,
    defaults: &Defaults,
    planned: &Planned,
    cycle: Duration,
    longest: Duration,
) -> Vec<Shift> {
    let sections = host_sections(root, defaults).into_iter();
    let shifts = sections.filter_map(|(path, section)| {
        let key = path
            .as_ref()
            .map_or("workload.startdelay".to_owned(), |path| format!("{path}.workload.startdelay"));
        let workload = workload::host_section(&section, root);
        let copy = |name: &String| match &path {
            Some(path) => {
                let name = format!("hosts.{name}");
                name == *path || name.starts_with(&format!("{path}."))
            }
            None => true,
        };
        let at = planned.hosts.iter().position(copy)?;
        let own = period(&planned.config.hosts[at].workload).unwrap_or_default().max(cycle);
        let within = if own == Duration::ZERO { longest } else { own };
        let written = workload.get("startdelay").unwrap_or_default();
        (within > Duration::ZERO).then(|| Shift::new(key, written, within))
    });
    shifts.collect()
}

/// Returns the period of a workload, if it has one.
fn period(workload: &Workload) -> Option<Duration> {
    let period = match workload {
        Workload::Fio(fio) => fio.thinktime.max(fio.interval().unwrap_or_default()),
        Workload::ConfigReads { gap, .. } => *gap,
        Workload::Dd { .. } | Workload::Replay(_) | Workload::Idle => return None,
    };
    (period > Duration::ZERO).then_some(period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAN: &str = "transport = \"tsn\"\n[hosts.h]\n[nodes.n]\nschedule = \"s\"\n[bridges.b]\n\
        schedule = \"s\"\nclock_offset = \"-3us\"\n[bridges.free]\n[schedules.s]\n\
        entries = [\"S ff 500us\"]\n[cables.x]\na = \"h\"\nb = \"b\"\n[cables.y]\na = \"b\"\n\
        b = \"free\"\n[cables.z]\na = \"free\"\nb = \"n\"\n[traffic.p]\nfrom = \"h\"\nto = \"n\"\n\
        interval = \"100us\"\nstart = \"1ms\"\n[traffic.q]\nfrom = \"h\"\nto = \"n\"\n\
        interval = \"100us\"\npattern = \"poisson\"\n[workload]\nrw = \"read\"\n";

    fn all() -> Vec<String> {
        Plan::SHIFTED.map(str::to_owned).into()
    }

    fn shifts(text: &str) -> Vec<(String, i64, u64)> {
        let (shifts, _) = Plan::parse("p.toml", text).unwrap().phases(2, 1, &all()).unwrap();
        let values = |shift: Shift| (shift.key, shift.written_ps / 1_000, shift.within.as_ns());
        shifts.into_iter().map(values).collect()
    }

    fn expected(rows: &[(&str, i64, u64)]) -> Vec<(String, i64, u64)> {
        rows.iter().map(|(key, written, within)| ((*key).to_owned(), *written, *within)).collect()
    }

    /// A clock without gates and a Poisson process have no phase.
    #[test]
    fn all_free_phases_are_shifted() {
        let common = [
            ("nodes.n.clock_offset", 0, 500_000),
            ("bridges.b.clock_offset", -3_000, 500_000),
            ("traffic.p.start", 1_000_000, 100_000),
        ];
        let with = |host| expected(&[&common[..], &[host]].concat());
        assert_eq!(shifts(PLAN), with(("hosts.h.workload.startdelay", 0, 500_000)));
        // The host's period is longer than the cycle: 4096 bytes at 4 MB/s take 1024 us.
        let rate = format!("{PLAN}rate = \"4MB/s\"\nstartdelay = \"7us\"\n");
        assert_eq!(shifts(&rate), with(("hosts.h.workload.startdelay", 7_000, 1_024_000)));
    }

    #[test]
    fn a_plan_without_tables_is_shifted_by_the_keys_that_it_can_have() {
        let text = "transport = \"tsn\"\n[link]\nschedule = \"s\"\n[schedules.s]\n\
                    entries = [\"S ff 1ms\"]\n[workload]\nrw = \"read\"\n";
        let rows = [("link.clock_offset", 0, 1_000_000), ("workload.startdelay", 0, 1_000_000)];
        assert_eq!(shifts(text), expected(&rows));
        let stream = "[nodes.device]\n[nodes.n]\n[drive]\nnode = \"device\"\n[bridges.b]\n[traffic.t]\nfrom = \"n\"\nto = \"host\"\ninterval = \"1ms\"\n\
                      start = \"1us\"\nstop = \"500us\"\n[workload]\nrw = \"read\"\n";
        let rows = [("traffic.t.start", 1_000, 499_000), ("workload.startdelay", 0, 499_000)];
        assert_eq!(shifts(stream), expected(&rows), "it stops after it has started");
        let nothing = Plan::parse("p.toml", "[workload]\nrw = \"read\"\n").unwrap();
        let error = nothing.phases(2, 1, &all()).unwrap_err().to_string();
        assert!(error.starts_with("p.toml:1:1: nothing in this plan repeats"), "{error}");
    }

    #[test]
    fn trial_equals_the_plan_with_its_set_options() {
        let plan = Plan::parse("p.toml", PLAN).unwrap();
        let (shifts, trials) = plan.phases(5, 9, &all()).unwrap();
        assert_eq!(trials.len(), 5);
        assert_eq!(trials[0].set, []);
        for trial in &trials[1..] {
            assert_eq!(trial.set.len(), shifts.len());
            let set = |plan: Plan, (key, value): &(String, String)| plan.with(key, value, "--set");
            let again = trial.set.iter().try_fold(plan.clone(), set).unwrap().build().unwrap();
            assert_eq!(format!("{again:?}"), format!("{:?}", trial.planned));
        }
        let sets =
            |seed| plan.phases(5, seed, &all()).unwrap().1.into_iter().map(|trial| trial.set);
        assert!(sets(9).eq(sets(9)) && !sets(9).eq(sets(10)), "drawn from the seed alone");
    }

    /// Without the keys of clocks, clocks stay, and the other values are drawn as before.
    #[test]
    fn trials_shift_only_the_named_keys() {
        let plan = Plan::parse("p.toml", PLAN).unwrap();
        let (shifts, some) = plan.phases(3, 1, &all()[..2]).unwrap();
        let keys: Vec<_> = shifts.into_iter().map(|shift| shift.key).collect();
        assert_eq!(keys, ["traffic.p.start", "hosts.h.workload.startdelay"]);
        let (_, every) = plan.phases(3, 1, &all()).unwrap();
        assert!(some[2].set.iter().all(|pair| every[2].set.contains(pair)));
        let reads = "[hosts.h]\n[workload]\nconfigreads = 1\n";
        let reads = Plan::parse("p.toml", reads).unwrap();
        let error = reads.phases(2, 1, &all()[1..]).unwrap_err().to_string();
        assert_eq!(error, "p.toml:1:1: this plan has no phases of start, clock_offset to try");
    }

    proptest! {
        /// The trials use every part of the range once, and no value outside.
        #[test]
        fn trials_sample_each_part_of_the_period(
            count in 1_u64..200,
            within in 1_u64..10_000_000_000_000,
            seed: u64,
        ) {
            let shift = Shift::new("k".into(), Duration::ZERO, Duration::from_ps(within));
            let mut draws = shift.draws(count, seed);
            draws.sort_unstable();
            // The values are rounded down to a nanosecond, or to a picosecond.
            let step = if within > 1_000_000 { 1_000 } else { 1 };
            for (part, draw) in (0..count).zip(draws) {
                let end = |part: u64| (u128::from(within) * u128::from(part) / u128::from(count)) as u64;
                prop_assert!(draw.as_ps() + step > end(part), "{draw} in part {part}");
                prop_assert!(draw.as_ps() <= end(part + 1) && draw.as_ps() < within);
            }
        }

        /// The value of a trial is exactly the written value plus the added time.
        #[test]
        fn values_are_exact(written in -2_000_000_i64..2_000_000, added in 0_u64..3_000_000) {
            use keys::KeyValue;
            let shift = Shift { key: "k".into(), written_ps: written, within: Duration::ZERO };
            let Offset(read) = Offset::parse(&shift.value(Duration::from_ps(added))).unwrap();
            prop_assert_eq!(read, written + added as i64);
        }
    }
}
