//! What one end of a link decides.

use crate::aggregate::Policy;
use wire::Duration;
use wire::frame::{Grant, Role};

/// What one end of a link decides.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which end this is.
    pub role: Role,
    /// Largest TLP payload taken, in bytes: a power of two, 128 to 4096.
    pub max_payload: u16,
    /// A number that is new with every start of the process.
    pub instance: u64,
    /// How much the far side may have sent that is not consumed, by class.
    pub window: [Grant; 3],
    /// Sends something at least this often.
    pub keepalive: Duration,
    /// Gives the link up when nothing came for this long. Below the root
    /// complex's completion timeout.
    pub loss_limit: Duration,
    /// Bytes of payload in one frame at most.
    pub max_frame: usize,
    /// When TLPs that wait leave.
    pub aggregation: Policy,
    /// Bytes that the transport's encapsulation adds to each TLP; they count
    /// against a frame's room. Ours add none.
    pub tlp_overhead: usize,
    /// The group that a host belongs to; 0: none. Devices may be moved from one
    /// to another.
    pub group: u16,
}

impl Settings {
    /// For one end: 1024 TLPs and 1 MiB a class, keepalive every 100 ms, link
    /// lost after 800 ms.
    pub fn new(role: Role, instance: u64) -> Self {
        let bulk = Grant { headers: 1024, data: (1 << 20) / 16 };
        Self {
            role,
            max_payload: 4096,
            instance,
            window: [bulk, Grant { headers: 1024, data: 1024 }, bulk],
            keepalive: Duration::from_ms(100),
            loss_limit: Duration::from_ms(800),
            max_frame: 32 << 10,
            aggregation: Policy::Adaptive,
            tlp_overhead: 0,
            group: 0,
        }
    }
}
