//! Shapers of traffic classes, and preemption of ports.

use crate::simulate::places;
use keys::{KeyError, Origin, Section, all, unknown};
use sim::ethernet::port::{
    Algorithm, Ats, Class, Committed, Config, Counted, CreditBased, Preemption,
};
use sim::ethernet::traffic::StreamId;
use sim::network::{CableEnd, Wiring};
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};
use tsn::{Clock, Cqf};
use wire::{Duration, Instant};

/// Bits per byte, to convert rates.
pub(super) const BITS: u64 = 8;
/// Times of bytes that a frame occupies the line in addition to its own bytes: preamble and gap.
const PREAMBLE_AND_GAP: usize = sim::ethernet::frame::PREAMBLE + sim::ethernet::frame::GAP;

/// A class with its shaper: `"5 video"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassShaper {
    /// Traffic class, 0 to 7.
    pub class: u8,
    /// Name of the shaper.
    pub shaper: String,
}

/// How a shaper selects the frames of its class.
#[derive(Clone, Debug)]
enum Kind {
    Class(Algorithm),
    /// Two classes that are used in turn.
    Cyclic {
        cycle: Duration,
        base: Instant,
    },
}

#[derive(Clone, Debug)]
struct Shaper {
    name: String,
    kind: Kind,
    max_sdu: Option<usize>,
    /// Maximum number of frames in the queue; `None` for the port's value.
    queue_frames: Option<usize>,
    queue_bytes: Option<usize>,
}

impl Shaper {
    fn read(name: String, section: &Section) -> Result<Self, KeyError> {
        let [max_sdu, queue_frames, queue_bytes] =
            ["max_sdu", "queue_frames", "queue_bytes"].map(|key| section.get(key));
        Ok(Self { name, kind: kind(section)?, max_sdu, queue_frames, queue_bytes })
    }

    fn set_up(&self, class: &mut Class) {
        class.max_sdu = self.max_sdu;
        class.queue_frames = self.queue_frames.unwrap_or(class.queue_frames);
        class.queue_bytes = self.queue_bytes.unwrap_or(class.queue_bytes);
        class.algorithm = match &self.kind {
            Kind::Class(algorithm) => algorithm.clone(),
            Kind::Cyclic { .. } => Algorithm::StrictPriority,
        };
    }
}

/// All shapers by name.
#[derive(Clone, Debug, Default)]
pub struct Shapers(Vec<Shaper>);

impl Shapers {
    /// Reads `[shapers]`.
    ///
    /// # Errors
    /// A shaper without a key that its algorithm requires.
    pub fn read(root: &Section) -> Result<Self, KeyError> {
        let named = root.named("shapers").into_iter();
        all(named.map(|(name, section)| Shaper::read(name, &section))).map(Self)
    }

    /// Returns the gate cycle of the cyclic queues of a port: two cycles of the shaper, or the
    /// longest with several shapers; `None` without cyclic queues.
    pub fn cycle(&self, section: &Section) -> Option<Duration> {
        let named = section.list::<ClassShaper>("shapers").into_iter();
        let found =
            named.filter_map(|(by_class, _)| self.0.iter().find(|all| all.name == by_class.shaper));
        let cycle = |shaper: &Shaper| match shaper.kind {
            Kind::Cyclic { cycle, .. } => Some(cycle + cycle),
            Kind::Class(_) => None,
        };
        found.filter_map(cycle).max()
    }

    /// Configures the classes and the preemption of a port from its section. Gates must be set
    /// before.
    ///
    /// # Errors
    /// Unknown shapers, and settings that the port's rate and gates do not permit.
    pub fn set_up(
        &self,
        section: &Section,
        port: &mut Config,
        clock: Clock,
    ) -> Result<(), KeyError> {
        let mut pairs: Vec<(&Shaper, Vec<u8>)> = Vec::new();
        let mut shaped: Vec<u8> = Vec::new();
        for (ClassShaper { class, shaper: name }, origin) in section.list("shapers") {
            if shaped.contains(&class) {
                return Err(
                    origin.fail(format!("class {class} has a shaper already: it takes one"))
                );
            }
            shaped.push(class);
            let Some(shaper) = self.0.iter().find(|shaper| shaper.name == name) else {
                let names: Vec<&str> = self.0.iter().map(|shaper| shaper.name.as_str()).collect();
                return Err(origin.fail(unknown("shaper", &name, &names)));
            };
            shaper.set_up(&mut port.classes[usize::from(class)]);
            if matches!(shaper.kind, Kind::Cyclic { .. }) {
                match pairs.iter_mut().find(|(other, _)| other.name == name) {
                    Some((_, classes)) => classes.push(class),
                    None => pairs.push((shaper, vec![class])),
                }
            }
        }
        for (shaper, classes) in pairs {
            *port = cyclic(shaper, &classes, port.clone(), clock)
                .map_err(|message| section.place("shapers").fail(message))?;
        }
        port.preemption = preemption(section, port)?;
        port.check().map_err(|message| section.place("shapers").fail(message))
    }
}

fn cyclic(shaper: &Shaper, classes: &[u8], port: Config, clock: Clock) -> Result<Config, String> {
    let (Kind::Cyclic { cycle, base, .. }, &[first, second]) = (&shaper.kind, classes) else {
        let (name, count) = (&shaper.name, classes.len());
        return Err(format!(
            "shaper '{name}' is cyclic: exactly two classes take turns, here are {count}"
        ));
    };
    let pair = Cqf { classes: [first, second], cycle: *cycle, base: *base };
    pair.check().map_err(|error| format!("shaper '{}': {error}", shaper.name))?;
    Ok(port.with_cqf(pair, clock))
}

fn kind(section: &Section) -> Result<Kind, KeyError> {
    let needs = |key: &str| {
        let message = format!("[{}] needs {key}, as it is {}", section.name, kind_of(section));
        section.find(key).map(|_| ()).ok_or_else(|| section.origin.fail(message))
    };
    let bits = |key| section.get(key).map_or(0, |bytes: u64| bytes * BITS);
    let counted = match section.text("counted") {
        Some("frame") => Counted::FrameOnly,
        _ => Counted::WithGap,
    };
    let used: &[&str] = match kind_of(section) {
        "cbs" => &["idle_slope", "guard_band_credit", "counted"],
        "ats" => &["rate", "burst", "max_residence", "counted"],
        "ets" => &["weight"],
        "cqf" => &["cycle", "base"],
        _ => &[],
    };
    for key in SPECIAL.iter().filter(|key| !used.contains(key)) {
        if section.find(key).is_some() {
            let message = format!("'{key}' does not apply to {}", kind_of(section));
            return section.fail(key, message);
        }
    }
    let algorithm = match kind_of(section) {
        "cbs" => {
            needs("idle_slope")?;
            let rises_in_guard_band = section.text("guard_band_credit") != Some("frozen");
            let idle_slope = bits("idle_slope");
            Algorithm::CreditBased(CreditBased { idle_slope, counted, rises_in_guard_band })
        }
        "ats" => {
            ["rate", "burst"].into_iter().try_for_each(needs)?;
            let committed = Committed { rate: bits("rate"), burst: bits("burst") };
            let max_residence = section.get("max_residence");
            Algorithm::Ats(Ats { committed, streams: Vec::new(), max_residence, counted })
        }
        "ets" => {
            needs("weight")?;
            Algorithm::Ets { weight: section.get("weight").unwrap_or(0) }
        }
        "cqf" => {
            needs("cycle")?;
            let cycle = section.get("cycle").unwrap_or_default();
            let base = Instant::ZERO + section.get("base").unwrap_or(Duration::ZERO);
            return Ok(Kind::Cyclic { cycle, base });
        }
        _ => Algorithm::StrictPriority,
    };
    Ok(Kind::Class(algorithm))
}

/// Keys of shapers that only some algorithms have.
const SPECIAL: [&str; 9] = [
    "idle_slope",
    "guard_band_credit",
    "counted",
    "rate",
    "burst",
    "max_residence",
    "weight",
    "cycle",
    "base",
];

fn kind_of<'a>(section: &Section<'a>) -> &'a str {
    section.text("algorithm").unwrap_or("strict")
}

fn preemption(section: &Section, port: &Config) -> Result<Option<Preemption>, KeyError> {
    let express: Vec<(u8, Origin)> = section.list("express");
    if express.is_empty() {
        let keys = ["add_frag_size", "verify", "verify_time", "hold_advance", "release_advance"];
        return match keys.iter().find(|key| section.find(key).is_some()) {
            Some(key) => section.fail(key, format!("'{key}' requires 'express'")),
            None => Ok(None),
        };
    }
    let fragment = FragmentSize::new(section.get("add_frag_size").unwrap_or(0));
    let fragment = fragment.expect("its range was checked");
    // A hold must begin before its window by the longest time that a preemptable frame occupies the
    // line and cannot be cut.
    let longest = port.rate.duration(fragment.longest_unsplittable() + PREAMBLE_AND_GAP);
    let mut verify = verification::Config::default();
    verify.enabled = section.text("verify") != Some("off");
    verify.time = section.get("verify_time").unwrap_or(verify.time);
    Ok(Some(Preemption {
        express: express.iter().fold(0, |mask, (class, _)| mask | 1 << class),
        fragment,
        advance: HoldAdvance {
            hold: section.get("hold_advance").unwrap_or(longest),
            release: section.get("release_advance").unwrap_or_default(),
        },
        verify,
    }))
}

/// A port and its class, and a stream with its committed rate and burst at the port.
type CommittedAt = ((CableEnd, usize), (StreamId, Committed));

/// Reads a stream's own committed rate and burst for every port on the stream's path that shapes
/// the stream's class asynchronously.
///
/// # Errors
/// If the stream has only one of the two keys, or no such port is on its path.
pub fn committed(
    section: &Section,
    stream: StreamId,
    wiring: &Wiring<'_>,
) -> Result<Vec<CommittedAt>, KeyError> {
    let [rate, burst] = ["committed_rate", "committed_burst"].map(|key| section.get::<u64>(key));
    let (Some(rate), Some(burst)) = (rate, burst) else {
        let given = [(rate, "committed_rate"), (burst, "committed_burst")];
        let alone = given.into_iter().find_map(|(value, key)| value.map(|_| key));
        return alone.map_or(Ok(Vec::new()), |key| {
            section.fail(key, "committed_rate and committed_burst go together")
        });
    };
    let committed = Committed { rate: rate * BITS, burst: burst * BITS };
    let way = places::stream_routes(wiring, stream);
    let shaped = way
        .into_iter()
        .filter(|egress| matches!(egress.port.classes[egress.queue].algorithm, Algorithm::Ats(_)));
    let found: Vec<_> =
        shaped.map(|egress| ((egress.place, egress.queue), (stream, committed))).collect();
    if found.is_empty() {
        let message =
            "'committed_rate' has no effect: no port on the path has a shaper ats for its class";
        return section.fail("committed_rate", message);
    }
    Ok(found)
}
