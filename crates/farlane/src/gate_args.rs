//! Options of a gate in front of the line.

use clap::{Args, ValueEnum};
use linux::time::WallClock;
use live::net::LineGate;
use report::{Failure, Outcome, span};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use switch::congestion::Rate;
use tsn::GateControlList;
use wire::Duration;

/// The clock that windows follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WindowClock {
    /// CLOCK_TAI, whose offset from CLOCK_REALTIME must be set
    Tai,
    /// CLOCK_REALTIME
    Realtime,
}

/// Options of a gate in front of the line.
#[derive(Args, Clone, Debug)]
pub struct GateArgs {
    /// Send only in the windows of this gate control list (base-time, sched-entry and cycle-time as
    /// in tc-taprio(8)) that are open for --priority
    #[arg(long, value_name = "FILE", requires = "line_rate")]
    gate: Option<PathBuf>,
    /// Rate of the line behind --gate in bits per second, such as 1G. All links of the node share
    /// it
    #[arg(long, value_name = "RATE", requires = "gate")]
    line_rate: Option<Rate>,
    /// Minimum time from the end of a frame to the end of its window. By default the longest delay
    /// of 100 measured wake-ups. A number alone is in microseconds
    #[arg(long, value_name = "TIME", requires = "gate", value_parser = span::microseconds)]
    gate_margin: Option<Duration>,
    /// Clock of the windows of --gate
    #[arg(long, value_name = "CLOCK", requires = "gate", value_enum, default_value = "tai")]
    gate_clock: WindowClock,
    /// The gate of all links of the node, shared by the copies of the options.
    #[arg(skip)]
    made: Arc<OnceLock<LineGate>>,
}

impl GateArgs {
    /// Returns the gate of class `queue`, or `None` without `--gate`. The first call creates the
    /// gate; later calls return the same gate. Fails if the list in FILE cannot be used or the
    /// clock is not set. The error names FILE and, for mistakes in the list, the line.
    pub fn gate(&self, queue: u8) -> Result<Option<LineGate>, Failure> {
        let (Some(file), Some(rate)) = (&self.gate, self.line_rate) else { return Ok(None) };
        if let Some(gate) = self.made.get() {
            return Ok(Some(gate.clone()));
        }
        let failed = |why: String| Failure(format!("--gate {}: {why}", file.display()));
        let list = read_list(file)?;
        let clock = match self.gate_clock {
            WindowClock::Tai => WallClock::Tai,
            WindowClock::Realtime => WallClock::Realtime,
        };
        let gate = LineGate::new(&list, queue.into(), rate, self.gate_margin, clock)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Some(self.made.get_or_init(|| gate).clone()))
    }
}

impl GateArgs {
    /// Checks the gate control list as [`gate`](Self::gate) does, without a measurement.
    pub fn check(&self) -> Outcome {
        self.gate.iter().try_for_each(|file| read_list(file).map(drop))
    }
}

/// Reads the gate control list of `--gate`. The error names file and line.
pub fn read_list(file: &Path) -> Result<GateControlList, Failure> {
    let failed = |why: String| Failure(format!("--gate {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    tsn::taprio::parse(&text).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        node: crate::node::NodeArgs,
    }

    /// Nodes copy the options, and each link calls `gate`.
    #[test]
    fn links_of_a_node_share_gate_and_marking() {
        let file = std::env::temp_dir().join(format!("farlane-gate-{}", std::process::id()));
        std::fs::write(&file, "sched-entry S 20 5ms sched-entry S df 5ms").unwrap();
        let list = file.to_str().unwrap();
        let words = ["farlane", "--gate", list, "--line-rate", "1G", "--gate-clock", "realtime"];
        let marks = ["--gate-margin", "1ms", "--priority", "5", "--dscp", "46"];
        let node = Options::parse_from(words.into_iter().chain(marks)).node;
        let copy = node.clone();
        let links = [&node, &copy, &node].map(|node| node.settings().unwrap().links().unwrap());
        std::fs::remove_file(&file).unwrap();
        let gate = links[0].gate.as_ref().expect("a gate");
        for other in &links[1..] {
            assert!(other.gate.as_ref() == Some(gate));
            let marks = (other.marking.priority, other.marking.dscp);
            assert_eq!(marks, (Some(5), Some(46)));
        }
        let other = Options::parse_from(words).node;
        assert!(other.gate.gate(0).is_err(), "the file is gone");
    }
}
