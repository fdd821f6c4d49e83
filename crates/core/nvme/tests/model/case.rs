//! Random cases: lists of steps, with latencies and faults of media, memory and records.

use nvme::block::Error;
use proptest::collection::vec;
use proptest::prelude::*;

/// The steps of a host, with latencies and faults.
#[derive(Clone, Debug)]
pub struct Case {
    /// Whether the drive keeps records.
    pub records: bool,
    /// The maximum number of I/O commands of the controller, and the size of its buffer in KiB.
    pub limits: (usize, usize),
    pub steps: Vec<Step>,
    /// Latencies in microseconds of requests to media, memory and records, used in turns.
    pub latencies: Vec<u16>,
    /// Media requests that fail: number and error.
    pub faults: Vec<(usize, Error)>,
    /// Changes of records that fail: number and error.
    pub store_faults: Vec<(usize, Error)>,
}

#[derive(Clone, Debug)]
pub enum Step {
    Io(Io),
    Admin(Admin),
    /// Aborts the outstanding I/O command with this index.
    Abort(usize),
    /// Waits for this number of microseconds.
    Wait(u64),
    /// Waits until no command is outstanding.
    Settle,
    Reset(Reset),
    /// Switches the power off and on. The seed determines which data of the volatile cache are
    /// lost.
    PowerLoss(u64),
}

/// An I/O command.
#[derive(Clone, Debug)]
pub struct Io {
    pub queue: u16,
    pub nsid: u32,
    pub slba: u64,
    pub blocks: u32,
    pub op: IoOp,
    pub fua: bool,
    pub sgl: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoOp {
    Read,
    Write,
    Flush,
    FlushAll,
    WriteZeroes {
        deallocate: bool,
    },
    Deallocate,
    WriteUncorrectable,
    Verify,
    /// Copies to this block.
    Copy(u64),
    /// Compares with the data that the host expects, or with other data.
    Compare {
        right: bool,
    },
    /// A fused operation: the same comparison, then a write.
    CompareAndWrite {
        right: bool,
    },
}

impl IoOp {
    /// Whether the operation may write data that are equal to present or earlier data of other
    /// blocks.
    pub fn repeats(self) -> bool {
        matches!(self, Self::WriteZeroes { .. } | Self::Deallocate | Self::Copy(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admin {
    Create { kib: u64, shift: u8 },
    Delete(u32),
    Attach(u32),
    Detach(u32),
    Format(u32, u8),
    Protect(u32, bool),
    Sanitize,
    LeaveFailure,
}

#[derive(Clone, Copy, Debug)]
pub enum Reset {
    Controller,
    Function,
    Hot,
}

fn io_op() -> impl Strategy<Value = IoOp> {
    prop_oneof![
        3 => Just(IoOp::Read),
        4 => Just(IoOp::Write),
        1 => Just(IoOp::Flush),
        1 => Just(IoOp::FlushAll),
        1 => any::<bool>().prop_map(|deallocate| IoOp::WriteZeroes { deallocate }),
        1 => Just(IoOp::Deallocate),
        1 => Just(IoOp::WriteUncorrectable),
        1 => Just(IoOp::Verify),
        1 => (0..34u64).prop_map(IoOp::Copy),
        1 => any::<bool>().prop_map(|right| IoOp::Compare { right }),
        3 => prop::bool::weighted(0.8).prop_map(|right| IoOp::CompareAndWrite { right }),
    ]
}

fn io() -> impl Strategy<Value = Io> {
    let nsid = prop_oneof![10 => 1..3u32, 3 => 3..5u32, 1 => Just(0), 1 => Just(5)];
    // Few blocks, so that commands overlap.
    let slba = prop_oneof![8 => 0..6u64, 2 => 0..34u64];
    (1..3u16, nsid, slba, 1..5u32, io_op(), prop::bool::weighted(0.2), any::<bool>()).prop_map(
        |(queue, nsid, slba, blocks, op, fua, sgl)| Io { queue, nsid, slba, blocks, op, fua, sgl },
    )
}

fn admin() -> impl Strategy<Value = Admin> {
    let (nsid, shift) = (1..5u32, prop_oneof![Just(9u8), Just(12)]);
    prop_oneof![
        (1..5u64, shift.clone()).prop_map(|(kib, shift)| Admin::Create { kib: kib * 4, shift }),
        nsid.clone().prop_map(Admin::Delete),
        nsid.clone().prop_map(Admin::Attach),
        nsid.clone().prop_map(Admin::Detach),
        (nsid.clone(), shift).prop_map(|(nsid, shift)| Admin::Format(nsid, shift)),
        (nsid, any::<bool>()).prop_map(|(nsid, protect)| Admin::Protect(nsid, protect)),
        Just(Admin::Sanitize),
        Just(Admin::LeaveFailure),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let reset = prop_oneof![Just(Reset::Controller), Just(Reset::Function), Just(Reset::Hot)];
    prop_oneof![
        40 => io().prop_map(Step::Io),
        6 => admin().prop_map(Step::Admin),
        2 => (0..8usize).prop_map(Step::Abort),
        10 => (0..200u64).prop_map(Step::Wait),
        4 => Just(Step::Settle),
        1 => reset.prop_map(Step::Reset),
        2 => any::<u64>().prop_map(Step::PowerLoss),
    ]
}

fn error() -> impl Strategy<Value = Error> {
    use Error::{Internal, Media, NoSpace, NotReady, ReadOnly};
    prop::sample::select(vec![Media, ReadOnly, NoSpace, NotReady, Internal])
}

pub fn case() -> impl Strategy<Value = Case> {
    let limits =
        (prop_oneof![Just(2usize), Just(3), Just(64)], prop_oneof![Just(64usize), Just(512)]);
    let faults = vec((0..60usize, error()), 0..4);
    let store_faults = vec((0..30usize, error()), 0..2);
    (any::<bool>(), limits, vec(step(), 0..60), vec(0..150u16, 1..12), faults, store_faults)
        .prop_map(|(records, limits, steps, latencies, faults, store_faults)| Case {
            records,
            limits,
            steps,
            latencies,
            faults,
            store_faults,
        })
}
