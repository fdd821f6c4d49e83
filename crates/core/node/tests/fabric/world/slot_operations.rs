//! Operations on two slots made from bytes: clients read, write and reset, links are lost, and
//! drives restart, are replaced, or serve another host. A client never reads other data than it
//! wrote.

use super::build::Plan;
use super::device::Device;
use super::disk::{COUNT, Disk};
use super::link::Shape;
use super::seat::Seat;
use super::{Fabric, Manner};
use node::slot::{Change, Condition};
use pcie::enumerate::{Node, Settings};
use testkit::Source;
use wire::Duration;

/// The most operations of one run.
const MOST: usize = 100;
/// The numbers of this host and of another one.
const OWNERS: [u32; 2] = [9, 8];
const SEATS: usize = 2;

/// The values that a client may read from a block, unless the read fails.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The block was read. Before its first read it may have any value.
    found: bool,
    /// The value read, and later writes in order. Writes may be lost in transit.
    values: Vec<u64>,
}

struct Run<'a> {
    source: Source<'a>,
    fabric: Fabric,
    known: [[Known; COUNT]; SEATS],
    /// Drives that are not in their place, by seat.
    away: [Option<Disk>; SEATS],
    /// Seats whose drive another host used, with the number of changes that this host had seen
    /// before.
    served: [Option<usize>; SEATS],
    /// A value that was never written.
    next: u64,
    reached: Reached,
}

/// The data of a new drive, or written by another host.
fn fresh(next: &mut u64) -> [u64; COUNT] {
    [(); COUNT].map(|()| {
        *next += 1;
        1 << 32 | *next
    })
}

/// Counts of outcomes of reads and writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    /// Reads that returned data known to the client.
    pub known: usize,
    /// Reads that failed.
    pub failed: usize,
    /// Reads while new contents were withheld from the client.
    pub kept: usize,
    /// Clients that read new contents after a reset.
    pub renewed: usize,
}

/// Decodes `bytes` as operations and carries them out.
///
/// # Panics
/// If a client reads other data than it wrote.
pub fn run_operations(bytes: &[u8]) -> Reached {
    let mut source = Source(bytes);
    let kind = source.byte();
    let shape = if kind & 1 != 0 { Shape::ROUGH } else { Shape::PLAIN };
    let plan = Plan { seed: source.u32().into(), shape, ..Plan::default() };
    let mut next = 0;
    let disks = (0..SEATS as u64)
        .map(|serial| Device::Disk(Box::new(Disk::new(serial, 0, fresh(&mut next)))));
    let mut fabric = plan.with(disks);
    let settings = Settings { contents: true, ..Settings::default() };
    let hierarchy = fabric.enumerate_with(settings);
    let ports: Vec<Node> = hierarchy.root.children()[0].children().to_vec();
    for (link, port) in ports.into_iter().enumerate() {
        let node = port.children()[0].clone();
        fabric.seat(link, (port, node), OWNERS[0]);
        fabric.guest_enables(link);
    }
    let known = Default::default();
    let mut run = Run {
        source,
        fabric,
        known,
        away: [None, None],
        served: [None; SEATS],
        next,
        reached: Reached::default(),
    };
    for _ in 0..MOST {
        if run.source.0.is_empty() {
            break;
        }
        run.operation();
    }
    // At the end, every drive returns to its seat.
    for seat in 0..SEATS {
        run.fabric.connect(seat);
        if let Some(own) = run.away[seat].take() {
            run.replace(seat, own);
        }
        run.pass(5_000_000);
        run.reset(seat);
        let slot = run.fabric.seats[seat].slot.condition();
        assert_eq!(slot, Condition::Attached, "the drive is there");
        assert_ne!(run.fabric.guest_reads(seat, 0), u64::MAX);
    }
    run.reached
}

impl Run<'_> {
    fn operation(&mut self) {
        let (seat, block) = (self.source.below(SEATS), self.source.below(COUNT));
        match self.source.below(24) {
            0..=3 => {
                let value = self.fabric.guest_reads(seat, block);
                // Earlier reads finish first.
                self.collect(seat);
                self.found(seat, block, value);
            }
            4..=6 => self.fabric.guest_begins_to_read(seat, block),
            7..=9 => {
                self.next += 1;
                let value = self.next;
                self.fabric.guest_writes(seat, block, value);
                self.known[seat][block].values.push(value);
            }
            10..=12 => {
                self.fabric.seats[seat].guest.memory[block] = u64::MAX;
                // Writes of the function may pass its answers to reads.
                self.fabric.wait_for_reads(seat);
                self.collect(seat);
                self.fabric.guest_rings(seat, block);
                let span = self.source.byte();
                self.pass(u64::from(span) * 10);
                let value = self.fabric.seats[seat].guest.memory[block];
                self.found(seat, block, value);
            }
            13 => {
                let before = self.fabric.seats[seat].changes.len();
                self.reset(seat);
                let changes = &self.fabric.seats[seat].changes;
                self.reached.renewed += usize::from(changes.len() > before);
            }
            14 => {
                // The client disconnects, and the next one connects.
                self.fabric.seats[seat].guest.active = false;
                self.reset(seat);
                let span = self.source.byte();
                self.pass(u64::from(span) * 1000);
                self.fabric.seats[seat].guest.active = true;
            }
            15 => {
                self.fabric.breaks(seat);
                self.may_return();
            }
            16 if self.source.byte() & 3 == 0 => self.fabric.disconnect(seat),
            16..=18 => self.fabric.connect(seat),
            19..=21 => self.drive(seat),
            _ => {
                let span = self.source.u32() % 1_000_000;
                self.pass(span.into());
            }
        }
        self.fabric.settle();
        (0..SEATS).for_each(|seat| self.collect(seat));
    }

    /// Checks finished reads.
    fn collect(&mut self, seat: usize) {
        while let Some((block, value)) = self.fabric.seats[seat].finds() {
            self.found(seat, block, value);
        }
    }

    /// In most cases, the link comes up again before anything else happens.
    fn may_return(&mut self) {
        if self.source.byte() & 3 != 0 {
            self.pass(250_000);
        }
    }

    fn pass(&mut self, us: u64) {
        self.fabric.pass(Duration::from_us(us));
    }

    /// Checks a value that the client has read from a block.
    fn found(&mut self, seat: usize, block: usize, value: u64) {
        let kept = self.fabric.seats[seat].slot.condition() == Condition::NewContents;
        self.reached.kept += usize::from(kept);
        if value == u64::MAX {
            self.reached.failed += 1;
            return;
        }
        let known = &mut self.known[seat][block];
        match known.values.iter().position(|written| *written == value) {
            Some(at) => drop(known.values.drain(..at)),
            None => {
                assert!(!known.found, "{value:#x} instead of {:x?}", known.values);
                known.values.insert(0, value);
            }
        }
        self.reached.known += usize::from(std::mem::replace(&mut known.found, true));
    }

    /// The client no longer expects any values.
    fn reset(&mut self, seat: usize) {
        self.fabric.wait_for_reads(seat);
        self.collect(seat);
        self.known[seat] = Default::default();
        self.fabric.guest_resets(seat);
        self.fabric.seats[seat].guest.memory = [u64::MAX; COUNT];
        self.fabric.guest_enables(seat);
    }

    /// Changes a seat's drive or its place.
    fn drive(&mut self, seat: usize) {
        let data = fresh(&mut self.next);
        let Device::Disk(disk) = self.fabric.nodes[seat].function_mut() else { unreachable!() };
        let (serial, incarnation, blocks) = (disk.serial, disk.incarnation, disk.blocks);
        let Seat { slot, changes, .. } = &self.fabric.seats[seat];
        let capability = slot.node().device().unwrap().contents.unwrap().capability;
        let renewed = |change: &Change| {
            matches!(change, Change::NewContents(_) | Change::ReattachedWithNewContents(_))
        };
        // A restarted drive loses the number of its last host. This host cannot detect that unless
        // it has seen the drive before, so such a drive keeps the number here.
        let unseen = self.served[seat].is_some_and(|from| !changes[from..].iter().any(renewed));
        let same = Disk::new(serial, incarnation, blocks);
        let same = if unseen { same.owned(capability, OWNERS[1]) } else { same };
        let how = self.source.byte();
        let after = match how & 3 {
            // The drive restarts with its data, or without.
            0 => same,
            1 => Disk::new(serial, incarnation + 1, data),
            2 => {
                self.served[seat] = Some(changes.len());
                Disk::new(serial, incarnation, data).owned(capability, OWNERS[1])
            }
            _ => match self.away[seat].take() {
                Some(own) => own,
                None => {
                    self.away[seat] = Some(same);
                    Disk::new(serial + 100, incarnation, data)
                }
            },
        };
        self.replace(seat, after);
        // Or it is replaced while the link stays up, as behind a further switch.
        if how & 4 == 0 {
            self.fabric.breaks(seat);
        }
        self.may_return();
    }

    fn replace(&mut self, seat: usize, disk: Disk) {
        if self.fabric.links[seat].manner == Manner::Refuses {
            self.fabric.breaks(seat);
        }
        *self.fabric.nodes[seat].function_mut() = Device::Disk(Box::new(disk));
    }
}
