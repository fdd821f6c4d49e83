//! Compares data that were written with data that later reads returned, by the prints of the TLPs.
//!
//! Only certain differences are reported. The contents of blocks are known from a successful write
//! that overlapped no other change of the blocks in time. The namespace must belong to one
//! controller and have no metadata. A read is wrong if its doorbell came after the end of the
//! write, no change of the blocks was in flight until the read ended, and its TLPs split the blocks
//! as the TLPs of the write did. A command that ends after the read may still explain the
//! difference, so [`finish`](Written::finish) reports the reads.

use crate::commands::{Command, Print, print_of};
use std::collections::BTreeMap;
use wire::Bdf;
use wire::nvme::{BROADCAST_NSID, DsmRange, opcode};

/// Maximum number of pieces of namespaces with known contents: about 64 MiB.
const MOST_KNOWN: usize = 1 << 20;
/// Maximum number of stored wrong reads.
const MOST_SUSPECTS: usize = 1024;

type Namespace = (Bdf, u32);

/// The smallest run of blocks that begins and ends with a TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    slba: u64,
    blocks: u64,
    /// Number for the way in which TLPs split the piece, and for their data.
    split: u64,
    print: u64,
}

/// The write that wrote a piece.
#[derive(Clone, Copy, Debug)]
struct Known {
    piece: Piece,
    /// Number of the last TLP before the host took the completion entry of the write.
    over: u64,
}

/// A read that returned other data than were written.
#[derive(Clone, Debug)]
struct Suspect {
    namespace: Namespace,
    piece: Piece,
    /// Number of the last TLP of the read.
    over: u64,
    last: (u64, u64),
    description: String,
}

/// The contents of namespaces as far as they are certain.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    known: BTreeMap<(Namespace, u64), Known>,
    /// By drive, the TLP number before which commands may have overlapped a change that is not in
    /// `known`.
    fences: BTreeMap<Bdf, u64>,
    suspects: Vec<Suspect>,
    /// Whether commands may be missing, so that nothing more is certain.
    blind: bool,
}

enum Change {
    Nothing,
    Blocks(Vec<(u64, u64)>),
    Namespace,
    /// All namespaces.
    Device,
}

fn change(command: &Command) -> Change {
    let entry = &command.entry;
    if command.is_admin() {
        return match entry.opcode {
            opcode::admin::FORMAT | opcode::admin::SANITIZE | opcode::admin::SECURITY_SEND => {
                Change::Device
            }
            opcode::admin::NAMESPACE_MANAGEMENT | opcode::admin::NAMESPACE_ATTACHMENT => {
                Change::Device
            }
            // Vendor specific (figure 139).
            0xc0.. => Change::Device,
            _ => Change::Nothing,
        };
    }
    let blocks = || Change::Blocks(vec![(entry.slba(), u64::from(entry.blocks()))]);
    match entry.opcode {
        opcode::nvm::FLUSH | opcode::nvm::READ | opcode::nvm::COMPARE | opcode::nvm::VERIFY => {
            Change::Nothing
        }
        _ if entry.nsid == BROADCAST_NSID => Change::Device,
        opcode::nvm::WRITE | opcode::nvm::WRITE_ZEROES | opcode::nvm::WRITE_UNCORRECTABLE => {
            blocks()
        }
        opcode::nvm::DATASET_MANAGEMENT => match &command.data {
            Some(data) => {
                let ranges = data.as_chunks::<{ DsmRange::LENGTH }>().0.iter();
                let ranges = ranges.map(DsmRange::decode);
                Change::Blocks(ranges.map(|range| (range.slba, range.blocks.into())).collect())
            }
            None => Change::Namespace,
        },
        // Copy, reservations, and vendor specific commands.
        _ => Change::Namespace,
    }
}

/// Returns the number of the last TLP of a command.
fn over(command: &Command) -> u64 {
    command.closed.saturating_sub(1)
}

/// Returns the pieces of a command's data; none if its TLPs do not cover each byte exactly once.
fn pieces(command: &Command) -> Vec<Piece> {
    let (Some(prints), Some(size), Some(slba)) =
        (command.whole_prints(), command.block_size.map(u64::from), command.slba())
    else {
        return Vec::new();
    };
    let (mut pieces, mut from, mut first) = (Vec::new(), 0, 0);
    for (i, print) in prints.iter().enumerate() {
        let end = print.offset + u64::from(print.bytes);
        if !end.is_multiple_of(size) {
            continue;
        }
        let tlps = &prints[first..=i];
        let lengths: Vec<Print> = tlps.iter().map(|tlp| Print { print: 0, ..*tlp }).collect();
        let (split, print) = (print_of(&lengths), print_of(tlps));
        let (at, blocks) = (slba.saturating_add(from / size), (end - from) / size);
        pieces.push(Piece { slba: at, blocks, split, print });
        (from, first) = (end, i + 1);
    }
    pieces
}

impl Written {
    /// Processes a command that ended.
    pub fn observe(&mut self, command: &Command, last: (u64, u64)) {
        let enables_shadow_doorbells = command.is_admin()
            && command.entry.opcode == opcode::admin::DOORBELL_BUFFER_CONFIG
            && command.status.is_some_and(|status| status.is_success());
        if enables_shadow_doorbells {
            self.distrust();
        }
        let namespace = (command.device, command.entry.nsid);
        let begun = command.steps.first().map_or(0, |step| step.number);
        let over = over(command);
        let (least, most) = (u64::MIN, u64::MAX);
        match change(command) {
            Change::Nothing => self.read(command, begun, last),
            Change::Blocks(ranges) => self.write(command, &ranges, begun),
            Change::Namespace => {
                self.forget((namespace, least)..=(namespace, most), begun, over);
            }
            Change::Device => {
                let [from, to] = [0, u32::MAX].map(|nsid| (command.device, nsid));
                self.forget((from, least)..=(to, most), begun, over);
            }
        }
    }

    fn read(&mut self, command: &Command, begun: u64, last: (u64, u64)) {
        let good = command.status.is_some_and(|status| status.is_success());
        if command.entry.opcode != opcode::nvm::READ || command.is_admin() || !good {
            return;
        }
        let namespace = (command.device, command.entry.nsid);
        for piece in pieces(command) {
            let Some(known) = self.known.get(&(namespace, piece.slba)) else { continue };
            let same = (known.piece.blocks, known.piece.split) == (piece.blocks, piece.split);
            let right = known.piece.print == piece.print || known.over >= begun;
            if !same || right || self.suspects.len() >= MOST_SUSPECTS {
                continue;
            }
            let s = if piece.blocks == 1 { "" } else { "s" };
            let description = format!(
                "Read queue {} command {}, namespace {}: {} block{s} from LBA {}",
                command.queue, command.entry.cid, namespace.1, piece.blocks, piece.slba
            );
            self.suspects.push(Suspect {
                namespace,
                piece,
                over: over(command),
                last,
                description,
            });
        }
    }

    fn write(&mut self, command: &Command, ranges: &[(u64, u64)], begun: u64) {
        let namespace = (command.device, command.entry.nsid);
        let fence = self.fences.get(&command.device).copied().unwrap_or(0);
        let mut alone = begun > fence;
        for (slba, blocks) in ranges {
            alone &= self.forget_blocks(namespace, *slba, *blocks, begun);
        }
        let good = command.status.is_some_and(|status| status.is_success());
        let whole = command.entry.opcode == opcode::nvm::WRITE && command.sole && !self.blind;
        let pieces = if alone && good && whole { pieces(command) } else { Vec::new() };
        if pieces.is_empty() || self.known.len() + pieces.len() > MOST_KNOWN {
            return self.fence(command.device, over(command));
        }
        for piece in pieces {
            let known = Known { piece, over: over(command) };
            self.known.insert((namespace, piece.slba), known);
        }
    }

    /// Forgets the blocks of a change that began at `begun`. Returns whether no other change
    /// overlapped it.
    fn forget_blocks(&mut self, namespace: Namespace, slba: u64, blocks: u64, begun: u64) -> bool {
        let end = slba.saturating_add(blocks);
        let meets = |piece: &Piece| piece.slba < end && piece.slba + piece.blocks > slba;
        self.suspects.retain(|suspect| {
            suspect.namespace != namespace || suspect.over < begun || !meets(&suspect.piece)
        });
        // Pieces do not overlap: at most one begins before the range.
        let before = self.known.range((namespace, 0)..(namespace, slba)).next_back();
        let before = before.filter(|(_, known)| meets(&known.piece)).map(|(key, _)| *key);
        let within = self.known.range((namespace, slba)..(namespace, end)).map(|(key, _)| *key);
        let keys: Vec<_> = before.into_iter().chain(within).collect();
        let mut alone = true;
        for key in keys {
            let Some(known) = self.known.remove(&key) else { continue };
            alone &= known.over < begun;
            // The rest of the piece is removed from `known` too.
            self.fence(namespace.0, known.over);
        }
        alone
    }

    /// Forgets these keys for a change between `begun` and `over`.
    fn forget(&mut self, keys: std::ops::RangeInclusive<(Namespace, u64)>, begun: u64, over: u64) {
        let gone: Vec<_> = self.known.range(keys.clone()).map(|(key, _)| *key).collect();
        for key in gone {
            self.known.remove(&key);
        }
        let block = |suspect: &Suspect| (suspect.namespace, suspect.piece.slba);
        self.suspects.retain(|suspect| suspect.over < begun || !keys.contains(&block(suspect)));
        self.fence(keys.start().0.0, over);
    }

    fn fence(&mut self, device: Bdf, over: u64) {
        let fence = self.fences.entry(device).or_default();
        *fence = (*fence).max(over);
    }

    /// Processes a controller reset. The reset may be a loss of power, which loses a volatile
    /// cache.
    pub fn reset(&mut self, device: Bdf) {
        let [from, to] = [0, u32::MAX].map(|nsid| (device, nsid));
        self.known.retain(|(namespace, _), _| !(from..=to).contains(namespace));
    }

    /// Processes missing records. Commands may be missing from here on.
    pub fn gap(&mut self) {
        self.blind = true;
        self.known.clear();
    }

    /// Records that commands are missing.
    pub fn distrust(&mut self) {
        self.gap();
        self.suspects.clear();
    }

    /// Ends the recording. Returns the reads that returned other data than were written, with their
    /// places.
    pub fn finish(&mut self) -> Vec<((u64, u64), String)> {
        let suspects = std::mem::take(&mut self.suspects);
        suspects.into_iter().map(|suspect| (suspect.last, suspect.description)).collect()
    }
}
