//! Background load: parallel UDP streams of iperf3 from talker to listener, without a VLAN
//! tag.

use super::place::{FAR, Place};

/// The port of the server.
pub const PORT: u16 = 5201;
/// Bytes of UDP's payload.
const SIZE: u16 = 1400;

/// Load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stress {
    /// Parallel streams.
    pub streams: u16,
    /// Of each, in bits a second.
    pub rate: u64,
}

impl Stress {
    /// The server, and what it says once it listens.
    pub fn server(place: &Place) -> (String, &'static str) {
        let listener = place.listener();
        let line = format!("ip netns exec {listener} iperf3 -s -B {FAR} -p {PORT} --forceflush");
        (line, "listening")
    }

    /// The client, behind what leads to the talker's namespace, which runs for `seconds`.
    pub fn client(&self, enter: &str, seconds: u64) -> String {
        let Self { streams, rate } = self;
        format!("{enter}iperf3 -c {FAR} -p {PORT} -u -P {streams} -b {rate} -l {SIZE} -t {seconds}")
    }
}
