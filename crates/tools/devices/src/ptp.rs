//! A node's clock as configuration files of linuxptp (ptp4l(8), phc2sys(8)).

use crate::node::Node;
use std::fmt::Write;
use tsn::gptp::{DomainConfig, NodeConfig, Stamping};
use wire::Duration;

/// priority1 of a clock that cannot be grandmaster (IEEE 802.1AS-2020, 8.6.2.1).
const NEVER: u8 = 255;
/// Parts per 10^12 in one part per 10^9.
const PPB: i64 = 1_000;

/// Configuration files of a node.
#[derive(Clone, Debug)]
pub struct Files {
    /// Configuration of ptp4l.
    pub ptp4l: String,
    /// Configuration of phc2sys, which passes the time of the network controller to the system.
    /// `None` with software time stamps, which are of the system's time.
    pub phc2sys: Option<String>,
    /// One sentence for each part of the plan that the files lack.
    pub notes: Vec<String>,
}

/// Writes the files of a node. `None` if the node takes no part in 802.1AS.
pub fn files(node: &Node) -> Option<Files> {
    let clock = node.clock.as_ref()?;
    let config = clock.node.as_ref()?;
    let domain = config.domains.first()?;
    let mut notes = Vec::new();
    if config.domains.len() > 1 {
        notes.push("the second domain of hot standby, which needs a second ptp4l".to_owned());
    }
    let stamping = match clock.stamping {
        Stamping::Hardware => "hardware",
        Stamping::Software => "software",
    };
    let hardware = clock.stamping == Stamping::Hardware;
    let socket = node.ports.first().and_then(|port| {
        let map = &port.config.queue_of_priority;
        map.iter().rposition(|class| *class == clock.class)
    });
    let mut ptp4l = format!(
        "# {}: start by ptp4l -f FILE. Sections of ports have the names of interfaces.\n[global]\n\
         time_stamping {stamping}\nnetwork_transport L2\ndelay_mechanism P2P\n\
         ptp_dst_mac 01:80:C2:00:00:0E\np2p_dst_mac 01:80:C2:00:00:0E\n\
         assume_two_step 1\nfollow_up_info 1\npath_trace_enabled 1\n",
        node.name
    );
    let mut add = |line: String| writeln!(ptp4l, "{line}").expect("a String takes all");
    messages(config, domain).into_iter().for_each(&mut add);
    add(format!("socket_priority {}", socket.unwrap_or(0)));
    node.ports.iter().for_each(|port| add(format!("[{}]", port.peer)));
    let phc2sys = hardware.then(|| {
        let common = common(config, domain).join("\n");
        format!("# {}: start by phc2sys -a -r -f FILE.\n[global]\n{common}\n", node.name)
    });
    Some(Files { ptp4l, phc2sys, notes })
}

/// Options that ptp4l and phc2sys share.
fn common(config: &NodeConfig, domain: &DomainConfig) -> Vec<String> {
    let servo = &config.servo;
    vec![
        format!("domainNumber {}", domain.number),
        "transportSpecific 0x1".to_owned(),
        format!("first_step_threshold {}", seconds(servo.first_step)),
        format!("step_threshold {}", seconds(servo.step)),
        format!("max_frequency {}", servo.max_ppt / PPB),
    ]
}

fn messages(config: &NodeConfig, domain: &DomainConfig) -> Vec<String> {
    let priority = domain.own.priority1;
    let mut all = common(config, domain);
    all.extend([
        format!("gmCapable {}", u8::from(priority < NEVER)),
        format!("priority1 {priority}"),
        format!("logSyncInterval {}", domain.log_sync),
        format!("logAnnounceInterval {}", domain.log_announce),
        format!("logMinPdelayReqInterval {}", config.log_delay),
        format!("syncReceiptTimeout {}", domain.sync_timeout),
        format!("announceReceiptTimeout {}", domain.announce_timeout),
        format!("neighborPropDelayThresh {}", config.most_delay.as_ns()),
    ]);
    all
}

/// Formats a time in seconds, exactly.
fn seconds(time: Duration) -> String {
    const SECOND: u64 = 1_000_000_000_000;
    let ps = time.as_ps();
    let text = format!("{}.{:012}", ps / SECOND, ps % SECOND);
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}
