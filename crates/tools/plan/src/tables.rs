//! Every table and key of a plan, with the allowed values. The parser, `--set`, the messages and
//! the tests use this list. docs/plan.md explains the keys; a test compares it with this list.

use super::filters::Policing;
use super::paths::PathNames;
use super::section::FARLANE;
use super::shapers::ClassShaper;
use super::shared::RESERVATIONS;
use super::traffic::ListenerDeadline;
use super::units::{
    COMPLETION, CYCLE, ClockStep, Drift, Form as _, Frequency, LogInterval, MacText, Offset,
    SILENCE, SURVIVAL, TESTS, VERIFY,
};
use super::variants::Setting;
use keys::Allowed::{self, *};
use keys::job::{BS, COUNT, DD, DEPTH, JOBS, KINDS, READS, RW, START};
use keys::units::{self, INTERVAL, LONG, MOST_BYTES, MOST_RATE, SHORT, SPAN};
use keys::{Key, KeyValue, Table};
use node::push::Mode as Push;
use sim::drive::Timing;
use sim::ethernet::port::RateStep;
use stats::random::Probability;
use std::ops::RangeInclusive;
use switch::aggregate::Policy;
use switch::congestion::{Config as Congestion, Rate as RateLimit};
use tsn::frer::Config as Recovery;
use tsn::psfp::GateEntry;
use wire::Instant;

const fn key(name: &'static str, allowed: Allowed) -> Key {
    Key::new(name, allowed)
}

const fn with(with: &'static [&'static str], name: &'static str, allowed: Allowed) -> Key {
    Key { name, allowed, with }
}

const PUSH: [&str; 3] = [Push::Off.name(), Push::Entries.name(), Push::All.name()];

/// Names of transports.
pub const TRANSPORTS: [&str; 4] = ["direct", "tcp", "tsn", "raw"];
const TCP: &[&str] = &["tcp", "tsn"];
/// Transports over Ethernet without TCP.
pub const RAW: &[&str] = &["raw"];
/// Transports with a network.
pub const TUNNEL: &[&str] = &["tcp", "tsn", "raw"];

/// Number of copies of a host or a drive.
const COPIES: Allowed = Number(1, 32);
/// Values of keys with default off.
const ON: &[&str] = &["off", "on"];
const PRIORITY: Allowed = Number(0, 7);
const SHARE: Allowed = Form(Probability::check);
const SIZE: Allowed = Form(|text| units::size(text).map(drop));
const NAME: Allowed = Form(String::check);
/// Payload sizes: MPS and MRRS.
const PAYLOAD: Allowed = Power(128, 4096);
const DRIVE_SIZE: Allowed = Size(
    |size| (4096..=MOST_BYTES).contains(&size) && size.is_multiple_of(4096),
    "a multiple of 4096B, 4096B to 65536GiB",
);

/// Keys of the root table.
pub const ROOT: Table = &[
    &[key("include", Files), key("parameters", Values(&NAME))],
    &[key("transport", Word(&TRANSPORTS))],
    TUNNELS,
    &[
        key("machine", Word(&["nvme-tsn", FARLANE])),
        key("seed", Number(0, i64::MAX as u64)),
        key("runs", Number(1, 10_000)),
        key("runtime", TimeIn(SPAN, "s")),
        key("limits", Table(LIMITS)),
        key("record", Table(RECORD)),
        key("calibration", File),
        key("workload", Table(WORKLOAD)),
        key("host", Table(HOST)),
        key("hosts", Named(HOSTS)),
        key("pcie", Table(PCIE)),
        key("link", Table(LINK)),
        key("drive", Table(DRIVE)),
        key("drives", Named(DRIVE)),
        key("nodes", Named(NODE)),
        key("bridges", Named(BRIDGE)),
        key("cables", Named(CABLE)),
        key("clocks", Table(CLOCKS)),
        key("schedules", Named(SCHEDULE)),
        key("shapers", Named(SHAPER)),
        key("traffic", Named(TRAFFIC)),
        key("flows", Named(FLOW)),
        key("streams", Named(STREAM)),
        key("filters", Named(FILTER)),
        key("moves", Named(MOVE)),
        key("variants", Named(VARIANT)),
    ],
];

/// Keys of a calibration's file.
pub const CALIBRATION: Table = &[&[
    key("machine", Word(&["nvme-tsn", "farlane"])),
    key("calibrated", Table(CALIBRATED)),
    key("host", Table(HOST)),
    key("pcie", Table(PCIE)),
    key("link", Table(LINK)),
    key("drive", Table(DRIVE)),
]];

const CALIBRATED: Table = &[&[
    key("processor", Text),
    key("processors", Number(1, 1 << 20)),
    key("kernel", Text),
    key("spin", Text),
    key("date", Text),
]];

const TUNNELS: &[Key] = &[
    with(RAW, "congestion", Form(Congestion::check)),
    with(TUNNEL, "aggregation", Form(Policy::check)),
    with(TUNNEL, "rate_limit", Form(RateLimit::check)),
];

const VARIANT: Table = &[&[key("set", List(&Form(Setting::check)))]];

const LIMITS: Table =
    &[&[key("events", Number(1, sim::kernel::MOST_EVENTS)), key("time", Time(SPAN))]];

const RECORD: Table = &[&[key("trace", File), key("pcapng", File), key("report", File)]];

const WORKLOAD: Table = &[START, RW, BS, DEPTH, JOBS, DD, COUNT, READS, REPLAY];

/// Kinds of workloads by the key that selects one, each with its further keys.
pub const WORKLOADS: [(&str, Table); 4] =
    [KINDS[0], KINDS[1], KINDS[2], ("replay", &[REPLAY, DEPTH, START])];

const REPLAY: &[Key] = &[key("replay", Files), key("timing", Word(&["recorded", "asap"]))];

const HOST: Table = &[EVERY_HOST];

const EVERY_HOST: &[Key] = &[
    key("mmio", Time(SHORT)),
    key("memory_read", Time(SHORT)),
    key("memory", Size(|size| (1 << 20..=3 << 30).contains(&size), "1MiB to 3GiB")),
    key("memory_at", Word(&["low", "high"])),
    key("completion_timeout", Time(COMPLETION)),
    key("ecrc", Word(&["off", "on"])),
    key("push", Word(&PUSH)),
    key("submit", Time(SHORT)),
    key("complete", Time(SHORT)),
    key("interrupt", Time(SHORT)),
    key("polling", Time(INTERVAL)),
    key("deadline", Time(SPAN)),
    with(TUNNEL, "reserve", Rate(1, MOST_RATE)),
    key("drive_resets", List(&Form(Instant::check))),
];

const HOSTS: Table = &[
    EVERY_HOST,
    &[
        key("transport", Word(&TRANSPORTS)),
        key("drives", List(&NAME)),
        with(TUNNEL, "drive_reservation", Word(&RESERVATIONS)),
        key("workload", Table(WORKLOAD)),
        with(TUNNEL, "priority", PRIORITY),
        with(TUNNEL, "second", Text),
    ],
    TUNNELS,
    &[key("count", COPIES), with(TUNNEL, "link", Table(STATION))],
];

const PCIE: Table = &[&[
    key("generation", Number(1, 5)),
    key("width", Number(1, 16)),
    key("propagation", Time(SHORT)),
    key("mps", PAYLOAD),
    key("mrrs", PAYLOAD),
    key("rcb", Power(64, 4096)),
    key("root_port", Time(SHORT)),
    key("switch_port", Time(SHORT)),
    key("drive_port", Time(SHORT)),
]];

const LINK: Table = &[
    WIRE,
    INTERFACE,
    PORT,
    CLOCK,
    &[
        with(TUNNEL, "priority", PRIORITY),
        with(TUNNEL, "reservable", SHARE),
        with(RAW, "mtu", SIZE),
        with(RAW, "frame_extra", Bytes(2, 256)),
        with(RAW, "tlp_extra", Bytes(0, 64)),
        with(RAW, "ack_time", Time(SHORT)),
        with(RAW, "ack_frames", Number(1, 1024)),
        with(TCP, "burst", SIZE),
        with(TUNNEL, "keepalive", Time(SILENCE)),
        with(TUNNEL, "loss_limit", Time(SILENCE)),
        with(TUNNEL, "survive", Time(SURVIVAL)),
        with(TUNNEL, "paths", Word(&["active", "both"])),
        with(TUNNEL, "keep", Bytes(1 << 10, 1 << 30)),
        with(TUNNEL, "max_frame", SIZE),
    ],
];

const WIRE: &[Key] = &[
    key("rate", Form(sim::ethernet::Rate::check)),
    key("propagation", Time(SHORT)),
    key("loss", SHARE),
    key("corruption", SHARE),
    key("macsec", Word(&["off", "on", "no-sci"])),
    key("delay", SHARE),
    key("reordering", SHARE),
    key("delay_up_to", Time(SHORT)),
    key("duplication", SHARE),
    key("during", List(&Form(<(Instant, Instant)>::check))),
    key("cuts", List(&Form(<(Instant, Option<Instant>)>::check))),
    key("rate_steps", List(&Form(RateStep::check))),
];

const STATION: Table = &[INTERFACE, PORT, CLOCK, STATION_PORTS];

const STATION_PORTS: &[Key] = &[key("ports", Named(&[PORT])), key("mac", Form(MacText::check))];

const INTERFACE: &[Key] = &[
    key("tx_delay", Time(SHORT)),
    key("rx_delay", Time(SHORT)),
    key("tx_ring", Number(1, 1024)),
    with(TCP, "ack_delay", Time(SHORT)),
    key("vlan", NumberOrNone(0, 4094)),
    key("processor", Word(&["none", "serial"])),
    key("copy_rate", Rate(1_000_000, MOST_RATE)),
    key("frame_time", Time(SHORT)),
    key("wake_time", Time(SHORT)),
    with(TUNNEL, "tlp_time", Time(SHORT)),
    with(TUNNEL, "packet_time", Time(SHORT)),
    key("stalls", List(&Form(<(Instant, Instant)>::check))),
    key("connection_resets", List(&Form(Instant::check))),
];
/// Keys of interfaces that need a processor.
pub const PROCESSOR: [&str; 6] =
    ["copy_rate", "frame_time", "wake_time", "tlp_time", "packet_time", "stalls"];
/// Keys of every port. An interface has one port; a bridge has values for all its ports and for
/// each one.
const PORT: &[Key] = &[
    key("schedule", Text),
    key("gate_grain", Time(INTERVAL)),
    key("gate_entries", Number(1, tsn::GateControlList::MAX_ENTRIES as u64)),
    key("shapers", List(&Form(ClassShaper::check))),
    key("queues", Number(1, 8)),
    key("class_of_pcp", List(&PRIORITY)),
    key("express", List(&PRIORITY)),
    key("add_frag_size", Number(0, 3)),
    key("verify", Word(&["on", "off"])),
    key("verify_time", Time(VERIFY)),
    key("hold_advance", Time(SHORT)),
    key("release_advance", Time(SHORT)),
];
/// Keys of the ports of bridges. At interfaces, the ring bounds the queues.
const QUEUES: &[Key] = &[
    key("vlans", List(&Number(1, 4094))),
    key("pvid", Number(1, 4094)),
    key("queue_frames", Number(1, 65_536)),
    // The minimum is the longest frame of TCP with its tag.
    key("queue_bytes", Bytes(1522, 1 << 30)),
];
const CLOCK: &[Key] = &[
    key("clock_offset", Form(Offset::check)),
    key("clock_drift", Form(Drift::check)),
    key("clock_walk", Form(Frequency::check)),
    key("clock_walk_every", Time(INTERVAL)),
    key("clock_walk_limit", Form(Frequency::check)),
    key("clock_steps", List(&Form(ClockStep::check))),
    key("clock_priority", Number(0, 255)),
    key("standby_priority", Number(0, 255)),
    key("stamping", Word(&["hardware", "software"])),
    key("stamp_grain", Time(INTERVAL)),
    key("stamp_noise", Time(SHORT)),
    key("on_step", Word(&["rederived", "frozen", "burst"])),
];

/// Clocks and 802.1AS for all nodes.
const CLOCKS: Table = &[&[
    key("sync", Word(&["gptp", "off"])),
    key("sync_interval", Form(LogInterval::check)),
    key("pdelay_interval", Form(LogInterval::check)),
    key("announce_interval", Form(LogInterval::check)),
    key("sync_timeout", Number(1, 255)),
    key("announce_timeout", Number(1, 255)),
    key("delay_limit", Time(SHORT)),
    key("standby", Word(&["off", "on"])),
    key("class", PRIORITY),
    key("first_step", Time(SHORT)),
    key("step", Time(SHORT)),
    key("max_frequency", Form(Frequency::check)),
    key("sample", Time(INTERVAL)),
]];

const NODE: Table = &[
    INTERFACE,
    PORT,
    CLOCK,
    STATION_PORTS,
    &[
        key("count", Number(1, 1000)),
        key("switch", Text),
        with(TUNNEL, "second", Text),
        key("outages", List(&Form(<(Instant, Option<Instant>)>::check))),
        key("kills", List(&Form(<(Instant, Option<Instant>)>::check))),
    ],
];

const CABLE: Table = &[&[key("a", Text), key("b", Text)], WIRE, CUTS_ONE_WAY];

/// Keys of cuts of one direction: to the end a, or to the end b.
pub const ONE_WAY: [&str; 2] = ["cuts_to_a", "cuts_to_b"];
const CUTS_ONE_WAY: &[Key] = &[
    key(ONE_WAY[0], List(&Form(<(Instant, Option<Instant>)>::check))),
    key(ONE_WAY[1], List(&Form(<(Instant, Option<Instant>)>::check))),
];

const BRIDGE: Table = &[
    &[
        key("mode", Word(&["store-and-forward", "cut-through"])),
        key("delay", Time(SHORT)),
        key("jitter", Time(SHORT)),
        key("ports", Named(BRIDGE_PORT)),
        key("outages", List(&Form(<(Instant, Option<Instant>)>::check))),
    ],
    PORT,
    QUEUES,
    CLOCK,
];

const BRIDGE_PORT: Table = &[PORT, QUEUES];

const SCHEDULE: Table = &[&[
    key("base", Time(LONG)),
    key("cycle", Time(SPAN)),
    key("entries", List(&Form(tsn::Entry::check))),
    key("then", Text),
    key("extension", Time(LONG)),
]];

const SHAPER: Table = &[&[
    key("algorithm", Word(&["strict", "cbs", "ats", "ets", "cqf"])),
    key("idle_slope", Rate(1, MOST_RATE)),
    key("guard_band_credit", Word(&["rises", "frozen"])),
    key("counted", Word(&["gap", "frame"])),
    key("rate", Rate(1, MOST_RATE)),
    key("burst", Bytes(64, 1 << 30)),
    key("max_residence", Time(SPAN)),
    key("weight", Number(1, 100)),
    key("cycle", Time(CYCLE)),
    key("base", Time(LONG)),
    key("queue_frames", Number(1, 65_536)),
    key("queue_bytes", Bytes(64, 1 << 30)),
    key("max_sdu", Bytes(46, 9000)),
]];

/// Patterns of a stream that require a key of their own.
pub const PATTERNS: [(&str, &str); 3] =
    [("normal", "deviation"), ("uniform", "spread"), ("sporadic", "least")];

/// Keys of a stream that a recording replaces.
pub const NOT_REPLAYED: [&str; 11] = [
    "length",
    "interval",
    "rate",
    "pattern",
    "deviation",
    "spread",
    "least",
    "jitter",
    "on",
    "off",
    "burst",
];

/// Lengths of generated frames without tag, in bytes from header to FCS.
pub const FRAME_LENGTHS: RangeInclusive<u64> = 60..=9018;

const TRAFFIC: Table = &[&[
    key("from", Text),
    key("to", Names),
    key("paths", List(&Form(PathNames::check))),
    key("replay", File),
    key("repeat", Word(ON)),
    key("length", Size(|size| FRAME_LENGTHS.contains(&size), "60B to 9018B, header to FCS")),
    key("interval", Time(SPAN)),
    key("rate", Rate(1, MOST_RATE)),
    key("pattern", Word(&["periodic", "poisson", "normal", "uniform", "sporadic", "envelope"])),
    key("deviation", Time(SPAN)),
    key("spread", Time(SPAN)),
    key("least", Time(SPAN)),
    key("jitter", Time(SPAN)),
    key("on", Time(SPAN)),
    key("off", Time(SPAN)),
    key("seed", Number(0, i64::MAX as u64)),
    key("burst", Number(1, 100_000)),
    key("start", Time(LONG)),
    key("stop", Time(SPAN)),
    key("babbles", List(&Form(<(Instant, Instant)>::check))),
    key("clock", Word(&["node", "true"])),
    key("priority", PRIORITY),
    key("vlan", Number(0, 4094)),
    key("pcp", PRIORITY),
    key("address", Form(MacText::check)),
    key("deadline", Time(SPAN)),
    key("deadlines", List(&Form(ListenerDeadline::check))),
    key("loss", SHARE),
    key("reserve", Rate(1, MOST_RATE)),
    key("committed_rate", Rate(1, MOST_RATE)),
    key("committed_burst", Bytes(64, 1 << 30)),
]];

const FLOW: Table = &[&[
    key("from", Text),
    key("to", Text),
    key("priority", PRIORITY),
    key("start", Time(LONG)),
    key("stop", Time(SPAN)),
    key("bytes", Bytes(1, MOST_BYTES)),
]];

const STREAM: Table = &[&[
    key("traffic", Text),
    key("from", Text),
    key("to", Text),
    key("both", Word(ON)),
    key("identification", Word(&["null", "source", "priority", "ip"])),
    key("priority", PRIORITY),
    key("paths", List(&Form(PathNames::check))),
    key("numbers", Text),
    key("eliminate", List(&NAME)),
    key("algorithm", Word(&["vector", "match"])),
    key("history", Number(Recovery::SHORTEST as u64, Recovery::LONGEST as u64)),
    key("reset", Time(SPAN)),
    key("take_no_sequence", Word(ON)),
    key("latent_difference", Number(0, i64::MAX as u64)),
    key("latent_paths", Number(2, 255)),
    key("latent_period", Time(TESTS)),
    key("latent_reset", Time(TESTS)),
    key("police", List(&Form(Policing::check))),
]];

const FILTER: Table = &[&[
    key("max_sdu", Bytes(46, 9000)),
    key("block_oversize", Word(ON)),
    key("entries", List(&Form(GateEntry::check))),
    key("base", Time(LONG)),
    key("cycle", Time(SPAN)),
    key("block_closed", Word(ON)),
    key("block_octets", Word(ON)),
    key("rate", Rate(1, MOST_RATE)),
    key("burst", Bytes(64, 1 << 30)),
    key("excess_rate", Rate(1, MOST_RATE)),
    key("excess_burst", Bytes(64, 1 << 30)),
    key("coupling", Word(ON)),
    key("yellow", Word(&["pass", "drop"])),
    key("block_red", Word(ON)),
]];

const MOVE: Table = &[&[key("drive", Text), key("to", Text), key("at", Time(LONG))]];

const DRIVE: Table = &[&[
    key("preset", Word(&Timing::PRESETS)),
    key("media", Word(&["persistent", "volatile"])),
    key("faults", List(&Text)),
    key("size", DRIVE_SIZE),
    key("namespaces", List(&DRIVE_SIZE)),
    key("mps", PAYLOAD),
    key("dma_read", PAYLOAD),
    key("reads_in_flight", Number(1, 1024)),
    key("count", COPIES),
    key("firmware_read", Time(SHORT)),
    key("firmware_read_large", Time(SHORT)),
    key("write_base", Time(SHORT)),
    key("write_4k", Time(SHORT)),
    key("channels", Number(1, 256)),
    key("dies", Number(1, 256)),
    key("channel_rate", Rate(1_000, MOST_RATE)),
    key("read_lsb", Time(SHORT)),
    key("read_msb", Time(SHORT)),
    key("program", Time(SHORT)),
    key("page", Power(4096, 1 << 24)),
    key("write_buffer", Bytes(0, MOST_BYTES)),
    key("variation", Time(SHORT)),
    key("stream_rate", Rate(0, MOST_RATE)),
    key("deadline", Time(SPAN)),
    with(TUNNEL, "node", Text),
]];
