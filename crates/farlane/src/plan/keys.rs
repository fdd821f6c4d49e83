//! Every key that a plan may have; docs/plan.md describes each.

/// Of the plan itself.
pub const ROOT: &[&str] = &[
    "transport",
    "congestion",
    "aggregation",
    "rate_limit",
    "seed",
    "runs",
    "limits",
    "record",
    "workload",
    "host",
    "hosts",
    "pcie",
    "link",
    "drive",
    "drives",
    "nodes",
    "bridges",
    "cables",
    "schedules",
    "traffic",
    "moves",
];
/// `[limits]`.
pub const LIMITS: &[&str] = &["events", "time"];
/// `[record]`.
pub const RECORD: &[&str] = &["trace", "pcapng", "report"];
/// `[workload]` and `[hosts.NAME.workload]`.
pub const WORKLOAD: &[&str] = &[
    "rw",
    "rwmixread",
    "bs",
    "iodepth",
    "numjobs",
    "size",
    "runtime",
    "rate",
    "stripe",
    "nsid",
    "dd",
    "count",
    "configreads",
    "gap",
    "replay",
    "timing",
];
/// `[host]`.
pub const HOST: &[&str] = &[
    "mmio",
    "memory_read",
    "memory",
    "completion_timeout",
    "ecrc",
    "submit",
    "complete",
    "interrupt",
    "polling",
];
/// `[hosts.NAME]`: those of `[host]`, and these.
pub const HOSTS: &[&str] = &[
    "mmio",
    "memory_read",
    "memory",
    "completion_timeout",
    "ecrc",
    "submit",
    "complete",
    "interrupt",
    "polling",
    "transport",
    "drives",
    "workload",
    "priority",
    "congestion",
    "aggregation",
    "rate_limit",
    "count",
    "link",
];
/// `[pcie]`.
pub const PCIE: &[&str] = &[
    "generation",
    "width",
    "propagation",
    "mps",
    "mrrs",
    "rcb",
    "root_port",
    "switch_port",
    "drive_port",
];
/// `[link]`.
pub const LINK: &[&str] = &[
    "rate",
    "propagation",
    "loss",
    "corruption",
    "delay",
    "delay_up_to",
    "cuts",
    "rate_steps",
    "tx_delay",
    "rx_delay",
    "tx_ring",
    "ack_delay",
    "vlan",
    "schedule",
    "clock_offset",
    "clock_drift",
    "priority",
    "mtu",
    "burst",
    "keepalive",
    "loss_limit",
    "max_frame",
];
/// `[hosts.NAME.link]`: those of `[link]` that a station has.
pub const STATION: &[&str] = &[
    "tx_delay",
    "rx_delay",
    "tx_ring",
    "ack_delay",
    "vlan",
    "schedule",
    "clock_offset",
    "clock_drift",
];
/// `[nodes.NAME]`: those of a station, and these.
pub const NODE: &[&str] = &[
    "tx_delay",
    "rx_delay",
    "tx_ring",
    "ack_delay",
    "vlan",
    "schedule",
    "clock_offset",
    "clock_drift",
    "count",
    "outages",
];
/// `[cables.NAME]`.
pub const CABLE: &[&str] = &[
    "a",
    "b",
    "rate",
    "propagation",
    "loss",
    "corruption",
    "delay",
    "delay_up_to",
    "cuts",
    "rate_steps",
];
/// `[bridges.NAME]`.
pub const BRIDGE: &[&str] = &["mode", "delay", "jitter", "schedule", "clock_offset", "clock_drift"];
/// `[schedules.NAME]`.
pub const SCHEDULE: &[&str] = &["base", "cycle", "entries"];
/// `[traffic.NAME]`.
pub const TRAFFIC: &[&str] = &["from", "to", "length", "interval", "pattern", "priority"];
/// `[moves.NAME]`.
pub const MOVE: &[&str] = &["drive", "to", "at"];
/// `[drive]` and `[drives.NAME]`.
pub const DRIVE: &[&str] = &[
    "preset",
    "media",
    "size",
    "namespaces",
    "mps",
    "dma_read",
    "reads_in_flight",
    "count",
    "firmware_read",
    "firmware_read_large",
    "write_base",
    "write_4k",
    "channels",
    "dies",
    "channel_rate",
    "read_lsb",
    "read_msb",
    "program",
    "page",
    "write_buffer",
    "variation",
    "stream_rate",
    "node",
];
/// Every table, as it is headed in a plan, with its keys.
pub const TABLES: [(&str, &[&str]); 18] = [
    ("", ROOT),
    ("limits", LIMITS),
    ("record", RECORD),
    ("workload", WORKLOAD),
    ("host", HOST),
    ("hosts.NAME", HOSTS),
    ("hosts.NAME.link", STATION),
    ("pcie", PCIE),
    ("link", LINK),
    ("nodes.NAME", NODE),
    ("cables.NAME", CABLE),
    ("bridges.NAME", BRIDGE),
    ("schedules.NAME", SCHEDULE),
    ("traffic.NAME", TRAFFIC),
    ("moves.NAME", MOVE),
    ("drive", DRIVE),
    ("drives.NAME", DRIVE),
    ("hosts.NAME.workload", WORKLOAD),
];
