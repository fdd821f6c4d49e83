//! Methods of bounds: against the same network as JSON, where they are better, and where they do not
//! apply.

use calculus::{Bound, Outputs, bounds, format, to_f64};
use farlane_planning::bound::{Bounds, Method, bound};
use plan::{Plan, Planned};
use sim::World;

fn planned(text: &str) -> Planned {
    Plan::parse("plan", text).and_then(|plan| plan.build()).unwrap()
}

/// The bound of a stream at its first listener, in microseconds.
fn microseconds(bounds: &Bounds, stream: &str) -> Result<f64, String> {
    let stream = bounds.streams.iter().find(|one| one.name == stream).unwrap();
    stream.listeners[0].bound.clone().map(|bound| bound.as_ps() as f64 / 1e6)
}

/// Bounds by TFA, SFA, PLP and all of them; each holds in a simulation.
fn all(planned: &Planned) -> [Bounds; 4] {
    let report = World::new(&planned.config).unwrap().run().unwrap();
    [Method::Tfa, Method::Sfa, Method::Plp, Method::Best].map(|method| {
        let bounds = bound(planned, method);
        for (bound, (name, id)) in bounds.streams.iter().zip(&planned.streams) {
            let seen = &report.stream(*id).unwrap().listeners;
            for (bound, seen) in bound.listeners.iter().zip(seen) {
                let longest = seen.latency.longest();
                let holds = bound.bound.as_ref().map_or(true, |most| longest <= *most);
                assert!(holds, "{method:?} of {name}: {longest:?} > {:?}", bound.bound);
            }
        }
        bounds
    })
}

/// plans/saihu-demo.toml as servers. Frames of 200 B have 220 B on the line with preamble and gap,
/// and take 166.4 us at 10 Mb/s without the gap.
///
/// - 9 frames every 31.68 ms are 0.5 Mb/s. Behind its station, which sends the last of 9 frames after
///   8 * 176 + 166.4 us, a stream is up to 1408 us late: 1980 B * (1 + 1408 / 31680) at once.
/// - A bridge forwards whole frames: each server has a packetiser, which adds 166.4 us.
const SAIHU: &str = r#"{
    "network": {
        "multiplexing": "FIFO", "time_unit": "us", "data_unit": "B", "rate_unit": "Mbps",
        "arrival_curve": { "bursts": [2068], "rates": ["0.5"] },
        "service_curve": { "latencies": ["166.4"], "rates": [4] }
    },
    "flows": [
        { "name": "f0", "path": ["s0", "s1-0"], "multicast": [{ "path": ["s0", "s1-1"] }] },
        { "name": "f1", "path": ["s0", "s1-0"] },
        { "name": "f2", "path": ["s1-1"] }
    ],
    "servers": [{ "name": "s0" }, { "name": "s1-0" }, { "name": "s1-1" }]
}"#;

#[test]
fn saihu_plan_differs_from_its_servers_by_fixed_delays_and_the_last_packetiser() {
    let planned = planned(include_str!("../../../../../plans/saihu-demo.toml"));
    let file = format::parse(SAIHU).unwrap();
    let network = &planned.config.network;
    let stations = &network.stations;
    let us = |time: wire::Duration| time.as_ps() as f64 / 1e6;
    let fixed = us(stations[0].tx_delay) + us(stations[3].rx_delay)
        + us(network.bridges[0].delay) + us(network.bridges[1].delay)
        // Three cables.
        + 3.0 * us(network.cables[0].propagation);
    let station = 8.0 * 176.0 + 166.4;
    // Nothing is stored behind the last server. The last frame begins when its first bit leaves,
    // 220 B at 4 Mb/s before its last one, and passes at 10 Mb/s.
    let last = -166.4 - 440.0 + 166.4;
    let servers = |method| -> Vec<Bound> {
        let found = bounds(&file.network, method, Outputs::Flow).unwrap();
        found.paths.into_iter().map(|path| path.delay).collect()
    };
    let [_, sfa, plp, _] = all(&planned);
    let paths = |found: &Bounds| -> Vec<Result<f64, String>> {
        let listeners = found.streams.iter().flat_map(|it| it.listeners.clone());
        listeners.map(|it| it.bound.map(us)).collect()
    };
    let of = |servers: Bound| to_f64(&servers.unwrap()) * 1e6 + station + fixed + last;
    for (path, servers) in paths(&sfa).into_iter().zip(servers(calculus::Method::Sfa)).take(3) {
        // Picoseconds are rounded up.
        let (path, servers) = (path.unwrap(), of(servers));
        assert!(path > servers - 0.000_001 && path < servers + 0.000_002, "{path} and {servers}");
    }
    // Here the lines of the stations, which the JSON file cannot name, limit what comes at once.
    for (path, servers) in paths(&plp).into_iter().zip(servers(calculus::Method::Plp)).take(3) {
        let (path, servers) = (path.unwrap(), of(servers));
        assert!(path < servers && path > servers / 2.0, "{path} and {servers}");
    }
    // One hop is no network.
    assert!(paths(&sfa)[3].is_err());
}

/// Five bridges in a row, at each of them a station that sends to the last one.
fn line(ports: &str, more: &str) -> String {
    format!(
        "runtime = \"20ms\"\n[link]\nrate = \"100M\"\nvlan = 0\n\
         [nodes.\"n{{i = 0..4}}\"]\n[nodes.end]\n[bridges.\"b{{i = 0..4}}\"]\n{ports}\n\
         [cables.\"n{{i = 0..4}}\"]\na = \"n{{i}}\"\nb = \"b{{i}}\"\n\
         [cables.end]\na = \"end\"\nb = \"b4\"\n\
         [cables.\"b{{i = 1..4}}\"]\na = \"b{{i - 1}}\"\nb = \"b{{i}}\"\n\
         [traffic.\"t{{i = 0..4}}\"]\nfrom = \"n{{i}}\"\nto = \"end\"\ninterval = \"10ms\"\n\
         length = \"1000B\"\npriority = 5\nstart = \"{{i * 90}}us\"\n{more}"
    )
}

#[test]
fn linear_programme_is_below_total_flow_analysis_behind_shapers() {
    let shaper = "[shapers.a]\nalgorithm = \"cbs\"\nidle_slope = \"15Mb/s\"";
    let planned = planned(&line("shapers = [\"5 a\"]", shaper));
    let bounds = all(&planned);
    let [tfa, _, plp, best] = bounds.each_ref().map(|it| microseconds(it, "t0").unwrap());
    assert!(plp < 0.8 * tfa && best <= plp, "{tfa}, {plp} and {best}");
    // The station's port is no part of the network.
    assert_eq!(bounds[3].streams[0].listeners[0].used.names().unwrap(), "tfa+plp");
}

#[test]
fn methods_of_networks_leave_out_what_they_do_not_cover() {
    let cases = [
        ("", "", true),
        ("mode = \"cut-through\"", "", false),
        ("jitter = \"50ns\"", "", false),
        (
            "express = [7]",
            "[traffic.x]\nfrom = \"n0\"\nto = \"end\"\npriority = 7\ninterval = \"1ms\"",
            false,
        ),
        ("express = [5]", "", true),
        (
            "shapers = [\"5 s\"]",
            "[shapers.s]\nalgorithm = \"ats\"\nrate = \"20MB/s\"\nburst = \"3100B\"",
            false,
        ),
        (
            "shapers = [\"5 s\", \"4 s\"]",
            "[shapers.s]\nalgorithm = \"cqf\"\ncycle = \"2ms\"",
            false,
        ),
        (
            "shapers = [\"5 s\"]\nschedule = \"s\"",
            "[shapers.s]\nalgorithm = \"cbs\"\nidle_slope = \"30Mb/s\"\n\
             [schedules.s]\nentries = [\"S ff 300us\", \"S 00 100us\"]",
            false,
        ),
        ("schedule = \"s\"", "[schedules.s]\nentries = [\"S ff 300us\", \"S 80 100us\"]", true),
    ];
    for (ports, more, applies) in cases {
        // Preemption is verified before the streams start.
        let text = line(ports, more).replace("{i * 90}us", "{i * 90 + 1000}us");
        let [_, sfa, plp, best] = all(&planned(&text)).map(|it| microseconds(&it, "t0"));
        for (found, name) in [(sfa, "sfa"), (plp, "plp")] {
            let refused = Err(format!(
                "{name} covers no two hops of its path, or their network is too large"
            ));
            assert!(if applies { found.is_ok() } else { found == refused }, "{ports}: {found:?}");
        }
        assert!(best.is_ok(), "{ports}: {best:?}");
    }
}

/// Stations `a` and `c` send to `d`.
fn two_to_one(more: &str) -> String {
    format!(
        "runtime = \"20ms\"\n[link]\nrate = \"100M\"\nvlan = 0\n[nodes.a]\n[nodes.c]\n[nodes.d]\n\
         [bridges.b0]\n[bridges.b1]\n[cables.a]\na = \"a\"\nb = \"b0\"\n\
         [cables.c]\na = \"c\"\nb = \"b1\"\n[cables.d]\na = \"d\"\nb = \"b1\"\nrate = \"10M\"\n\
         [traffic.burst]\nfrom = \"a\"\nto = \"d\"\ninterval = \"40ms\"\nburst = 10\n\
         length = \"1000B\"\n[traffic.single]\nfrom = \"c\"\nto = \"d\"\ninterval = \"40ms\"\n\
         length = \"1000B\"\nstart = \"900us\"\n[cables.trunk]\na = \"b0\"\nb = \"b1\"\n{more}"
    )
}

#[test]
fn line_that_becomes_slow_later_carries_bursts_before() {
    all(&planned(&two_to_one("rate_steps = [\"30ms 8M\"]")));
}

#[test]
fn frames_that_pass_a_stream_gate_delay_others() {
    let gate = |entry: &str| {
        let gate = "identification = \"source\"\npolice = [\"b1 gate\"]";
        let text =
            format!("[filters.gate]\nentries = [\"{entry}\"]\n[streams.s]\nfrom = \"a\"\n{gate}");
        microseconds(&all(&planned(&two_to_one(&text)))[0], "single")
    };
    assert!(gate("open 1ms").unwrap() > 8_000.0);
    assert!(gate("open 1ms ipv=7").is_err());
}
