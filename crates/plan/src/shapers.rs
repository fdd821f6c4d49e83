//! Shapers of traffic classes, and what else a port does with its frames.

use super::error_text::unknown;
use super::section::{Section, set_fields};
use super::value::{Origin, PlanError};
use sim::ethernet::port::{
    Algorithm, Ats, Class, Committed, Config, Counted, CreditBased, Preemption,
};
use sim::ethernet::traffic::StreamId;
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};
use tsn::{Clock, Cqf, QUEUES};
use wire::{Duration, Instant};

/// Bits a second of a rate in bytes.
const BITS: u64 = 8;
/// The largest gap behind a frame that cannot be cut, in frame bytes: preamble and gap.
const PREAMBLE_AND_GAP: usize = sim::ethernet::frame::PREAMBLE + sim::ethernet::frame::GAP;

/// A class with its shaper: `"5 video"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassShaper {
    /// 0 to 7.
    pub class: u8,
    /// The name of its shaper.
    pub shaper: String,
}

/// What a shaper does with its class.
#[derive(Clone, Debug)]
enum Kind {
    Class(Class),
    /// Two classes that take turns.
    Cyclic {
        class: Class,
        cycle: Duration,
        base: Instant,
    },
}

#[derive(Clone, Debug)]
struct Shaper {
    name: String,
    origin: Origin,
    kind: Kind,
}

/// All shapers by name.
#[derive(Clone, Debug, Default)]
pub struct Shapers(Vec<Shaper>);

impl Shapers {
    /// Reads `[shapers]`.
    ///
    /// # Errors
    /// A shaper without what its kind needs.
    pub fn read(root: &Section) -> Result<Self, PlanError> {
        let shaper = |(name, section): (String, Section)| {
            let (kind, origin) = (kind(&section)?, section.origin.clone());
            Ok(Shaper { name, origin, kind })
        };
        root.named("shapers").into_iter().map(shaper).collect::<Result<_, _>>().map(Self)
    }

    /// Sets up the classes and the preemption of a port as its section says. Gates come before.
    ///
    /// # Errors
    /// Unknown shapers, and what a port of its rate and gates cannot do.
    pub fn set_up(
        &self,
        section: &Section,
        port: &mut Config,
        clock: Clock,
    ) -> Result<(), PlanError> {
        let mut pairs: Vec<(&Shaper, Vec<u8>)> = Vec::new();
        for (ClassShaper { class, shaper: name }, origin) in section.list("shapers") {
            let Some(shaper) = self.0.iter().find(|shaper| shaper.name == name) else {
                let names: Vec<&str> = self.0.iter().map(|shaper| shaper.name.as_str()).collect();
                return Err(origin.fail(unknown("shaper", &name, &names)));
            };
            let (Kind::Class(of) | Kind::Cyclic { class: of, .. }) = &shaper.kind;
            port.classes[usize::from(class)] = of.clone();
            if matches!(shaper.kind, Kind::Cyclic { .. }) {
                match pairs.iter_mut().find(|(other, _)| other.name == name) {
                    Some((_, classes)) => classes.push(class),
                    None => pairs.push((shaper, vec![class])),
                }
            }
        }
        for (shaper, classes) in pairs {
            *port = cyclic(shaper, &classes, port.clone(), clock)
                .map_err(|what| section.place("shapers").fail(what))?;
        }
        port.preemption = preemption(section, port)?;
        port.check().map_err(|what| section.place("shapers").fail(what))
    }
}

fn cyclic(shaper: &Shaper, classes: &[u8], port: Config, clock: Clock) -> Result<Config, String> {
    let (Kind::Cyclic { cycle, base, .. }, &[first, second]) = (&shaper.kind, classes) else {
        return Err(format!("shaper '{}' is cyclic: two classes take turns", shaper.name));
    };
    let pair = Cqf { classes: [first, second], cycle: *cycle, base: *base };
    pair.check().map_err(|error| format!("shaper '{}': {error}", shaper.name))?;
    Ok(port.with_cqf(pair, clock))
}

fn kind(section: &Section) -> Result<Kind, PlanError> {
    let needs = |key: &str| {
        let what = format!("[{}] needs {key}, as it is {}", section.name, algorithm(section));
        section.find(key).map(|_| ()).ok_or_else(|| section.origin.fail(what))
    };
    let bits = |key| section.get(key).map_or(0, |bytes: u64| bytes * BITS);
    let counted = match section.text("counted") {
        Some("frame") => Counted::FrameOnly,
        _ => Counted::WithGap,
    };
    let used: &[&str] = match algorithm(section) {
        "cbs" => &["idle_slope", "guard_band_credit", "counted"],
        "ats" => &["rate", "burst", "max_residence", "counted"],
        "ets" => &["weight"],
        "cqf" => &["cycle", "base"],
        _ => &[],
    };
    for key in SPECIAL.iter().filter(|key| !used.contains(key)) {
        if section.find(key).is_some() {
            let what = format!("{key} means nothing to {}", algorithm(section));
            return section.fail(key, what);
        }
    }
    let mut class = Class::default();
    set_fields!(class, section, queue_frames queue_bytes);
    class.max_sdu = section.get("max_sdu");
    class.algorithm = match algorithm(section) {
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
            return Ok(Kind::Cyclic { class, cycle, base });
        }
        _ => Algorithm::StrictPriority,
    };
    Ok(Kind::Class(class))
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

fn algorithm<'a>(section: &Section<'a>) -> &'a str {
    section.text("algorithm").unwrap_or("strict")
}

/// The preemption of a port, if it has express classes.
fn preemption(section: &Section, port: &Config) -> Result<Option<Preemption>, PlanError> {
    let express: Vec<(u8, Origin)> = section.list("express");
    if express.is_empty() {
        let keys = ["add_frag_size", "verify", "verify_time", "hold_advance", "release_advance"];
        return match keys.iter().find(|key| section.find(key).is_some()) {
            Some(key) => section.fail(key, format!("{key} means nothing without express")),
            None => Ok(None),
        };
    }
    let fragment = FragmentSize::new(section.get("add_frag_size").unwrap_or(0));
    let fragment = fragment.expect("its range was checked");
    // Until no preemptable frame is on the line: the longest that cannot be cut.
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

/// Gives a stream its own committed rate and burst wherever its class is shaped asynchronously.
pub fn commit(port: &mut Config, stream: StreamId, committed: Committed) {
    for class in 0..QUEUES {
        if let Algorithm::Ats(shaper) = &mut port.classes[class].algorithm {
            shaper.streams.push((stream, committed));
        }
    }
}
