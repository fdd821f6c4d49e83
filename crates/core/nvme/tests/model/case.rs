//! Random cases: lists of steps, and the behaviour of media, memory and records meanwhile.

use nvme::block::Error;
use proptest::collection::vec;
use proptest::prelude::*;

/// The steps of a host, and the faults around it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The drive keeps records.
    pub records: bool,
    /// The most outstanding commands, and KiB of the host's buffer.
    pub limits: (usize, usize),
    pub steps: Vec<Step>,
    /// Microseconds that each request to media, memory and records takes, in turns.
    pub latencies: Vec<u16>,
    /// Requests to the media that fail, by number.
    pub faults: Vec<(usize, Error)>,
    /// Changes of records that fail, by number.
    pub store_faults: Vec<(usize, Error)>,
}

#[derive(Clone, Debug)]
pub enum Step {
    Io(Io),
    Admin(Admin),
    /// Abort of an outstanding I/O command, by its place among them.
    Abort(usize),
    /// Microseconds pass.
    Wait(u64),
    /// Waits until nothing is outstanding.
    Settle,
    Reset(Reset),
    /// Power is lost and comes back; the seed decides which data of the volatile cache are lost.
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
    /// To this block.
    Copy(u64),
    /// Compares with the data that the host expects, or with other data.
    Compare {
        right: bool,
    },
    /// The same as the first one of a fused operation.
    CompareAndWrite {
        right: bool,
    },
}

impl IoOp {
    /// Whether it may write data that are or were elsewhere too.
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
    // Few blocks, so that commands meet.
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
