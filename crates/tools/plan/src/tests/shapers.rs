//! Shapers, preemption and networks without hosts: valid and invalid plans.

use super::{built, fails};
use crate::Plan;
use sim::ethernet::port::{
    Algorithm, Ats, Class, Committed, Config, Counted, CreditBased, Preemption, RateStep,
};
use sim::ethernet::traffic::StreamId;
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};
use wire::{Duration, Instant};

/// Fourteen lines: three nodes and a stream of class 5; `more` begins in line 15.
fn plan(more: &str) -> String {
    format!(
        "runtime = \"10ms\"\n[link]\nrate = \"100M\"\ntx_delay = \"0ns\"\nrx_delay = \"0ns\"\n\
         propagation = \"0ns\"\n[nodes.a]\n[nodes.b]\n[nodes.c]\n[traffic.t]\nfrom = \"a\"\n\
         to = \"b\"\ninterval = \"1ms\"\npriority = 5\n{more}"
    )
}

fn port(more: &str) -> Config {
    built(&plan(more)).config.network.bridges[0].ports[1].clone()
}

const CBS: &str = "[shapers.v]\nalgorithm = \"cbs\"\nidle_slope = ";

#[test]
fn shaper_errors_have_line_and_allowed_values() {
    let video = "[bridges.s]\nshapers = [\"5 v\"]\n";
    let both = "[bridges.s]\nshapers = [\"5 v\", \"4 w\"]\n";
    let gates = "schedule = \"g\"\n[schedules.g]\nentries = [\"S 20 100us\", \"S df 900us\"]\n";
    let cqf = "[shapers.v]\nalgorithm = \"cqf\"\ncycle = \"1ms\"\n";
    for (more, expected) in [
        (
            "[bridges.s]\nshapers = [\"5 vidoe\"]\n[shapers.video]\n".to_owned(),
            "16:12: unknown shaper 'vidoe'. There are: video",
        ),
        (
            format!("{video}[shapers.v]\nalgorithm = \"cbs\"\n"),
            "17:10: [shapers.v] needs idle_slope, as it is cbs",
        ),
        (
            format!("{video}{CBS}\"120Mb/s\"\n"),
            "16:11: class 5: idleSlope of 120000000 bit/s is above the port's 100000000 bit/s",
        ),
        (
            format!("[bridges.s]\nshapers = [\"5 v\", \"4 v\"]\n{CBS}\"60Mb/s\"\n"),
            "16:11: the idle slopes' sum of 120000000 b/s exceeds its 100000000 b/s",
        ),
        // Open for a tenth of the cycle: the slope there is ten times as high.
        (
            format!("{video}{gates}{CBS}\"20Mb/s\"\n"),
            "16:11: class 5: its gates are open for 100us of 1ms: idleSlope of 200000000 bit/s is \
             above the port's 100000000 bit/s",
        ),
        (
            format!(
                "{both}[shapers.v]\nalgorithm = \"ets\"\nweight = 60\n[shapers.w]\n\
                 algorithm = \"ets\"\nweight = 30\n"
            ),
            "16:11: the sum of the weights is 90 %, not 100 %",
        ),
        (
            format!("{video}{cqf}"),
            "16:11: shaper 'v' is cyclic: exactly two classes take turns, here are 1",
        ),
        (
            format!("[bridges.s]\nshapers = [\"5 v\", \"4 v\", \"3 v\"]\n{cqf}"),
            "16:11: shaper 'v' is cyclic: exactly two classes take turns, here are 3",
        ),
        (
            format!("[bridges.s]\nshapers = [\"5 v\", \"5 w\"]\n{CBS}\"1Mb/s\"\n[shapers.w]\n"),
            "16:19: class 5 has a shaper already: it takes one",
        ),
        (
            format!("{video}{cqf}idle_slope = \"1Mb/s\"\n"),
            "20:14: 'idle_slope' does not apply to cqf",
        ),
        (
            "[bridges.s]\nadd_frag_size = 1\n".to_owned(),
            "16:17: 'add_frag_size' requires 'express'",
        ),
        (
            "[bridges.s]\nexpress = [7]\nverify = \"off\"\n".to_owned(),
            "17:10: verify: \"on\", or express at the partner 'a', which else takes no fragments",
        ),
        (
            "committed_rate = \"1Mb/s\"\ncommitted_burst = \"2000B\"\n[bridges.s]\n".to_owned(),
            "15:18: 'committed_rate' has no effect: no port on the path has a shaper ats for its class",
        ),
        (
            "committed_rate = \"1Mb/s\"\n[bridges.s]\n".to_owned(),
            "15:18: committed_rate and committed_burst go together",
        ),
    ] {
        fails(&plan(&more), &format!("p.toml:{expected}"));
    }
}

#[test]
fn errors_of_next_gate_lists_have_a_line() {
    let list = |more: &str| {
        plan(&format!(
            "[bridges.s]\nschedule = \"g\"\n[schedules.h]\nbase = \"1ms\"\n\
             entries = [\"S ff 1ms\"]\n[schedules.g]\nbase = \"5ms\"\nentries = [\"S ff 1ms\"]\n{more}"
        ))
    };
    fails(
        &list("then = \"h\"\n"),
        "p.toml:23:8: then: schedule 'h' needs a base later than 5ms; it has 1ms",
    );
    fails(
        &list("then = \"g\"\n"),
        "p.toml:23:8: then: schedule 'g' needs a base later than 5ms; it has 5ms",
    );
    fails(&list("extension = \"1us\"\n"), "p.toml:23:13: 'extension' requires 'then'");
    built(&list(""));
}

#[test]
fn shapers_reach_the_port() {
    let more = format!(
        "committed_rate = \"8Mb/s\"\ncommitted_burst = \"3000B\"\n[bridges.s]\n\
         shapers = [\"6 v\", \"5 a\", \"4 c\", \"3 c\", \"2 e\", \"1 f\", \"0 d\"]\n{CBS}\"20Mb/s\"\n\
         guard_band_credit = \"frozen\"\ncounted = \"frame\"\nqueue_frames = 9\n[shapers.a]\n\
         algorithm = \"ats\"\nrate = \"16Mb/s\"\nburst = \"4000B\"\nmax_residence = \"3ms\"\n\
         [shapers.c]\nalgorithm = \"cqf\"\ncycle = \"250us\"\nbase = \"10us\"\n[shapers.e]\n\
         algorithm = \"ets\"\nweight = 70\n[shapers.f]\nalgorithm = \"ets\"\nweight = 30\n\
         [shapers.d]\nmax_sdu = \"100B\"\nqueue_bytes = \"64B\"\n"
    );
    let port = port(&more);
    let stream = StreamId { station: 0, number: 0 };
    let [d, f, e, c, other, a, v, none] = &port.classes;
    let cbs = CreditBased {
        idle_slope: 20_000_000,
        counted: Counted::FrameOnly,
        rises_in_guard_band: false,
    };
    let is = |class: &Class, algorithm: Algorithm| {
        assert_eq!(format!("{:?}", class.algorithm), format!("{algorithm:?}"));
    };
    is(v, Algorithm::CreditBased(cbs));
    assert_eq!(v.queue_frames, 9);
    let own = Committed { rate: 8_000_000, burst: 24_000 };
    let ats = Ats {
        committed: Committed { rate: 16_000_000, burst: 32_000 },
        streams: vec![(stream, own)],
        max_residence: Some(Duration::from_ms(3)),
        counted: Counted::WithGap,
    };
    is(a, Algorithm::Ats(ats));
    let pair = &port.cqf[0];
    assert_eq!((pair.classes, pair.cycle), ([4, 3], Duration::from_us(250)));
    assert_eq!(pair.base, Instant::from_ns(10_000));
    // From 10 us on, class 4 is filled and class 3 is sent.
    let gates = port.gates.as_ref().unwrap();
    let open = |class, us: u64| gates.is_open(class, Instant::from_ns(us * 1_000));
    assert_eq!([open(4, 11), open(3, 11), open(4, 261), open(3, 261)], [false, true, true, false]);
    is(e, Algorithm::Ets { weight: 70 });
    is(f, Algorithm::Ets { weight: 30 });
    assert_eq!((d.max_sdu, d.queue_bytes), (Some(100), 64));
    for class in [none, other, c] {
        is(class, Algorithm::StrictPriority);
    }
    assert_eq!((port.preemption, &port.rate_steps), (None, &Vec::<RateStep>::new()));
}

#[test]
fn preemption_reaches_the_port() {
    let more = "[bridges.s]\nexpress = [7, 6]\nadd_frag_size = 2\nverify_time = \"20ms\"\n\
                release_advance = \"3us\"\n[schedules.x]\nentries = [\"S ff 1ms\"]\n";
    let verify =
        verification::Config { time: Duration::from_ms(20), ..verification::Config::default() };
    let fragment = FragmentSize::new(2).unwrap();
    // The longest part that cannot be cut is one byte shorter than the shortest frame that can be
    // cut: a first fragment of 64 * 3 bytes with an mCRC of 4, and a rest of 64. Preamble (8) and
    // gap (12) are added. A byte takes 80 ns.
    let hold = Duration::from_ns((64 * 3 - 4 + 63 + 8 + 12) * 80);
    let advance = HoldAdvance { hold, release: Duration::from_us(3) };
    let express = 0b1100_0000;
    let found = port(more).preemption.unwrap();
    assert_eq!(found, Preemption { express, fragment, advance, verify });
    let more = more.replace("release_advance", "hold_advance");
    assert_eq!(port(&more).preemption.unwrap().advance.hold, Duration::from_us(3));
}

/// The stream offers one frame of 1542 bytes per millisecond: 1538 bytes with preamble and gap, and
/// a tag of 4 bytes.
#[test]
fn overloaded_shapers_are_named() {
    let named = |shaper: &str| {
        let more = format!("[bridges.s]\nshapers = [\"5 v\"]\n[shapers.v]\n{shaper}\n");
        built(&plan(&more)).overload_sentences()
    };
    let expected = "class 5 is overloaded from s port 1 to b: t offer 12.3 Mb/s, gates, shaper and line \
                let 12.3 Mb/s through";
    for (kind, rest) in [("cbs", ""), ("ats", "burst = \"2000B\"")] {
        let key = if kind == "cbs" { "idle_slope" } else { "rate" };
        let shaper = |rate: &str| format!("algorithm = \"{kind}\"\n{key} = \"{rate}\"\n{rest}");
        // 1542 bytes are 12336 bits.
        assert_eq!(named(&shaper("12336kb/s")), [""; 0]);
        assert_eq!(named(&shaper("12328kb/s")), [expected]);
    }
}

/// Streams overload a class alone, and together with the class of higher precedence.
#[test]
fn an_overloaded_class_is_named_once_for_each_port() {
    let more = "[bridges.s]\n[traffic.u]\nfrom = \"c\"\nto = \"b\"\ninterval = \"200us\"\n\
                priority = 6\n";
    let sentences = built(&plan(more).replace("\"1ms\"", "\"100us\"")).overload_sentences();
    let at = |port: &str| sentences.iter().filter(|sentence| sentence.contains(port)).count();
    assert_eq!([sentences.len(), at("class 5 is overloaded from s port 1 to b: t offer")], [2, 1]);
    assert_eq!(at("class 5 is overloaded from a to s"), 1, "{sentences:?}");
}

/// Two streams offer 12336 bits every 130 us: 94.9 Mb/s each, of 100 Mb/s.
#[test]
fn classes_with_weights_starve_by_their_share() {
    let named = |second: &str| {
        let more = format!(
            "[bridges.s]\nshapers = [\"5 v\", \"1 w\"]\n[shapers.v]\nalgorithm = \"ets\"\n\
             weight = 75\n[shapers.w]\nalgorithm = \"ets\"\nweight = 25\n[traffic.u]\n\
             from = \"c\"\nto = \"b\"\ninterval = \"{second}\"\npriority = 1\n"
        );
        built(&plan(&more).replace("\"1ms\"", "\"130us\"")).overload_sentences()
    };
    let expected = |class, stream, offered, limit| {
        format!(
            "class {class} is overloaded from s port 1 to b: {stream} offer {offered} Mb/s, gates, \
             shaper and line let {limit} Mb/s through"
        )
    };
    assert_eq!(
        named("130us"),
        [expected(5, "t", "94.9", "75.0"), expected(1, "u", "94.9", "25.0")]
    );
    // 12336 bits per ms are less than a quarter of the line. The other class has the rest, 87.7
    // Mb/s.
    assert_eq!(named("999us"), [expected(5, "t", "94.9", "87.7")]);
    assert_eq!(named("2500us"), [""; 0]);
}

/// An express class of 101.95 Mb/s (12336 bits every 121 us) starves a preemptable class with a
/// higher number. If the link partner does not accept fragments, the class with the higher number
/// has precedence.
#[test]
fn preemptable_classes_starve_behind_express_ones() {
    let more = "[bridges.s]\nexpress = [0]\n[traffic.u]\nfrom = \"c\"\nto = \"b\"\n\
                interval = \"121us\"\npriority = 0\n";
    let active = plan(more).replace("[link]", "[link]\nexpress = [0]");
    let sentences = built(&active).overload_sentences();
    let at_b = |class: &str, offered: &str| {
        format!(
            "class {class} is overloaded from s port 1 to b: {offered} Mb/s, gates, shaper and line \
             let 100.0 Mb/s through"
        )
    };
    // Class 5 offers 12.3 Mb/s, but the express class takes the whole line.
    let starves = at_b("5", "t and the classes before it offer 112.3");
    assert_eq!(sentences[1..], [at_b("0", "u offer 102.0"), starves], "{sentences:?}");
    let sentences = built(&plan(more)).overload_sentences();
    assert_eq!(sentences[1..], [at_b("0", "u offer 102.0")], "{sentences:?}");
}

/// Two classes have weights and offer 94.9 Mb/s each. The express class gets all of its load, the
/// preemptable class the rest.
#[test]
fn weights_share_among_express_and_among_preemptable_classes() {
    let more = "[bridges.s]\nexpress = [1]\nshapers = [\"5 v\", \"1 w\"]\n[shapers.v]\n\
                algorithm = \"ets\"\nweight = 75\n[shapers.w]\nalgorithm = \"ets\"\n\
                weight = 25\n[traffic.u]\nfrom = \"c\"\nto = \"b\"\ninterval = \"130us\"\n\
                priority = 1\n";
    let active = plan(more).replace("[link]", "[link]\nexpress = [1]");
    assert_eq!(
        built(&active.replace("\"1ms\"", "\"130us\"")).overload_sentences(),
        [
            "class 5 is overloaded from s port 1 to b: t offer 94.9 Mb/s, gates, shaper and line let \
          5.1 Mb/s through"
        ]
    );
}

#[test]
fn harmful_port_and_stream_settings_are_remarked() {
    let remarks = |more: &str| {
        let remarks = built(&plan(more)).remarks;
        remarks.iter().map(super::Remark::sentence).collect::<Vec<_>>()
    };
    let all = "s port 0 to a, s port 1 to b, s port 2 to c: ";
    let hold = "schedule = \"g\"\n[schedules.g]\nentries = [\"H 80 100us\", \"R 7f 900us\"]\n";
    assert_eq!(
        remarks(&format!("[bridges.s]\n{hold}")),
        [format!(
            "{all}the schedule holds preemptable frames, but the port does not preempt: nothing \
             is held (802.1Q-2022, 8.6.8.4)"
        )]
    );
    assert_eq!(
        remarks("[bridges.s]\nexpress = [7]\n"),
        [format!(
            "{all}the port preempts, but its partner takes no fragments: verification will fail \
             and every frame goes whole (802.3-2022, 99.4.3)"
        )]
    );
    let ats =
        "[bridges.s]\nshapers = [\"5 v\"]\n[shapers.v]\nalgorithm = \"ats\"\nrate = \"20Mb/s\"\n";
    assert_eq!(remarks(&format!("{ats}burst = \"1542B\"\n")), [""; 0]);
    assert_eq!(
        remarks(&format!("{ats}burst = \"1541B\"\n")),
        [
            "s port 1 to b: stream t has frames of 1542 bytes, more than its burst of 1541 bytes: it \
          gets less than its rate (802.1Q-2022, 8.6.11)"
        ]
    );
    let sdu = |most: u32| {
        format!("[bridges.s]\nshapers = [\"5 v\"]\n[shapers.v]\nmax_sdu = \"{most}B\"\n")
    };
    assert_eq!(remarks(&sdu(1500)), [""; 0]);
    assert_eq!(
        remarks(&sdu(1499)),
        ["s port 1 to b: stream t has frames of 1500 bytes behind the EtherType, more than the \
          max_sdu 1499: all are dropped (802.1Q-2022, 8.6.8.4)"]
    );
    let untagged = plan("[bridges.s]\n").replace("[nodes.a]", "vlan = \"none\"\n[nodes.a]");
    assert_eq!(
        built(&untagged).remarks[0].sentence(),
        "stream t: its frames have no tag, so their priority is lost and they are of class 0 \
         (802.1Q-2022, 6.9.3); vlan adds one"
    );
}

#[test]
fn without_hosts_streams_run_for_the_runtime() {
    let planned = built(&plan("[bridges.s]\ndelay = \"2us\"\n"));
    assert!(planned.hosts.is_empty() && planned.links.is_empty());
    let report = sim::World::new(&planned.config).unwrap().run().unwrap();
    assert_eq!(report.time, Instant::from_ns(10_000_000));
    let stream = &report.streams[0];
    // 1518 bytes, 4 of the tag and 8 of the preamble at 80 ns, twice, and the bridge.
    let max = Duration::from_ns(2 * (1518 + 4 + 8) * 80 + 2_000);
    assert_eq!((stream.sent, stream.arrived()), (10, 10));
    assert_eq!(stream.latency().summary().max_ns, max.as_ns());
    // With hosts, `runtime` is the minimum time of a run.
    let reads = built("runtime = \"5ms\"\n[workload]\nconfigreads = 1\n").config;
    let report = sim::World::new(&reads).unwrap().run().unwrap();
    assert_eq!((report.time, report.hosts.len()), (Instant::from_ns(5_000_000), 1));
}

#[test]
fn keys_of_hosts_without_hosts_are_errors() {
    for (more, expected) in [
        ("[bridges.s]\n[drive]\n", "p.toml:16:2: 'drive' requires hosts"),
        ("[bridges.s]\n[pcie]\n", "p.toml:16:2: 'pcie' requires hosts"),
        ("[bridges.s]\n[hosts.h]\n", "p.toml:1:1: [workload] needs one of"),
        (
            "[bridges.s]\n[limits]\ntime = \"1ms\"\n",
            "p.toml:1:11: runtime: at most limits.time, 1ms",
        ),
    ] {
        let error = Plan::parse("p.toml", &plan(more)).unwrap().build().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    fails(
        &plan("[bridges.s]\n").replace("[link]", "[link]\nkeepalive = \"1ms\""),
        "p.toml:3:13: 'keepalive' applies only to transport tcp, tsn, raw; found no hosts",
    );
    fails(
        "runtime = \"1ms\"\n",
        "p.toml:1:11: runtime without hosts needs [traffic.NAME]: streams that run so long",
    );
    fails(
        "runtime = \"1ms\"\n[traffic.t]\nfrom = \"a\"\n",
        "p.toml:1:11: a plan without hosts needs [nodes.NAME]: stations that send and receive",
    );
}

/// Options reach numbers, ports by their neighbours, and arrays.
#[test]
fn options_set_shapers_ports_and_arrays() {
    let text = plan(&format!(
        "[bridges.s]\nshapers = [\"5 v\"]\n[bridges.s.ports.b]\nexpress = [7]\n{CBS}\"20Mb/s\"\n"
    ));
    let plan = Plan::parse("p.toml", &text).unwrap();
    let port = |key: &str, value: &str| {
        let planned = plan.with(key, value, "--set").unwrap().build().unwrap();
        planned.config.network.bridges[0].ports[1].clone()
    };
    for (value, slope) in [("30Mb/s", 30_000_000), ("5MB/s", 40_000_000)] {
        let Algorithm::CreditBased(shaper) =
            &port("shapers.v.idle_slope", value).classes[5].algorithm
        else {
            panic!("as it was")
        };
        assert_eq!(shaper.idle_slope, slope);
    }
    assert_eq!(port("bridges.s.ports.b.queue_frames", "7").classes[3].queue_frames, 7);
    assert_eq!(port("bridges.s.ports.b.express", "[]").preemption, None);
    let express = port("bridges.s.ports.b.express", "[6, 5]").preemption.unwrap().express;
    assert_eq!(express, 0b0110_0000);
    let fails = |value: &str| {
        let plan = plan.with("bridges.s.ports.b.express", value, "--set");
        plan.and_then(|plan| plan.build()).unwrap_err().to_string()
    };
    let option = |value: &str| format!("--set bridges.s.ports.b.express={value}: ");
    assert_eq!(fails("[8]"), option("[8]") + "express: expected a whole number, 0 to 7");
    assert!(fails("[8").starts_with(&option("[8")), "{}", fails("[8"));
}

/// Clocks of cyclic queues have phases of two cycles.
#[test]
fn cyclic_queues_have_phases() {
    let text = plan(
        "[bridges.s]\nshapers = [\"5 c\", \"4 c\"]\n[shapers.c]\nalgorithm = \"cqf\"\n\
                     cycle = \"250us\"\n",
    );
    let keys = Plan::SHIFTED.map(str::to_owned);
    let (shifts, _) = Plan::parse("p.toml", &text).unwrap().phases(2, 1, &keys).unwrap();
    let found: Vec<_> = shifts.iter().map(|shift| (shift.key.as_str(), shift.within)).collect();
    let cycles = ("bridges.s.clock_offset", Duration::from_us(500));
    assert_eq!(found, [cycles, ("traffic.t.start", Duration::from_ms(1))]);
    let odd = built(&text.replace("250us", "300us")).remarks[0].sentence();
    let expected = "600us (gates of s), 1ms (stream t); together they repeat every 3ms";
    assert!(odd.ends_with(expected), "{odd}");
}

/// Windows made for a long and a short frame carry both, though the short window has no room for
/// the long frame.
#[test]
fn windows_for_frames_of_different_lengths_are_no_overload() {
    let plan = |entries: &str| {
        format!(
            "runtime = \"1ms\"\n[link]\nvlan = 0\nrate = \"1G\"\n[nodes.a]\n[nodes.b]\n\
             [bridges.s]\nschedule = \"windows\"\n[schedules.windows]\nentries = {entries}\n\
             [traffic.long]\nfrom = \"a\"\nto = \"b\"\nlength = \"976B\"\ninterval = \"100us\"\n\
             priority = 7\n[traffic.short]\nfrom = \"a\"\nto = \"b\"\nlength = \"76B\"\n\
             interval = \"100us\"\npriority = 7\n"
        )
    };
    // 988 and 88 bytes without gaps.
    let fits = plan("[\"S 80 7904ns\", \"S 7f 42096ns\", \"S 80 704ns\", \"S 7f 49296ns\"]");
    assert_eq!(built(&fits).overload_sentences(), [""; 0]);
    let short = plan("[\"S 80 7904ns\", \"S 7f 42096ns\", \"S 80 600ns\", \"S 7f 49400ns\"]");
    assert_eq!(built(&short).overload_sentences().len(), 1);
}
