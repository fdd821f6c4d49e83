//! Load beside the frames: parallel UDP streams from talker to listener, without a VLAN tag.

use super::cables::Far;
use super::place::{FAR, Place};
use crate::machine::tools;

/// The port of the streams.
const PORT: u16 = 5201;

/// The program that makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// iperf3
    Iperf3,
    /// netperf, UDP_STREAM; it has no rate
    Netperf,
    /// `farlane latency stress`
    BuiltIn,
}

/// Load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stress {
    /// Parallel streams.
    pub streams: u16,
    /// Of each, in bits a second.
    pub rate: u64,
    /// Bytes of UDP's payload.
    pub size: u16,
    /// By which program.
    pub tool: Tool,
}

impl Tool {
    /// What is installed, or the built-in one; a guest has no server of the others.
    pub fn found(far: &Far) -> Self {
        let installed = [("iperf3", Self::Iperf3), ("netperf", Self::Netperf)];
        let installed = installed.into_iter().find(|(program, _)| tools::find(program).is_ok());
        let installed = installed.filter(|_| *far == Far::Namespace);
        installed.map_or(Self::BuiltIn, |(_, tool)| tool)
    }
}

impl Stress {
    /// The server, and what it says once it listens.
    pub fn server(&self, place: &Place) -> (String, &'static str) {
        let enter = format!("ip netns exec {}", place.listener());
        match self.tool {
            Tool::Iperf3 => {
                (format!("{enter} iperf3 -s -B {FAR} -p {PORT} --forceflush"), "listening")
            }
            Tool::Netperf => (format!("{enter} netserver -D -L {FAR} -p {PORT}"), "netserver"),
            Tool::BuiltIn => (
                format!("{enter} farlane latency stress --sink {FAR}:{PORT} --insecure"),
                "listening",
            ),
        }
    }

    /// The clients, behind what leads to the talker's namespace, which go on for so many seconds.
    pub fn clients(&self, enter: &str, seconds: u64) -> Vec<String> {
        let Self { streams, rate, size, .. } = self;
        let bits = rate;
        match self.tool {
            Tool::Iperf3 => vec![format!(
                "{enter}iperf3 -c {FAR} -p {PORT} -u -P {streams} -b {bits} -l {size} -t {seconds}"
            )],
            Tool::Netperf => vec![
                format!(
                    "{enter}netperf -H {FAR} -p {PORT} -t UDP_STREAM -l {seconds} -- -m {size}"
                );
                usize::from(*streams)
            ],
            Tool::BuiltIn => vec![format!(
                "{enter}farlane latency stress {FAR}:{PORT} --streams {streams} --rate {bits} \
                 --size {size} --duration {seconds}s"
            )],
        }
    }
}
