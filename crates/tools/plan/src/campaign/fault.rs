//! Faults of a campaign: kinds, and where they are in a plan.

use super::scenario::{Scenario, chance, one_of};
use schemars::JsonSchema;
use serde::Serialize;
use stats::random::Random;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Frames vanish.
    Loss,
    /// Frames arrive with wrong bits.
    Corruption,
    /// Frames are late.
    Delay,
    /// Frames are late, and later ones pass them.
    Reordering,
    /// Frames arrive twice.
    Duplication,
    /// A cable is cut.
    Cut,
    /// A cable is cut in one direction.
    CutOneWay,
    /// A bridge loses its power.
    BridgeOutage,
    /// A station forgets its connections; the other ends are half-open.
    ConnectionReset,
    /// The processor of a node does other work.
    Stall,
    /// A device node and its drive lose their power, or the node is killed and starts again.
    Outage,
    /// The process of a device node and its drive is killed, and another one goes on.
    Kill,
    /// The driver resets its drives.
    DriveReset,
    /// Accesses to the media begin late.
    LateMedia,
    /// Accesses to the media fail.
    MediaError,
    /// A completion entry is not sent.
    LostCompletion,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 16] = [
        Self::Loss,
        Self::Corruption,
        Self::Delay,
        Self::Reordering,
        Self::Duplication,
        Self::Cut,
        Self::CutOneWay,
        Self::BridgeOutage,
        Self::ConnectionReset,
        Self::Stall,
        Self::Outage,
        Self::DriveReset,
        Self::LateMedia,
        Self::MediaError,
        Self::LostCompletion,
        Self::Kill,
    ];

    /// Whether the value is a share of the frames on a cable.
    pub fn is_share(self) -> bool {
        let shares =
            [Self::Loss, Self::Corruption, Self::Delay, Self::Reordering, Self::Duplication];
        shares.contains(&self)
    }

    /// Whether a link may lose its connection by the fault.
    pub fn interrupts(self) -> bool {
        !matches!(
            self,
            Self::DriveReset | Self::LateMedia | Self::MediaError | Self::LostCompletion
        )
    }

    /// Whether commands may fail by the fault although no link goes down.
    pub fn fails_commands(self) -> bool {
        matches!(self, Self::DriveReset | Self::MediaError | Self::LostCompletion)
    }
}

/// A fault as a value of a key of a plan.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub kind: Kind,
    pub table: String,
    pub key: &'static str,
    pub value: String,
}

impl Fault {
    /// Draws the faults of a scenario.
    pub fn draw(scenario: &Scenario, random: &mut Random) -> Vec<Self> {
        let mut faults: Vec<Self> = Vec::new();
        for _ in 0..random.within(1..=6) {
            let fault = Self::draw_one(scenario, random);
            let is_new = |fault: &Self| {
                let same = |other: &Self| (&other.table, other.key) == (&fault.table, fault.key);
                !fault.kind.is_share() || !faults.iter().any(same)
            };
            faults.extend(fault.filter(is_new));
        }
        faults
    }

    /// Draws the kill of a device node's process; `None` if the node has another outage then.
    pub fn kill(scenario: &Scenario, random: &mut Random) -> Option<Self> {
        let at = random.within(scenario.span[0]..=scenario.span[1]);
        let most = one_of(random, &[200, 5_000, 100_000, 900_000]);
        let until = at + random.within(1..=most);
        let node = &scenario.nodes[random.below(scenario.nodes.len() as u64) as usize];
        let (table, value) = (format!("nodes.{node}"), format!("{at}us..{until}us"));
        let kill = Self { kind: Kind::Kill, table, key: "kills", value };
        let is_alone = |other: &Self| {
            let [from, end] = other.span();
            !matches!(other.kind, Kind::Kill | Kind::Outage)
                || other.table != kill.table
                || until < from
                || end < at
        };
        scenario.faults.iter().all(is_alone).then_some(kill)
    }

    /// When a fault with a span begins and ends, in microseconds.
    fn span(&self) -> [u64; 2] {
        let mut times = self.value.split("..").map(|time| time.trim_end_matches("us").parse());
        [times.next(), times.next()].map(|time| time.and_then(Result::ok).unwrap_or_default())
    }

    /// Draws a fault; `None` if the scenario cannot have the fault.
    fn draw_one(scenario: &Scenario, random: &mut Random) -> Option<Self> {
        let kind = one_of(random, &Kind::ALL[..15]);
        let [from, until] = scenario.span;
        let at = random.within(from..=until);
        let pick = |random: &mut Random, names: &[String]| {
            names[random.below(names.len() as u64) as usize].clone()
        };
        let cable = |random: &mut Random| {
            let (name, _) = &scenario.cables[random.below(scenario.cables.len() as u64) as usize];
            format!("cables.{name}")
        };
        // Below the time after which a connection is lost, above it, and above short survivals.
        let most = one_of(random, &[500, 2_000, 8_000, 30_000, 150_000, 900_000]);
        let span = format!("{at}us..{}us", at + random.within(1..=most));
        let station = |random: &mut Random| match chance(random, 50) {
            true => format!("hosts.{}.link", pick(random, &scenario.hosts)),
            false => format!("nodes.{}", pick(random, &scenario.nodes)),
        };
        let drive = |random: &mut Random| format!("drives.{}", pick(random, &scenario.drives));
        let share = |random: &mut Random, most: u64| format!("{}ppm", random.within(500..=most));
        let (table, key, value) = match kind {
            Kind::Loss => (cable(random), "loss", share(random, 60_000)),
            Kind::Corruption => (cable(random), "corruption", share(random, 40_000)),
            Kind::Delay => (cable(random), "delay", share(random, 200_000)),
            Kind::Reordering => (cable(random), "reordering", share(random, 100_000)),
            Kind::Duplication => (cable(random), "duplication", share(random, 100_000)),
            Kind::Cut => (cable(random), "cuts", span),
            Kind::CutOneWay => (cable(random), one_of(random, &crate::tables::ONE_WAY), span),
            Kind::BridgeOutage if !scenario.bridges.is_empty() => {
                (format!("bridges.{}", pick(random, &scenario.bridges)), "outages", span)
            }
            Kind::ConnectionReset => (station(random), "connection_resets", format!("{at}us")),
            Kind::Stall if scenario.is_serial => (station(random), "stalls", span),
            Kind::Outage if !scenario.is_cascade => {
                (format!("nodes.{}", pick(random, &scenario.nodes)), "outages", span)
            }
            // While a link behind a switch node is interrupted, register reads return all ones.
            Kind::DriveReset if !scenario.is_cascade => {
                let host = pick(random, &scenario.hosts);
                (format!("hosts.{host}"), "drive_resets", format!("{at}us"))
            }
            Kind::LateMedia => {
                let (late, count) = (random.within(1..=most), random.within(1..=5));
                (drive(random), "faults", format!("late={late}us,at={at}us,count={count}"))
            }
            Kind::MediaError => {
                let error = one_of(random, &["media", "no-space", "not-ready", "internal"]);
                let count = random.within(1..=3);
                (drive(random), "faults", format!("error={error},at={at}us,count={count}"))
            }
            // The driver waits for seconds.
            Kind::LostCompletion if scenario.has_lasting_links() && chance(random, 30) => {
                (drive(random), "faults", format!("lost-completion,at={at}us"))
            }
            Kind::BridgeOutage
            | Kind::Stall
            | Kind::Outage
            | Kind::DriveReset
            | Kind::LostCompletion
            | Kind::Kill => return None,
        };
        Some(Self { kind, table, key, value })
    }
}
