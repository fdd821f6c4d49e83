//! An NVMe drive behind the bridge: 4 KiB reads through farlane's own tunnel.

use super::place::Place;

/// The options of reads of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// Priority of the nodes' frames in the VLAN; `None` for no priority and no VLAN.
    pub priority: Option<u8>,
    /// Options of the nodes' own gate; empty if there is none.
    pub gate: String,
}

impl Reads {
    /// Returns the name in runs.
    pub fn name(&self) -> &'static str {
        match (self.priority, self.gate.as_str()) {
            (None, _) => "reads",
            (Some(_), "") => "reads with priority",
            (Some(_), _) => "reads with priority and gate",
        }
    }

    /// Returns whether frames of the drive have a tag.
    pub fn is_tagged(&self) -> bool {
        self.priority.is_some()
    }

    fn options(&self) -> String {
        let priority =
            self.priority.map_or(String::new(), |priority| format!(" --priority {priority}"));
        format!("{priority}{}", self.gate)
    }

    /// Returns the command of the device node at `address`, and the text that it prints when it
    /// listens.
    pub fn device(&self, place: &Place, address: &str) -> (String, &'static str) {
        let line = format!(
            "ip netns exec {} farlane device --listen {address} --insecure --namespace ram=64M{}",
            place.listener(),
            self.options()
        );
        (line, "listening on")
    }

    /// Returns the command of the initiator, which reads for `seconds` and prints a JSON document.
    pub fn io(&self, place: &Place, address: &str, seconds: u64) -> String {
        format!(
            "ip netns exec {} farlane io --connect {address} --insecure --rw randread --bs 4k \
             --runtime {seconds} --time_based --wait 60s --json{}",
            place.talker(),
            self.options()
        )
    }
}
