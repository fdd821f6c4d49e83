//! Every key of every table, set to what it cannot be: one line that says
//! where, and what is allowed.

use super::{Plan, keys};
use std::collections::BTreeSet;

/// A plan with every table that there is: heading, lines.
const PLAN: [(&str, &str); 21] = [
    ("", "transport = \"raw\""),
    ("limits", ""),
    ("record", ""),
    ("workload", "rw = \"randrw\""),
    ("host", ""),
    ("hosts.h", "drives = [\"d\"]"),
    ("hosts.h.link", ""),
    ("hosts.h.workload", "rw = \"randrw\""),
    ("hosts.g", ""),
    ("pcie", ""),
    ("link", ""),
    ("nodes.n", ""),
    ("cables.c", "a = \"h\"\nb = \"s\""),
    ("cables.e", "a = \"g\"\nb = \"s\""),
    ("cables.f", "a = \"n\"\nb = \"s\""),
    ("bridges.s", ""),
    ("schedules.l", "entries = [\"S ff 1ms\"]"),
    ("traffic.t", "from = \"h\"\nto = \"n\"\ninterval = \"1ms\""),
    ("moves.m", "drive = \"d\"\nto = \"g\"\nat = \"1ms\""),
    ("drive", ""),
    ("drives.d", ""),
];

const SHORT: &str = "0ns to 1s; found";
const HOST: &str = "host hosts.h";
const STATION: &str = "link hosts.h.link nodes.n";
const CABLE: &str = "link cables.c";
const WORK: &str = "workload hosts.h.workload";
const DRIVE: &str = "drive drives.d";
const PLANS: &str = " hosts.h";

/// Tables, a line of them (what it needs before it), what has to be said.
const ROWS: &[(&str, &str, &str)] = &[
    (PLANS, "transport = \"udp\"", "There are: direct, tcp, tsn, raw"),
    (PLANS, "congestion = \"rate=0\"", "rate=RATE above 0 and up to 1000G"),
    (PLANS, "congestion = \"swift=2s\"", "swift=TIME up to 1s"),
    (PLANS, "aggregation = \"wait=1s\"", "wait=TIME up to 10ms"),
    (PLANS, "rate_limit = \"0G\"", "above 0 and up to 1000G"),
    (PLANS, "rate_limit = \"1001G\"", "above 0 and up to 1000G"),
    ("", "seed = -1", "0 to 9223372036854775807"),
    ("", "runs = 0", "1 to 10000"),
    ("limits", "events = 0", "1 to 9223372036854775807"),
    ("limits", "time = \"0s\"", "1ns to 1000000s; found 0ns"),
    ("record", "trace = 5", "expected a text"),
    ("record", "pcapng = 5", "expected a text"),
    ("record", "report = 5", "expected a text"),
    (WORK, "rw = \"erase\"", "There are: read, write, randread, randwrite, randrw, rw"),
    (WORK, "rwmixread = 101", "0 to 100"),
    (WORK, "rw = \"read\"\nrwmixread = 50", "rwmixread means nothing"),
    (WORK, "bs = \"1000B\"", "a multiple of 512B, at most 1GiB"),
    (WORK, "iodepth = 1024", "1 to 1023"),
    (WORK, "numjobs = 65", "1 to 64"),
    (WORK, "size = \"1GiB\"", "the smallest has 67108864"),
    (WORK, "runtime = \"0ns\"", "1ns to 1000000s; found 0ns"),
    (WORK, "rate = \"0B/s\"", "1B/s to 1000GB/s; found 0B/s"),
    (WORK, "stripe = \"2GiB\"", "0B to 1GiB; found 2GiB"),
    (WORK, "nsid = 2", "a drive has no namespace 2"),
    (WORK, "nsid = 33", "1 to 32"),
    (WORK, "dd = \"erase\"", "There are: read, write"),
    (WORK, "dd = \"read\"\ncount = 0", "1 to 4294967296"),
    (WORK, "configreads = 0", "1 to 4294967296"),
    (WORK, "configreads = 1\ngap = \"1000001s\"", "0ns to 1000000s; found 1000001s"),
    (WORK, "replay = 5", "expected a text"),
    (WORK, "replay = \"x\"\ntiming = \"late\"", "There are: recorded, asap"),
    (HOST, "mmio = \"2s\"", SHORT),
    (HOST, "memory_read = \"2s\"", SHORT),
    (HOST, "memory = \"4GiB\"", "1MiB to 3GiB"),
    (HOST, "completion_timeout = \"49us\"", "50us to 64s; found 49us"),
    (HOST, "completion_timeout = \"65s\"", "50us to 64s; found 65s"),
    (HOST, "ecrc = \"x\"", "There are: off, on"),
    (HOST, "submit = \"2s\"", SHORT),
    (HOST, "complete = \"2s\"", SHORT),
    (HOST, "interrupt = \"2s\"", SHORT),
    (HOST, "polling = \"0ns\"", "1ns to 1s; found 0ns"),
    ("hosts.h", "drives = [\"x\"]", "There are: d"),
    ("hosts.h", "workload = 5", "expected a table"),
    ("hosts.h", "priority = 8", "0 to 7"),
    ("hosts.h nodes.n", "count = 33", "1 to 32"),
    ("hosts.h", "link = 5", "expected a table"),
    ("pcie", "generation = 6", "1 to 5"),
    ("pcie", "width = 3", "1, 2, 4, 8 or 16 lanes"),
    ("pcie", "propagation = \"2s\"", SHORT),
    ("pcie", "mps = 100", "128 to 4096"),
    ("pcie", "mrrs = 100", "128 to 4096"),
    ("pcie", "rcb = 32", "64 to 4096"),
    ("pcie", "root_port = \"2s\"", SHORT),
    ("pcie", "switch_port = \"2s\"", SHORT),
    ("pcie", "drive_port = \"2s\"", SHORT),
    (CABLE, "rate = \"3G\"", "one of 100M, 1G, 2.5G"),
    (CABLE, "propagation = \"1000s\"", "0ns to 1s; found 1000s"),
    (CABLE, "loss = \"101%\"", "at most 100%"),
    (CABLE, "corruption = \"101%\"", "at most 100%"),
    (CABLE, "delay = \"101%\"", "at most 100%"),
    (CABLE, "delay_up_to = \"2s\"", SHORT),
    (CABLE, "cuts = [\"1s..1000001s\"]", "up to 1000000s"),
    (CABLE, "rate_steps = [\"1ms 0G\"]", "1 b/s to 1000G"),
    (STATION, "tx_delay = \"2s\"", SHORT),
    (STATION, "rx_delay = \"2s\"", SHORT),
    (STATION, "tx_ring = 0", "1 to 1024"),
    (STATION, "ack_delay = \"2s\"", SHORT),
    (STATION, "vlan = 4095", "0 to 4094"),
    (STATION, "schedule = \"x\"", "There are: l, none"),
    (STATION, "clock_offset = \"-1001s\"", "at most 1000s"),
    (STATION, "clock_drift = \"2000ppm\"", "at most 1000ppm"),
    ("link", "priority = 8", "0 to 7"),
    ("link", "mtu = \"68B\"", "bytes for the largest TLP at MPS 256, to 9000B"),
    ("link", "mtu = \"9001B\"", "bytes for the largest TLP at MPS 256, to 9000B"),
    ("link", "mtu = 5", "expected a size"),
    ("link", "burst = \"5B\"", "bytes for the largest TLP at MPS 256, to 1MiB"),
    ("link", "burst = \"2MiB\"", "bytes for the largest TLP at MPS 256, to 1MiB"),
    ("link", "keepalive = \"0ns\"", "1us to 3600s; found 0ns"),
    ("link", "keepalive = \"2s\"", "loss_limit is above keepalive, 1us to 3600s"),
    ("link", "loss_limit = \"3601s\"", "1us to 3600s; found 3601s"),
    ("link", "max_frame = \"2MiB\"", "bytes for the largest TLP, to 1MiB"),
    ("nodes.n", "outages = [\"1000001s..\"]", "up to 1000000s"),
    ("cables.c", "a = \"x\"", "There are: h, g, n, s"),
    ("cables.c", "b = \"x\"", "There are: h, g, n, s"),
    ("bridges.s", "mode = \"x\"", "There are: store-and-forward, cut-through"),
    ("bridges.s", "delay = \"2s\"", SHORT),
    ("bridges.s", "jitter = \"2s\"", SHORT),
    ("bridges.s", "schedule = \"x\"", "There are: l, none"),
    ("bridges.s", "clock_offset = \"1001s\"", "at most 1000s"),
    ("bridges.s", "clock_drift = \"2000ppm\"", "at most 1000ppm"),
    ("schedules.l", "base = \"1000001s\"", "0ns to 1000000s; found 1000001s"),
    ("schedules.l", "cycle = \"0ns\"", "1ns to 1000000s; found 0ns"),
    ("schedules.l", "entries = [\"S ff 0ns\"]", "1ns to 1000000s"),
    ("traffic.t", "from = \"x\"", "There are: h, g, n"),
    ("traffic.t", "to = \"x\"", "There are: h, g, n"),
    ("traffic.t", "length = \"63B\"", "64B to 1518B"),
    ("traffic.t", "interval = \"0ns\"", "1ns to 1000000s; found 0ns"),
    ("traffic.t", "pattern = \"x\"", "There are: periodic, poisson"),
    ("traffic.t", "priority = 8", "0 to 7"),
    ("moves.m", "drive = \"x\"", "There are: d"),
    ("moves.m", "to = \"x\"", "There are: h, g"),
    ("moves.m", "at = \"1000001s\"", "0ns to 1000000s; found 1000001s"),
    (DRIVE, "preset = \"x\"", "There are: 970-pro, optane, sata-ssd, null"),
    (DRIVE, "media = \"x\"", "There are: persistent, volatile"),
    (DRIVE, "size = \"100B\"", "4096B to 65536GiB"),
    (DRIVE, "namespaces = [\"4KiB\", \"100B\"]", "4096B to 65536GiB"),
    (DRIVE, "mps = 8192", "128 to 4096"),
    (DRIVE, "dma_read = 64", "128 to 4096"),
    (DRIVE, "reads_in_flight = 0", "1 to 1024"),
    (DRIVE, "count = 33", "1 to 32"),
    (DRIVE, "firmware_read = \"2s\"", SHORT),
    (DRIVE, "firmware_read_large = \"2s\"", SHORT),
    (DRIVE, "write_base = \"2s\"", SHORT),
    (DRIVE, "write_4k = \"2s\"", SHORT),
    (DRIVE, "channels = 257", "1 to 256"),
    (DRIVE, "dies = 0", "1 to 256"),
    (DRIVE, "channel_rate = \"0B/s\"", "1kB/s to 1000GB/s; found 0B/s"),
    (DRIVE, "read_lsb = \"2s\"", SHORT),
    (DRIVE, "read_msb = \"2s\"", SHORT),
    (DRIVE, "program = \"2s\"", SHORT),
    (DRIVE, "page = \"1000B\"", "4096 to 16777216"),
    (DRIVE, "write_buffer = \"1B\"", "0B, or a page at least, up to 65536GiB"),
    (DRIVE, "variation = \"2s\"", SHORT),
    (DRIVE, "stream_rate = \"1001GB/s\"", "0B/s to 1000GB/s; found 1001GB/s"),
    (DRIVE, "node = \"x\"", "There are: n"),
];

fn key(line: &str) -> &str {
    line.split_once(" = ").expect("a key and a value").0
}

/// The plan with `lines` in a table, and the number of the last of these.
fn text(table: &str, lines: &[&str]) -> (String, usize) {
    let replaced: BTreeSet<&str> = lines.iter().copied().map(key).collect();
    let kind = ["dd", "configreads", "replay"].iter().any(|kind| replaced.contains(kind));
    let mut all: Vec<String> = Vec::new();
    let mut at = 0;
    for (heading, body) in PLAN {
        let inside =
            if table.is_empty() { heading } else { heading.strip_prefix(table).unwrap_or("") };
        let inside = inside.trim_start_matches('.').split('.').next().unwrap_or("");
        if !inside.is_empty() && replaced.contains(inside) {
            continue;
        }
        if !heading.is_empty() {
            all.push(format!("[{heading}]"));
        }
        let here = heading == table;
        let kept = |line: &&str| {
            let gone = here && (replaced.contains(key(line)) || kind && key(line) == "rw");
            !line.is_empty() && !gone
        };
        all.extend(body.lines().filter(kept).map(str::to_owned));
        if here {
            all.extend(lines.iter().map(|line| (*line).to_owned()));
            at = all.len();
        }
    }
    (all.join("\n"), at)
}

fn mistake(plan: Plan) -> Option<String> {
    plan.build().err().map(|error| error.to_string())
}

/// `burst` and `ack_delay` are TCP's.
fn with_its_transport(key: &str, text: String) -> String {
    match key {
        "burst" | "ack_delay" => text.replace("\"raw\"", "\"tcp\""),
        _ => text,
    }
}

#[test]
fn what_a_key_cannot_be_is_refused_with_its_place_and_range() {
    let (whole, _) = text("", &[]);
    assert_eq!(mistake(Plan::parse("p.toml", &whole).unwrap()), None, "{whole}");
    for (tables, lines, wanted) in ROWS {
        let lines: Vec<&str> = lines.lines().collect();
        let (last, before) = lines.split_last().unwrap();
        for table in tables.split(' ') {
            let (text, at) = text(table, &lines);
            let text = with_its_transport(key(last), text);
            let plan = Plan::parse("p.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let found = mistake(plan).unwrap_or_else(|| panic!("[{table}] {last} is taken"));
            let place = format!("p.toml:{at}:");
            assert!(
                found.starts_with(&place) && found.contains(wanted),
                "[{table}] {last}: {found}"
            );
            assert!(!found.contains('\n'), "{found}");
            by_option(table, before, last, wanted);
        }
    }
}

/// The same by `--set`, for what it can say.
fn by_option(table: &str, before: &[&str], line: &str, wanted: &str) {
    let (key, value) = line.split_once(" = ").unwrap();
    if value.starts_with('[') {
        return;
    }
    let value = value.trim_matches('"');
    let path = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
    let text = with_its_transport(key, text(table, before).0);
    let plan = Plan::parse("p.toml", &text).unwrap().with(&path, value, "--set").unwrap();
    // The option's key goes before the plan's, of which there may be another.
    let found = mistake(plan).unwrap_or_else(|| panic!("--set {path}={value} is taken"));
    let known = ["dd", "configreads", "replay"].contains(&key) && found.contains("it takes one");
    let said = found.starts_with(&format!("--set {path}={value}: ")) && found.contains(wanted);
    assert!(said || known, "--set {path}={value}: {found}");
}

/// Tables of tables, which are no values.
const TABLES: [&str; 15] = [
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

#[test]
fn a_table_is_no_number() {
    for table in TABLES {
        let line = format!("{table} = 5");
        let (text, at) = text("", &[&line]);
        let found = mistake(Plan::parse("p.toml", &text).unwrap()).expect("no table");
        assert_eq!(found, format!("p.toml:{at}:{}: expected a table", table.len() + 4));
    }
}

#[test]
fn every_key_has_a_row() {
    let names = |table: &str| match table {
        "drives.NAME" => "drives.d".to_owned(),
        "cables.NAME" => "cables.c".to_owned(),
        "nodes.NAME" => "nodes.n".to_owned(),
        "bridges.NAME" => "bridges.s".to_owned(),
        "schedules.NAME" => "schedules.l".to_owned(),
        "traffic.NAME" => "traffic.t".to_owned(),
        "moves.NAME" => "moves.m".to_owned(),
        table => table.replace("hosts.NAME", "hosts.h"),
    };
    let known: BTreeSet<String> = keys::TABLES
        .iter()
        .flat_map(|(table, keys)| keys.iter().map(move |key| format!("[{}] {key}", names(table))))
        .filter(|key| !TABLES.iter().any(|table| *key == format!("[] {table}")))
        .collect();
    let last = |lines: &'static str| lines.lines().last().unwrap();
    let rows = ROWS.iter().flat_map(|(tables, lines, _)| {
        tables.split(' ').map(move |table| format!("[{table}] {}", key(last(lines))))
    });
    assert_eq!(rows.collect::<BTreeSet<_>>(), known);
}

#[test]
fn what_means_nothing_with_a_transport_is_refused() {
    let refused = |text: &str| {
        let plan = Plan::parse("p.toml", &format!("{text}\n[workload]\nconfigreads = 1\n"));
        mistake(plan.unwrap()).unwrap_or_else(|| panic!("{text} is taken"))
    };
    for (text, wanted) in [
        (
            "[link]\nmtu = \"9000B\"",
            "p.toml:2:7: mtu means nothing with transport tcp: it is of raw",
        ),
        (
            "congestion = \"swift\"",
            "p.toml:1:14: congestion means nothing with transport tcp: it is of raw",
        ),
        (
            "transport = \"raw\"\n[link]\nburst = \"2KiB\"",
            "p.toml:3:9: burst means nothing with transport raw: it is of tcp, tsn",
        ),
        (
            "transport = \"raw\"\n[nodes.n]\nack_delay = \"1us\"",
            "p.toml:3:13: ack_delay means nothing with transport raw: it is of tcp, tsn",
        ),
        (
            "transport = \"direct\"\naggregation = \"per-tlp\"",
            "p.toml:2:15: aggregation means nothing with transport direct: it is of tcp, tsn, raw",
        ),
        (
            "transport = \"direct\"\n[drive]\nnode = \"x\"",
            "p.toml:3:8: node means nothing with transport direct: it is of tcp, tsn, raw",
        ),
        (
            "transport = \"direct\"\n[link]\npropagation = \"2s\"",
            "p.toml:3:15: propagation: 0ns to 1s; found 2s",
        ),
    ] {
        assert_eq!(refused(text), wanted);
    }
}
