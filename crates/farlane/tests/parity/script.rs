//! Times and settings of a run that both worlds share.
//!
//! A simulated PCIe link takes some nanoseconds. The live node has no such delay between root
//! complex and switch. Therefore links accept bytes only at ticks, and all other events are some
//! microseconds away from ticks, so that the same TLPs wait when a frame is made. A tick carries at
//! most 8 TLPs with data, as many as a simulated port accepts at once, so that the same TLPs return
//! credits.

use node::faults::Fault;
use node::push::Mode;
use pcie::root;
use sim::transport::{PipeConfig, Script};
use switch::tunnel;
use wire::frame::Role;
use wire::{Duration, Instant};

const fn at_us(us: u64) -> Instant {
    Instant::from_ns(us * 1000)
}

/// Time between two ticks, at which links accept bytes.
pub const TICK: Duration = Duration::from_us(50);
/// Time between two polls of the driver while it attaches. Polls begin when an answer arrives. In
/// the first 300 us no poll ends at a tick, at an arrival or at an answer of memory.
pub const POLL: Duration = Duration::from_us(17);
/// Returns the latency of memory. The latency is short with push, because a live node sends pushed
/// bytes at once.
pub fn memory(push: Mode) -> Duration {
    if push == Mode::Off { Duration::from_us(8) } else { Duration::from_ns(100) }
}
/// Latencies of the media: of a read, and of other operations.
pub const MEDIA: [Duration; 2] = [Duration::from_us(10), Duration::from_us(9)];
/// Time for each page of 4 KiB after the latency of a read. No two reads end in one turn of the
/// controller, which would give one interrupt for both.
pub const SENSE: Duration = Duration::from_us(2);
/// Time at which the software begins.
pub const BOOT: Instant = at_us(1_003);
/// Time of the commands during which the link is lost.
pub const LAST_COMMANDS: Instant = at_us(249_903);
const LOST: Instant = at_us(250_013);
const BACK: Instant = at_us(280_013);
/// Time at which the link is up again: attempts to connect are 200 ms apart.
pub const REBOOT: Instant = at_us(500_003);
/// Time at which the run ends.
pub const END: Instant = at_us(600_000);

/// Settings of the link.
pub const LINK: PipeConfig = PipeConfig {
    byte: Duration::ZERO,
    latency: Duration::from_us(23),
    // Smaller than some frames and TLPs, so that they are split.
    max_packet: 700,
    overhead: 0,
    script: Some(Script { tick: TICK, room: 2_000, outage: [LOST, BACK] }),
};

/// What runs differ in.
#[derive(Clone, Copy)]
pub struct Setup {
    pub push: Mode,
    /// Faults of the drive.
    pub faults: &'static [&'static str],
}

impl Setup {
    pub fn new(push: Mode) -> Self {
        Self { push, faults: &[] }
    }

    /// Returns the faults of the drive.
    pub fn faults<T: FromIterator<Fault>>(self) -> T {
        self.faults.iter().map(|text| text.parse().expect("a fault")).collect()
    }
}

/// Times after which the drive poisons data, and loses a completion.
pub const POISON: Instant = at_us(100_003);
pub const LOSE: Instant = at_us(200_003);
/// Faults of the drive by block; a command of the program has 16 blocks.
pub const FAULTS: &[&str] = &[
    "error=media,lba=0+1",
    "late=3ms,lba=16+16,count=2",
    "error=no-space,lba=47+1,count=1",
    "poison,at=100ms",
    "lost-completion,at=200ms",
];

pub const MAX_PAYLOAD: usize = 256;
/// Returns the number of concurrent reads of the drive. With push a live port answers at once, a
/// simulated port some nanoseconds later, so a second read would have another tag.
pub fn reads_in_flight(push: Mode) -> usize {
    if push == Mode::Off { 8 } else { 1 }
}
pub const SERIAL: &str = "PARITY";
/// Size of the drive in bytes.
pub const SIZE: u64 = 1 << 20;
/// Address and size of host memory.
pub const RAM: (u64, usize) = (4 << 30, 16 << 20);

/// Settings of the root complex.
pub const ROOT: root::Settings = root::Settings {
    max_payload: MAX_PAYLOAD,
    completion_size: MAX_PAYLOAD,
    completion_timeout: Duration::from_ms(50),
    ecrc: false,
};

/// Returns the settings of an end of the link, as of simulated ends.
pub fn tunnel(role: Role, push: Mode) -> tunnel::Settings {
    let (instance, keeps) = match (role, push) {
        (Role::Host, _) => (1, 0),
        (_, Mode::Off) => (1 << 32, 0),
        (_, Mode::Entries | Mode::All) => (1 << 32, switch::push_store::CAPACITY),
    };
    let (max_payload, survive) = (MAX_PAYLOAD as u16, Duration::from_ms(10_000));
    tunnel::Settings { max_payload, survive, push: keeps, ..tunnel::Settings::new(role, instance) }
}
