//! Copies of frames on their way to a recovery function, over time and by path.

use sim::Config;
use sim::ethernet::frame::HEADER;
use sim::ethernet::streams::{Header, Identification, Recover};
use sim::ethernet::{Mac, Tag};
use sim::measure::{Observer, Point};
use sim::network::{Place, StreamConfig};
use std::collections::BTreeMap;
use tsn::frer::rtag;
use wire::{Duration, Instant};

/// Maximum number of bins. With more bins, neighbouring bins are merged.
const POINTS: usize = 120;

/// Copies that arrived over one wire in one bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Number of copies.
    pub copies: u64,
    /// Maximum delay of a copy after the first copy of its frame.
    pub behind: Duration,
}

/// The copies of a stream that arrive at a place.
#[derive(Clone, Debug)]
pub struct Copies {
    /// Index of the stream.
    pub stream: usize,
    /// The place with the recovery function.
    pub place: Place,
    identification: Identification,
    /// Length of a bin.
    pub width: Duration,
    /// Bins by wire.
    pub wires: BTreeMap<usize, Vec<Bin>>,
    /// Propagation time of the cable, by wire.
    takes: BTreeMap<usize, Duration>,
    /// Reset timer of the recovery function. Copies further apart belong to different frames.
    reset: Duration,
    /// By sequence number: the arrival of the first copy, and the wires that brought a copy.
    first: BTreeMap<u16, (Instant, Vec<usize>)>,
}

/// The copies of all streams.
#[derive(Clone, Debug)]
pub struct AllCopies(pub Vec<Copies>);

impl AllCopies {
    /// Creates the copies for every place with a recovery function.
    pub fn new(config: &Config) -> Self {
        let streams = config.network.streams.iter().enumerate();
        let copies_of = |(number, stream): (usize, &StreamConfig)| {
            let copies = |(place, recover): &(Place, Recover)| {
                let wires = wires(config, stream, *place);
                let takes = |wire: &usize| (*wire, config.network.cables[wire / 2].propagation);
                Copies {
                    stream: number,
                    place: *place,
                    identification: stream.identification,
                    width: Duration::from_us(10),
                    takes: wires.keys().map(takes).collect(),
                    wires,
                    reset: recover.recovery.reset,
                    first: BTreeMap::new(),
                }
            };
            stream.eliminate.iter().map(copies).collect::<Vec<_>>()
        };
        Self(streams.flat_map(copies_of).filter(|copies| !copies.wires.is_empty()).collect())
    }
}

/// Returns the wires over which a stream arrives at a place.
fn wires(config: &Config, stream: &StreamConfig, place: Place) -> BTreeMap<usize, Vec<Bin>> {
    let wiring = config.network.wiring();
    let hops = stream.paths.iter().filter_map(|path| wiring.hops(stream.from, path).ok());
    let last = hops.flatten().filter(|[_, to]| to.node() == place);
    let wire = |[from, _]: [_; 2]| {
        let (cable, _) = wiring.across(from)?;
        Some(2 * cable + usize::from(config.network.cables[cable].a != from))
    };
    last.filter_map(wire).map(|wire| (wire, Vec::new())).collect()
}

impl Observer for AllCopies {
    fn ethernet_frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        let Point::Wire(wire) = point else { return };
        let wire = usize::from(wire);
        for copies in self.0.iter_mut().filter(|copies| copies.wires.contains_key(&wire)) {
            if let Some((header, sequence)) = parse(bytes, copies.identification)
                && copies.identification.matches(&header)
            {
                copies.add(at, wire, sequence);
            }
        }
    }
}

impl Copies {
    fn add(&mut self, at: Instant, wire: usize, sequence: u16) {
        while at.as_ps() / self.width.as_ps() >= POINTS as u64 {
            self.halve();
        }
        let at = at + self.takes[&wire];
        let (first, seen) = self.first.entry(sequence).or_insert((at, Vec::new()));
        if seen.contains(&wire) || at > *first + self.reset {
            // The sequence numbers have wrapped.
            (*first, *seen) = (at, Vec::new());
        }
        seen.push(wire);
        // The copy that starts first may have the longer cable.
        let (behind, late) = if at < *first { (seen[0], *first - at) } else { (wire, at - *first) };
        self.bin(at, wire).copies += 1;
        let bin = self.bin(at, behind);
        bin.behind = bin.behind.max(late);
    }

    fn bin(&mut self, at: Instant, wire: usize) -> &mut Bin {
        let place = (at.as_ps() / self.width.as_ps()) as usize;
        let bins = self.wires.get_mut(&wire).expect("it comes over this wire");
        bins.resize(bins.len().max(place + 1), Bin::default());
        &mut bins[place]
    }

    fn halve(&mut self) {
        for bins in self.wires.values_mut() {
            let join = |pair: &[Bin]| {
                pair.iter().fold(Bin::default(), |sum, bin| Bin {
                    copies: sum.copies + bin.copies,
                    behind: sum.behind.max(bin.behind),
                })
            };
            *bins = bins.chunks(2).map(join).collect();
        }
        self.width = self.width + self.width;
    }
}

/// Parses header and sequence number of a captured frame. The frame must have the IP addresses of
/// the stream, because other frames have other sequence numbers.
fn parse(bytes: &[u8], identification: Identification) -> Option<(Header, u16)> {
    let mac = |at: usize| Some(Mac(*bytes.get(at..)?.first_chunk()?));
    let number = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let behind_addresses = HEADER - 2;
    let tagged = rtag::decode(bytes.get(behind_addresses..)?).is_err();
    let (tag, at) = match tagged {
        true => (Some(Tag::of_control(number(HEADER)?)), HEADER + 2),
        false => (None, behind_addresses),
    };
    let sequence = rtag::decode(bytes.get(at..)?).ok()?;
    let ip = match identification {
        Identification::Ip { ip, .. } => Some(ip),
        _ => None,
    };
    Some((Header { destination: mac(0)?, source: mac(6)?, tag, ip }, sequence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_restart_after_the_reset_timer() {
        let us = |us: u64| Instant::ZERO + Duration::from_us(us);
        let mut copies = Copies {
            stream: 0,
            place: Place::Bridge(0),
            identification: Identification::Source { source: Mac([0; 6]), vlan: None },
            width: Duration::from_us(10),
            wires: [(0, Vec::new()), (2, Vec::new())].into(),
            takes: [(0, Duration::ZERO), (2, Duration::ZERO)].into(),
            reset: Duration::from_us(100),
            first: BTreeMap::new(),
        };
        // The other copy is lost. The next frame with this number arrives first over the other
        // wire.
        copies.add(us(0), 0, 7);
        copies.add(us(500), 2, 7);
        copies.add(us(504), 0, 7);
        let latest = copies.wires.values().flatten().map(|bin| bin.behind).max();
        assert_eq!(latest, Some(Duration::from_us(4)));
    }
}
