//! What is fixed beforehand in both worlds.
//!
//! A simulated PCIe link takes some nanoseconds that the live node does not have between its root
//! complex and its switch. Links take bytes only at ticks, and everything else happens some
//! microseconds away from them, so that the same TLPs wait when a frame is made. Of data, a tick
//! carries no more TLPs than a simulated port takes at once (8): credits go back at the same ones.

use node::push::Mode;
use pcie::root;
use sim::transport::{PipeConfig, Script};
use switch::tunnel;
use wire::frame::Role;
use wire::{Duration, Instant};

const fn at_us(us: u64) -> Instant {
    Instant::from_ns(us * 1000)
}

/// Links accept bytes at multiples of this time.
pub const TICK: Duration = Duration::from_us(50);
/// Pauses of the driver while it attaches: they begin when an answer arrives, and in the first 300
/// us none ends at a tick, an arrival or an answer of memory.
pub const POLL: Duration = Duration::from_us(17);
/// How long memory takes. With push next to nothing: what is pushed leaves a live node at once.
pub fn memory(push: Mode) -> Duration {
    if push == Mode::Off { Duration::from_us(8) } else { Duration::from_ns(100) }
}
/// Latency of the media for a read, and for anything else.
pub const MEDIA: [Duration; 2] = [Duration::from_us(10), Duration::from_us(9)];
/// Then one page of 4 KiB after the other for so long: no two reads end in one turn of the
/// controller, which would make one interrupt of theirs.
pub const SENSE: Duration = Duration::from_us(2);
/// Software begins.
pub const BOOT: Instant = at_us(1_003);
/// Commands whose link is lost.
pub const LAST_COMMANDS: Instant = at_us(249_903);
const LOST: Instant = at_us(250_013);
const BACK: Instant = at_us(280_013);
/// The link is up again: attempts to connect are 200 ms apart.
pub const REBOOT: Instant = at_us(500_003);
/// Everything is over.
pub const END: Instant = at_us(600_000);

/// The link.
pub const LINK: PipeConfig = PipeConfig {
    byte: Duration::ZERO,
    latency: Duration::from_us(23),
    // Cuts frames, and TLPs.
    max_packet: 700,
    overhead: 0,
    script: Some(Script { tick: TICK, room: 2_000, outage: [LOST, BACK] }),
};

pub const MAX_PAYLOAD: usize = 256;
/// Reads of the drive at a time. With push a live port answers at once, a simulated one some
/// nanoseconds later, and the next read would have another tag.
pub fn reads_in_flight(push: Mode) -> usize {
    if push == Mode::Off { 8 } else { 1 }
}
pub const SERIAL: &str = "PARITY";
/// Bytes of the drive.
pub const SIZE: u64 = 1 << 20;
/// Bytes of host memory, and where they are.
pub const RAM: (u64, usize) = (4 << 30, 16 << 20);

/// The root complex.
pub const ROOT: root::Settings = root::Settings {
    max_payload: MAX_PAYLOAD,
    completion_size: MAX_PAYLOAD,
    completion_timeout: Duration::from_ms(50),
    ecrc: false,
};

/// An end of the link, as simulated ends are.
pub fn tunnel(role: Role, push: Mode) -> tunnel::Settings {
    let (instance, keeps) = match (role, push) {
        (Role::Host, _) => (1, 0),
        (_, Mode::Off) => (1 << 32, 0),
        (_, Mode::Entries | Mode::All) => (1 << 32, switch::push_store::CAPACITY),
    };
    let max_payload = MAX_PAYLOAD as u16;
    tunnel::Settings { max_payload, push: keeps, ..tunnel::Settings::new(role, instance) }
}
