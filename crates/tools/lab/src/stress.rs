//! Background load: parallel UDP streams of iperf3 from talker to listener, without a VLAN
//! tag.

use super::place::{FAR, Place};

/// The port of the server.
pub const PORT: u16 = 5201;
/// Payload of a UDP datagram in bytes.
const SIZE: u16 = 1400;

/// Background load of parallel streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stress {
    /// Number of parallel streams.
    pub streams: u16,
    /// Rate of each stream in bits per second.
    pub rate: u64,
}

impl Stress {
    /// Returns the command of the server, and the text that it prints when it listens.
    pub fn server(place: &Place) -> (String, &'static str) {
        let listener = place.listener();
        let line = format!("ip netns exec {listener} iperf3 -s -B {FAR} -p {PORT} --forceflush");
        (line, "listening")
    }

    /// Returns the command of the client, which runs for `seconds`; `enter` runs it in the talker's
    /// namespace.
    pub fn client(&self, enter: &str, seconds: u64) -> String {
        let Self { streams, rate } = self;
        format!("{enter}iperf3 -c {FAR} -p {PORT} -u -P {streams} -b {rate} -l {SIZE} -t {seconds}")
    }

    /// Bytes of a frame without a tag: headers of Ethernet, IPv4 and UDP, datagram, FCS.
    pub const LENGTH: u16 = 14 + 20 + 8 + SIZE + 4;

    /// Returns the time from one datagram of a stream to the next, in ns.
    pub fn interval(&self) -> u64 {
        (u64::from(SIZE) * 8 * 1_000_000_000 / self.rate).max(1)
    }
}
