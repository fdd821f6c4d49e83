//! Bandwidth that tunnels and streams reserve on their paths. It is admitted or rejected before the
//! simulation runs (IEEE 802.1Q-2022, 34.3 and clause 35: a share of each port's rate can be
//! reserved).

use super::Planned;
use super::overload::{self, megabits};
use super::owners::Owners;
use super::shapers::BITS;
use super::units::Form as _;
use crate::simulate::places::{self, Egress};
use keys::{KeyError, Mistakes, Origin, Section};
use sim::ethernet::frame::{FCS, HEADER, MTU, PREAMBLE, TAG};
use sim::network::{CableEnd, Wiring};
use sim::transport::TransportConfig;
use sim::world::{Attached, TunnelLink};
use stats::random::Probability;
use std::collections::BTreeMap;
use tsn::QUEUES;

/// Default of deltaBandwidth (802.1Q-2022, 34.3.1, of the highest class): 75 %.
const RESERVABLE: Probability = Probability::from_ppm(750_000).expect("at most all");

/// The reservation of one tunnel or stream in one direction.
struct Reservation<'a> {
    owner: String,
    /// Bits per second on the line, preamble and gap included.
    rate: u64,
    origin: Origin,
    /// The ports of all its paths.
    way: Vec<Egress<'a>>,
}

/// Admits each reservation on every port of its path, in the order of the plan: hosts, then
/// streams.
///
/// # Errors
/// Each reservation for which a port has too little left, with the port and its reservations.
pub(super) fn admit(
    planned: &Planned,
    root: &Section<'_>,
    owners: &Owners<'_>,
) -> Result<(), KeyError> {
    let reservable =
        root.table("link").parsed("reservable", Probability::parse).unwrap_or(RESERVABLE);
    let wiring = &planned.config.network.wiring();
    let mut all = tunnels(planned, wiring, owners)?;
    all.extend(streams(planned, wiring, root));
    let mut ports: BTreeMap<CableEnd, Reserved<'_>> = BTreeMap::new();
    let mut mistakes = Mistakes::default();
    for new in &all {
        let way = &new.way;
        for egress in way {
            ports.entry(egress.place).or_default().add(egress.queue, new);
        }
        let excess = |egress: &Egress<'_>| {
            let excess = Excess::find(egress, &ports[&egress.place], reservable)?;
            Some(excess.sentence(new, &planned.port_name(egress.place)))
        };
        if let Some(message) = way.iter().find_map(excess) {
            mistakes.note(new.origin.fail(message));
            // The rejected reservation leaves its share to the next one.
            for egress in way {
                ports.entry(egress.place).or_default().remove(egress.queue, new);
            }
        }
    }
    mistakes.or(())
}

/// The reservations of a port.
#[derive(Default)]
struct Reserved<'a> {
    /// Each with its class.
    all: Vec<(usize, &'a Reservation<'a>)>,
    /// Sums of the rates by class.
    rates: [u64; QUEUES],
}

impl<'a> Reserved<'a> {
    fn add(&mut self, class: usize, new: &'a Reservation<'a>) {
        self.all.push((class, new));
        self.rates[class] += new.rate;
    }

    /// Removes the last reservation.
    fn remove(&mut self, class: usize, last: &Reservation) {
        self.all.pop();
        self.rates[class] -= last.rate;
    }
}

/// A reservation that exceeds the reservable rate of a port, in bits per second.
struct Excess<'a> {
    lent: u64,
    why: String,
    wanted: Vec<&'a Reservation<'a>>,
}

impl<'a> Excess<'a> {
    fn find(egress: &Egress<'_>, reserved: &Reserved<'a>, reservable: Probability) -> Option<Self> {
        let class = egress.queue;
        let line = reservable.part_of(egress.rate.bits_per_second());
        if reserved.rates.iter().sum::<u64>() > line {
            let wanted = reserved.all.iter().map(|(_, one)| *one).collect();
            let why = format!("{} % of its rate", reservable.part_of(100));
            return Some(Self { lent: line, why, wanted });
        }
        let lent = gated(egress);
        (reserved.rates[class] > lent).then(|| {
            let of_class = reserved.all.iter().filter(|(other, _)| *other == class);
            let why = format!("what its gates leave to class {class}");
            Self { lent, why, wanted: of_class.map(|(_, one)| *one).collect() }
        })
    }

    fn sentence(&self, new: &Reservation, port: &str) -> String {
        let part = |one: &&Reservation| format!("{} {}", one.owner, megabits(one.rate));
        let parts: Vec<String> = self.wanted.iter().map(part).collect();
        format!(
            "{} cannot reserve {}: {port} lends {}, {}, and {} are wanted there: {}",
            new.owner,
            megabits(new.rate),
            megabits(self.lent),
            self.why,
            megabits(sum(&self.wanted)),
            parts.join(", ")
        )
    }
}

fn sum(all: &[&Reservation]) -> u64 {
    all.iter().map(|one| one.rate).sum()
}

/// Returns the bits per second that the gates leave to the link's class, with the longest frames.
fn gated(egress: &Egress<'_>) -> u64 {
    let longest = egress.rate.duration(PREAMBLE + HEADER + TAG + MTU + FCS);
    let share = overload::gated(egress, &[egress.queue], longest);
    (share * egress.rate.bits_per_second() as f64) as u64
}

/// Returns both directions of every tunnel of hosts with a reservation.
fn tunnels<'a>(
    planned: &Planned,
    wiring: &Wiring<'a>,
    owners: &Owners<'_>,
) -> Result<Vec<Reservation<'a>>, KeyError> {
    let mut all = Vec::new();
    for (owner, host) in owners.hosts.iter().zip(&planned.config.hosts) {
        let Some(rate) = owner.section.get::<u64>("reserve") else { continue };
        if let Attached::Direct(_) = &host.attached {
            return owner.section.fail("reserve", "'reserve' requires a network");
        }
        let links = host.links();
        let transports = links.iter().flat_map(TunnelLink::transports);
        for ([host, device], priority) in transports.filter_map(TransportConfig::stations) {
            let origin = owner.section.place("reserve");
            let to = |from, to| Reservation {
                owner: format!("host {}", owner.name),
                rate: rate * BITS,
                origin: origin.clone(),
                way: places::all_routes(wiring, from, to, priority),
            };
            all.extend([to(host, device), to(device, host)]);
        }
    }
    Ok(all)
}

/// Returns the reservations of streams.
fn streams<'a>(planned: &Planned, wiring: &Wiring<'a>, root: &Section<'_>) -> Vec<Reservation<'a>> {
    let mut all = Vec::new();
    for ((name, section), (_, id)) in root.named("traffic").into_iter().zip(&planned.streams) {
        let Some(rate) = section.get::<u64>("reserve") else { continue };
        all.push(Reservation {
            owner: format!("stream {name}"),
            rate: rate * BITS,
            origin: section.place("reserve"),
            way: places::stream_routes(wiring, *id),
        });
    }
    all
}
