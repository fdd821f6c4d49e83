//! Tests of valid and invalid plans.

mod calibration;
mod clocks;
mod expansion;
mod faults;
mod flows;
mod foreign;
mod frames;
mod history;
mod mistakes;
mod multicast;
mod processor;
mod redundancy;
mod reservations;
pub mod scale;
mod shapers;
mod shared;
mod streams;
mod switch_nodes;
mod two_paths;

use super::*;
use sim::ethernet::Rate;
use sim::workload::Workload;
use sim::world::Attached;
use wire::Duration;

const READS: &str = "[workload]\nconfigreads = 5\n";

pub fn built(text: &str) -> Planned {
    let plan = Plan::parse("p.toml", text).unwrap_or_else(|error| panic!("{error}"));
    plan.build().unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
pub fn fails(text: &str, requested: &str) {
    let error = match Plan::parse("p.toml", text) {
        Ok(plan) => plan.build().err(),
        Err(error) => Some(error),
    };
    let error = error.expect("a mistake").to_string();
    assert_eq!(error, requested);
}

#[test]
fn short_plans_are_the_presets_of_the_nvme_tsn_paper() {
    let dd = || Workload::Dd { write: true, bs: 4096, count: 20 };
    for (transport, preset) in [
        ("direct", Config::nvme_tsn_direct(dd())),
        ("tcp", Config::nvme_tsn_tcp(dd(), Rate::G1)),
        ("tsn", Config::nvme_tsn_tsn(dd(), Rate::G1)),
    ] {
        let text = format!(
            "transport = \"{transport}\"\n[host]\npush = \"off\"\n[workload]\ndd = \"write\"\n\
             count = 20\n"
        );
        let planned = built(&text);
        assert_eq!(planned.hosts, ["host"]);
        let run = |config: &Config| sim::World::new(config).unwrap().run().unwrap();
        let [from_plan, from_preset] = [run(&planned.config), run(&preset)];
        let latencies = |report: &sim::world::Report| report.hosts[0].root_port.summary();
        assert_eq!(latencies(&from_plan), latencies(&from_preset), "{transport}");
        assert_eq!(from_plan.hosts[0].breakdown, from_preset.hosts[0].breakdown);
    }
}

#[test]
fn keys_reach_the_configuration() {
    let planned = built(
        "seed = 7\nruns = 3\n[limits]\ntime = \"2s\"\n[pcie]\ngeneration = 4\nwidth = 8\n\
         mrrs = \"1KiB\"\n[link]\nrate = \"10Gb/s\"\nloss = \"10ppm\"\nvlan = 5\npriority = 6\n\
         [drive]\npreset = \"optane\"\ncount = 2\nmps = 512\nread_lsb = \"1.5us\"\n[host]\n\
         polling = \"2us\"\n[workload]\nrw = \"randread\"\nbs = \"8KiB\"\niodepth = 4\n\
         rate = \"8Mb/s\"\nstripe = \"64KiB\"\n",
    );
    let config = &planned.config;
    assert_eq!((config.seed, planned.runs), (7, 3));
    assert_eq!(config.limits.time, Instant::from_ns(2_000_000_000));
    let Attached::Switch(switch) = &config.hosts[0].attached else { panic!("a tunnel") };
    assert_eq!((switch.ports.len(), switch.max_payload), (2, 512));
    assert_eq!(switch.ports[1].drive.serial, "drive.1-1");
    assert_eq!(switch.ports[0].drive.timing.read_lsb, Duration::from_ns(1_500));
    assert_eq!(switch.ports[0].link.width, 8);
    assert_eq!(config.hosts[0].software.max_read_request, 1024);
    assert_eq!(config.network.stations[0].ports[0].rate, Rate::G10);
    let [there, back] = &config.network.cables[0].faults;
    assert!(there.loss == back.loss && there.seed != back.seed);
    let Workload::Fio(fio) = &config.hosts[0].workload else { panic!("fio's words") };
    assert_eq!((fio.bs, fio.iodepth, fio.rate, fio.stripe), (8192, 4, Some(1_000_000), 65536));
    let other = planned.clone().with_seed(8);
    assert_ne!(other.config.network.cables[0].faults[0].seed, there.seed);
    assert_eq!(planned.link_name("station 1 to station 0"), "device to host");
    assert_eq!(planned.link_name("link 1 device port up"), "drive.1 device port up");
}

#[test]
fn key_errors_have_line_and_allowed_values() {
    fails("a = [", "p.toml:1:6: unclosed array, expected `]`");
    fails(
        "\n[werkload]\n",
        &format!(
            "p.toml:2:2: unknown key 'werkload'; did you mean 'workload'? There are: {}",
            keys::allowed::names(tables::ROOT).join(", ")
        ),
    );
    fails(
        &format!("[limits]\nevent = 5\n{READS}"),
        "p.toml:2:1: unknown key of [limits] 'event'; did you mean 'events'? There are: events, time",
    );
    fails(
        &format!("{READS}[link]\nrate = \"3G\"\n"),
        "p.toml:4:8: rate: expected one of 10M, 100M, 1G, 2.5G, 5G, 10G, 25G, 40G, 50G, 100G, 200G, 400G; found '3G'",
    );
    fails(
        &format!("{READS}[host]\nsubmit = 250\n"),
        "p.toml:4:10: submit: expected a time such as 250ns: ps, ns, us, ms, s, m, h or d; \
         found 250 without a unit",
    );
    fails(
        &format!("transport = \"udp\"\n{READS}"),
        "p.toml:1:13: unknown transport 'udp'. There are: direct, tcp, tsn, raw",
    );
    fails(
        &format!("{READS}[drive]\npreset = \"970pro\"\n"),
        "p.toml:4:10: unknown preset '970pro'; did you mean '970-pro'? \
         There are: 970-pro, optane, sata-ssd, null, ram",
    );
    fails(
        "[workload]\nrw = \"read\"\ndd = \"read\"\n",
        "p.toml:3:6: [workload] has rw and dd together: it takes one",
    );
    fails(
        "[workload]\nconfigreads = 5\nbs = \"4KiB\"\n",
        "p.toml:3:1: 'bs' does not apply to configreads; allowed: configreads, gap, startdelay",
    );
    fails("[workload]\n", "p.toml:1:2: [workload] needs one of rw, dd, configreads, replay");
    fails("", "p.toml:1:1: [workload] needs one of rw, dd, configreads, replay");
    fails(
        "[workload]\nrw = \"read\"\nsize = \"1GiB\"\n",
        "p.toml:3:8: the workload needs 1073741824 bytes of each drive, the smallest has \
         67108864; drive.size sets it",
    );
}

/// A host's own workload replaces the plan's, unless it sets only start or timing.
#[test]
fn hosts_share_a_workload_and_begin_at_their_own_time() {
    let hosts = "[bridges.s]\n[drives.x]\n[drives.y]\n[hosts.a]\ndrives = [\"x\"]\n[hosts.b]\n\
                 drives = [\"y\"]\n[workload]\nrw = \"read\"\nstartdelay = \"5us\"\n";
    let own = |own: &str| built(&format!("{hosts}[hosts.b.workload]\n{own}\n")).config.hosts;
    let delays = |hosts: &[sim::world::HostConfig]| {
        hosts.iter().map(|host| host.software.start_delay.as_ns()).collect::<Vec<_>>()
    };
    let shared = own("startdelay = \"70us\"");
    assert_eq!(
        (shared[1].workload == shared[0].workload, delays(&shared)),
        (true, vec![5_000, 70_000])
    );
    let paused = own("thinktime = \"1ms\"\nthinktime_blocks = 4");
    let Workload::Fio(fio) = &paused[1].workload else { panic!("as the plan's") };
    assert_eq!((fio.thinktime, fio.thinktime_blocks), (Duration::from_us(1_000), 4));
    assert_eq!(delays(&paused), [5_000, 5_000]);
    let whole = own("dd = \"read\"");
    assert!(matches!(whole[1].workload, Workload::Dd { .. }));
    assert_eq!(delays(&whole), [5_000, 0], "nothing of the plan's");
    fails(
        "[workload]\nrw = \"read\"\nthinktime_blocks = 4\n",
        "p.toml:3:20: 'thinktime_blocks' requires 'thinktime'",
    );
}

#[test]
fn contradictory_keys_are_errors_of_the_plan() {
    let twice = "[hosts.a]\ndrives = [\"x\", \"x\"]\n[drives.x]\n";
    fails(&format!("{READS}{twice}"), "p.toml:4:16: drive 'x' is named twice");
    fails(
        &format!("{READS}[hosts.a]\ndrives = [\"y\"]\n[drives.x]\n"),
        "p.toml:4:11: unknown drive 'y'; did you mean 'x'? There are: x",
    );
    fails(
        &format!("transport = \"direct\"\n{READS}[bridges.b]\n"),
        "p.toml:4:2: [bridges] does not apply to transport direct",
    );
    fails(
        &format!("transport = \"direct\"\n{READS}[drive]\ncount = 2\n"),
        "p.toml:1:1: host 'host' has 2 drives: with transport direct it has 1 to 1",
    );
    fails(
        &format!("{READS}[cables.c]\na = \"host\"\nb = \"devise\"\n"),
        "p.toml:5:5: unknown host, node or bridge 'devise'; did you mean 'device'? \
         There are: host, device",
    );
    fails(
        &format!("{READS}[bridges.b]\n[bridges.c]\n"),
        "p.toml:1:1: 2 stations (host, device) and no cables: [cables.NAME] with a and b joins \
         two of them",
    );
    fails(
        &format!("{READS}[link]\npriority = 3\n"),
        "p.toml:4:12: priority 3 needs frames with tags: set link.vlan, or transport = \"tsn\"",
    );
    fails(
        &format!("{READS}[link]\nschedule = \"s\"\n"),
        "p.toml:4:12: unknown schedule 's'. There are: none",
    );
}

#[test]
fn schedules_are_checked_against_their_cycle_and_their_use() {
    let plan = |entries: &str, more: &str| {
        format!(
            "transport = \"tsn\"\n{READS}[link]\nschedule = \"s\"\npriority = 3\n\
             [schedules.s]\n{more}entries = [{entries}]\n"
        )
    };
    built(&plan("\"S 08 250us\", \"sched-entry S f7 250us\"", ""));
    fails(
        &plan("\"S 08 400us\", \"S f7 250us\"", "cycle = \"500us\"\n"),
        "p.toml:9:26: entry 2 ends at 650000 ns of the cycle, after the cycle's end at 500000 ns",
    );
    fails(
        &plan("\"S 08\"", ""),
        "p.toml:8:12: entries: expected an entry such as 'S 01 300us': S, H or R, the open \
         gates in hexadecimal, a time with its unit, 1ns to 1000000s; found 'S 08'",
    );
    fails(
        &plan("\"S f7 250us\"", ""),
        "p.toml:5:12: the schedule at 'host' never opens the gate of priority 3 for 12.240us, \
         which a frame of the tunnel from 'host' to 'device' takes there",
    );
    fails(
        &plan("\"S 08 10us\", \"S f7 250us\"", ""),
        "p.toml:5:12: the schedule at 'host' never opens the gate of priority 3 for 12.240us, \
         which a frame of the tunnel from 'host' to 'device' takes there",
    );
}

#[test]
fn options_set_keys_and_are_named_in_errors() {
    let plan = Plan::parse("p.toml", READS).unwrap();
    let set = |key, value| plan.with(key, value, "--sweep").and_then(|plan| plan.build());
    let planned = set("link.rate", "25G").unwrap();
    assert_eq!(planned.config.network.stations[0].ports[0].rate, Rate::G25);
    let planned = set("drive.mps", "512").unwrap();
    assert_eq!(planned.config.hosts[0].root.max_payload, 512);
    let error = |key, value| set(key, value).unwrap_err().to_string();
    assert_eq!(
        error("limits.tine", "1s"),
        "--sweep limits.tine=1s: unknown key of [limits] 'tine'; did you mean 'time'? \
         There are: events, time"
    );
    assert_eq!(
        error("workload.configreads.x", "1"),
        "--sweep workload.configreads.x=1: 'workload.configreads' is not a table: \
         it cannot have the key 'x'"
    );
    assert!(error("link.rate", "3G").starts_with("--sweep link.rate=3G: rate: expected one of"));
}

/// A mistyped name in an option does not create a host.
#[test]
fn options_reach_only_what_the_plan_has() {
    let text = "[drives.one]\n[drives.two]\n[hosts.zone_left]\ndrives = [\"one\"]\n\
                [hosts.zone_right]\ndrives = [\"two\"]\n";
    let plan = Plan::parse("p.toml", &format!("{text}{READS}")).unwrap();
    let error = |key| plan.with(key, "3", "--set").unwrap_err().to_string();
    assert_eq!(
        error("hosts.zone_lft.priority"),
        "--set hosts.zone_lft.priority=3: unknown name in [hosts] 'zone_lft'; \
         did you mean 'zone_left'? There are: zone_left, zone_right"
    );
    assert_eq!(
        error("nodes.box.count"),
        "--set nodes.box.count=3: the plan has no [nodes.box], nor any other [nodes.NAME]"
    );
    let unknown_key = "--set hosts.zone_left.prority=3: unknown key of [hosts.zone_left] 'prority'";
    assert!(error("hosts.zone_left.prority").starts_with(unknown_key));
    assert!(error("hosts.zone_left.link.tx_rng").contains("did you mean 'tx_ring'?"));
    assert!(error("host.link.rate").contains("unknown key of [host] 'link'"));
    assert!(error("linc.rate").contains("unknown key 'linc'; did you mean 'link'?"));
    // Options may add tables with a fixed name, and keys of a host.
    let plan = Plan::parse("p.toml", &format!("[hosts.one]\n{READS}")).unwrap();
    let planned = plan.with("hosts.one.link.tx_ring", "3", "--set").unwrap();
    let planned = planned.with("limits.events", "1000000", "--set").unwrap().build().unwrap();
    let rings: Vec<_> = planned.config.network.stations.iter().map(|s| s.tx_ring).collect();
    assert_eq!((&rings[..], planned.config.limits.events), (&[3, 2][..], 1_000_000));
}

#[test]
fn nodes_have_outages_and_hosts_priorities() {
    let planned = built(
        "[link]\nvlan = 1\npriority = 2\n[nodes.rear]\noutages = [\"10ms..40ms\", \"1s..\"]\n\
         [bridges.b]\n[cables.x]\na = \"one\"\nb = \"b\"\n[cables.y]\na = \"two\"\nb = \"b\"\n\
         [cables.z]\na = \"rear\"\nb = \"b\"\n[drives.d]\n[drives.e]\n\
         [hosts.one]\ndrives = [\"d\"]\npriority = 5\n[hosts.two]\ndrives = [\"e\"]\n\
         [workload]\nconfigreads = 1\n",
    );
    let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
    let outages: Vec<_> =
        planned.config.outages.iter().map(|o| (o.station, o.from, o.until)).collect();
    assert_eq!(outages, [(2, at(10), Some(at(40))), (2, at(1_000), None)]);
    let priority = |host: usize| {
        let Attached::Switch(switch) = &planned.config.hosts[host].attached else { panic!() };
        match &switch.ports[0].transport {
            sim::transport::TransportConfig::Tcp(tcp) => tcp.priority,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((priority(0), priority(1)), (5, 2), "its own goes before the link's");
    fails(
        "[workload]\nconfigreads = 1\n[nodes.n]\noutages = [\"5ms\"]\n",
        "p.toml:4:12: outages: expected a span of time up to 1000000s such as 10ms..12ms, or 10ms.. for good; \
         found '5ms'",
    );
}

/// A bridge's jitter is drawn from the plan's seed.
#[test]
fn seeds_reach_the_jitter_of_bridges() {
    let plan = |jitter: &str, seed: u64| {
        let text = format!(
            "seed = {seed}\n[bridges.b]\njitter = \"{jitter}\"\n[cables.x]\na = \"host\"\n\
             b = \"b\"\n[cables.y]\na = \"device\"\nb = \"b\"\n[workload]\nconfigreads = 50\n"
        );
        let report = sim::World::new(&built(&text).config).unwrap().run().unwrap();
        report.hosts[0].config_reads.summary()
    };
    assert_eq!(plan("200ns", 1), plan("200ns", 1));
    assert_ne!(plan("200ns", 1), plan("200ns", 2));
    assert_eq!(plan("0ns", 1), plan("0ns", 2), "nothing else of them is drawn");
}

#[test]
fn hosts_and_nodes_have_copies() {
    let planned = built(
        "aggregation = \"per-tlp\"\n[hosts.h]\ncount = 2\naggregation = \"wait=1.5us\"\n\
         [nodes.n]\ncount = 3\n[drives.d]\nnode = \"n\"\ncount = 2\n[bridges.b]\n\
         [workload]\nconfigreads = 1\n",
    );
    assert_eq!(planned.hosts, ["h.0", "h.1"]);
    assert_eq!(planned.links, ["h.0.d.0", "h.0.d.1", "h.1.d.0", "h.1.d.1"]);
    assert_eq!(planned.stations, ["h.0", "h.1", "n.0", "n.1", "n.2"]);
    assert_eq!(planned.config.network.cables.len(), 5, "a star");
    let switches = planned.config.hosts.iter().map(|host| match &host.attached {
        Attached::Switch(switch) => switch,
        Attached::Direct(_) => panic!("tcp is the default"),
    });
    let stations: Vec<_> = switches
        .inspect(|switch| assert_eq!(switch.aggregation.to_string(), "wait=1500ns"))
        .flat_map(|switch| &switch.ports)
        .map(|port| port.transport.stations().expect("a network").0)
        .collect();
    assert_eq!(stations, [[0, 2], [0, 3], [1, 4], [1, 2]], "dealt out in turn");
}

#[test]
fn policies_rates_and_moves_are_checked() {
    let error = |text: &str| {
        let plan = Plan::parse("p.toml", &format!("{text}\n[workload]\nconfigreads = 1\n"));
        plan.unwrap().build().unwrap_err().to_string()
    };
    for (text, requested) in [
        ("aggregation = \"some\"", "p.toml:1:15: aggregation: expected per-tlp, wait=TIME"),
        ("aggregation = \"wait=1\"", "up to 10ms (such as wait=1us), hop or adaptive; found"),
        ("rate_limit = \"0G\"", "rate_limit: expected a rate such as 5G"),
        ("[moves.m]\ndrive = \"drive\"", "[moves.m] needs to: a host"),
        ("[moves.m]\ndrive = \"drive\"\nto = \"host\"", "needs at, such as"),
        ("[moves.m]\ndrive = \"drive\"\nto = \"x\"\nat = \"1ms\"", "unknown host 'x'"),
        (
            "[moves.m]\ndrive = \"d\"\nto = \"host\"\nat = \"1ms\"",
            "p.toml:2:9: unknown drive 'd'. There are: drive",
        ),
    ] {
        assert!(error(text).contains(requested), "{text}: {}", error(text));
    }
}

/// The defaults in the page equal the defaults in the code.
#[test]
fn the_page_names_the_defaults() {
    let page = include_str!("../../../../docs/plan.md");
    for (key, value) in [
        ("memory_read", "200ns"),
        ("interrupt", "40.13us"),
        ("mrrs", "512"),
        ("rcb", "128"),
        ("reads_in_flight", "2"),
    ] {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
        let row = row.unwrap_or_else(|| panic!("a row for {key}"));
        assert!(row.ends_with(&format!("| {value} |")), "{row}");
    }
    let config = built(READS).config;
    let host = &config.hosts[0];
    let Attached::Switch(switch) = &host.attached else { panic!("tcp is the default") };
    assert_eq!(host.root.memory_read, Duration::from_ns(200));
    let mode = sim::workload::CompletionMode::Interrupt { latency: Duration::from_ns(40_130) };
    assert_eq!(host.software.completions, mode);
    assert_eq!((host.software.max_read_request, host.root.completion_size), (512, 128));
    assert_eq!(switch.ports[0].drive.reads_in_flight, 2);
}

/// A few large packets fill a receiver. The transmitter continues when the receiver has taken a
/// packet.
#[test]
fn large_payloads_never_deadlock_on_credits() {
    for transport in ["direct", "tcp"] {
        let config = built(&format!(
            "transport = \"{transport}\"\n[pcie]\ngeneration = 5\nwidth = 16\n[drive]\n\
             preset = \"null\"\nmps = 4096\n[link]\nrate = \"100G\"\n[workload]\nrw = \"randread\"\n\
             bs = \"64KiB\"\niodepth = 16\nnumjobs = 8\nruntime = \"1ms\"\ntime_based = \"on\"\n"
        ))
        .config;
        let report = sim::World::new(&config).unwrap().run().expect("it ends");
        assert!(report.hosts[0].latency.count() > 128, "{transport}");
        assert_eq!(report.hosts[0].mismatches, 0);
    }
}

/// Defaults of raw Ethernet are computed from the network.
#[test]
fn raw_ethernet_aims_at_the_distance_of_its_network() {
    let with_target = |text: &str| {
        let config = built(&format!("transport = \"raw\"\n{text}{READS}")).config;
        let Attached::Switch(switch) = &config.hosts[0].attached else { panic!("a tunnel") };
        let sim::transport::TransportConfig::Raw(raw) = &switch.ports[0].transport else {
            panic!("raw Ethernet")
        };
        (raw.settings.congestion.to_string(), raw.settings.segment)
    };
    // 4 x 894 ns in the stations, 2 x 10 ns of cable, 12 208 and 576 ns of
    // line; four frames of 12 208 ns may wait.
    assert_eq!(with_target("[link]\nrate = \"1G\"\n"), ("swift=66us".to_owned(), 1488));
    assert_eq!(with_target("[link]\nrate = \"10G\"\n"), ("swift=20us".to_owned(), 1488));
    let given = "congestion = \"swift=50us\"\n[link]\nmtu = \"4500B\"\n";
    assert_eq!(with_target(given), ("swift=50us".to_owned(), 4488));
    assert_eq!(with_target("congestion = \"rate=5G\"\n"), ("rate=5G".to_owned(), 1488));
    assert_eq!(with_target("congestion = \"none\"\n"), ("none".to_owned(), 1488));
    // A gate that is closed for 400 us is not congestion.
    let gated = "[link]\nschedule = \"s\"\n[schedules.s]\nbase = \"0us\"\ncycle = \"500us\"\n\
                 entries = [\"S ff 100us\", \"S 00 400us\"]\n";
    let (control, _) = with_target(gated);
    let time: wire::Duration = control.strip_prefix("swift=").unwrap().parse().unwrap();
    assert!(time > wire::Duration::from_us(2 * 400), "{control}");
}

#[test]
fn raw_ethernet_key_errors_have_line_and_reason() {
    fails(
        &format!("transport = \"raw\"\ncongestion = \"cubic\"\n{READS}"),
        "p.toml:2:14: congestion: expected swift, swift=TIME up to 1s (such as swift=50us), \
         rate=RATE above 0 and up to 1000G (such as rate=5G) or none; found 'cubic'",
    );
    for mtu in ["68B", "200B", "9001B"] {
        fails(
            &format!("transport = \"raw\"\n{READS}[link]\nmtu = \"{mtu}\"\n"),
            &format!(
                "p.toml:5:7: mtu: expected 300B (the largest TLP at MPS 256) to 9000B; found {mtu}"
            ),
        );
    }
    fails(
        &format!("{READS}[link]\nrate_steps = [\"1ms 2G\", \"1ms 3G\"]\n"),
        "p.toml:4:25: rate_steps: expected each step later than the one before",
    );
    fails(
        &format!("{READS}[link]\nrate_steps = [\"1ms\"]\n"),
        "p.toml:4:15: rate_steps: expected a time up to 1000000s and a rate of 1 b/s to 1000G such as \"10ms 2G\"; found '1ms'",
    );
}

#[test]
fn variants_set_several_keys() {
    let plan = |set: &str| {
        let text = format!("seed = 1\n{READS}\n[variants.fast]\nset = [{set}]\n");
        Plan::parse("plan.toml", &text).unwrap()
    };
    let text = |error: KeyError| error.to_string();
    let fast = plan("\"seed=7\", \"link.rate=10G\"");
    let built = fast.with("variant", "fast", "--set").unwrap().build().unwrap();
    assert_eq!(built.config.seed, 7);
    assert_eq!(fast.build().unwrap().config.seed, 1, "nobody asked for it");
    let slow = fast.with("variant", "fats", "--sweep").map_err(text).unwrap_err();
    assert!(
        slow.starts_with("--sweep variant=fats: unknown variant 'fats'. There are: fast"),
        "{slow}"
    );
    let wrong = plan("\"link.rate=10G\", \"link.raet=1G\"").build().map_err(text).unwrap_err();
    assert!(wrong.starts_with("plan.toml:") && wrong.contains("'raet'"), "{wrong}");
    let value = plan("\"seed=many\"").build().map_err(text).unwrap_err();
    assert!(value.contains("seed: expected a whole number"), "{value}");
    let form = plan("\"seed\"").build().map_err(text).unwrap_err();
    assert!(form.contains("expected KEY=VALUE, as of --set"), "{form}");
}
