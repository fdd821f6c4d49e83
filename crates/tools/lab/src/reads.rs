//! An NVMe drive behind the bridge: 4 KiB reads through farlane's own tunnel.

use super::place::Place;

/// How a drive is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The priority of the nodes, in the VLAN; without it neither.
    pub priority: Option<u8>,
    /// Options of a gate of the nodes' own; empty without.
    pub gate: String,
}

impl Reads {
    /// As runs are called.
    pub fn name(&self) -> &'static str {
        match (self.priority, self.gate.as_str()) {
            (None, _) => "reads",
            (Some(_), "") => "reads with priority",
            (Some(_), _) => "reads with priority and gate",
        }
    }

    /// Whether frames of the drive have a tag.
    pub fn is_tagged(&self) -> bool {
        self.priority.is_some()
    }

    fn options(&self) -> String {
        let priority =
            self.priority.map_or(String::new(), |priority| format!(" --priority {priority}"));
        format!("{priority}{}", self.gate)
    }

    /// The device node at `address`, and what it says once it listens.
    pub fn device(&self, place: &Place, address: &str) -> (String, &'static str) {
        let line = format!(
            "ip netns exec {} farlane device --listen {address} --insecure --namespace ram=64M{}",
            place.listener(),
            self.options()
        );
        (line, "listening on")
    }

    /// The initiator, which reads for `seconds` and prints a document.
    pub fn io(&self, place: &Place, address: &str, seconds: u64) -> String {
        format!(
            "ip netns exec {} farlane io --connect {address} --insecure --rw randread --bs 4k \
             --runtime {seconds} --time_based --wait 60s --json{}",
            place.talker(),
            self.options()
        )
    }
}
