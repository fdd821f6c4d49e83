//! Valid and invalid `[streams]` and `[filters]`.

use super::*;
use sim::ethernet::streams::Identification;
use sim::ethernet::traffic::Pattern;
use sim::network::{CableEnd, Place, mac};
use tsn::frer::Algorithm;

/// Returns a plan with a host, a device, and four bridges: `left`, `right`, and two parallel
/// bridges between them. `streams` begin at line [`LINE`].
fn plan(streams: &str) -> String {
    let cable =
        |name: &str, a: &str, b: &str| format!("[cables.{name}]\na = \"{a}\"\nb = \"{b}\"\n");
    let cables = [
        cable("h", "host", "left"),
        cable("lu", "left", "upper"),
        cable("ll", "left", "lower"),
        cable("ur", "upper", "right"),
        cable("lr", "lower", "right"),
        cable("d", "right", "device"),
    ];
    format!(
        "transport = \"tsn\"\n[workload]\nconfigreads = 3\n[bridges.left]\n[bridges.upper]\n\
         outages = [\"1ms..2ms\", \"3s..\"]\n[bridges.lower]\n[bridges.right]\n{}{streams}",
        cables.concat()
    )
}

/// Line of the first line of `streams` in [`plan`].
const LINE: usize = 27;

const BOTH: &str = "paths = [\"left > upper > right\", \"left > lower > right\"]\n";

#[test]
fn bidirectional_stream_makes_two_streams() {
    let text = format!(
        "[streams.nvme]\nfrom = \"host\"\nto = \"device\"\nboth = \"on\"\n{BOTH}\
         eliminate = [\"host\", \"device\"]\nhistory = 64\nreset = \"5ms\"\n"
    );
    let planned = built(&plan(&text));
    assert_eq!(planned.identified, ["nvme", "nvme back"]);
    let [there, back] = &planned.config.network.streams[..] else { panic!("two") };
    assert_eq!((there.from, &there.to[..], back.from, &back.to[..]), (0, &[1][..], 1, &[0][..]));
    let wiring = planned.config.network.wiring();
    let bridges = |stream: &sim::network::StreamConfig| {
        let nodes = |path: &Vec<usize>| {
            let hops = wiring.hops(stream.from, path).unwrap().into_iter();
            let bridge = |[_, end]: [CableEnd; 2]| match end {
                CableEnd::Bridge(bridge, _) => Some(bridge),
                CableEnd::Station(..) => None,
            };
            hops.filter_map(bridge).collect::<Vec<_>>()
        };
        stream.paths.iter().map(nodes).collect::<Vec<_>>()
    };
    assert_eq!(bridges(there), [[0, 1, 3], [0, 2, 3]]);
    assert_eq!(bridges(back), [[3, 1, 0], [3, 2, 0]]);
    let eliminate = |stream: &sim::network::StreamConfig| stream.eliminate[0];
    assert_eq!((there.eliminate.len(), back.eliminate.len()), (1, 1));
    assert_eq!((eliminate(there).0, eliminate(back).0), (Place::Station(1), Place::Station(0)));
    let recovery = eliminate(there).1.recovery;
    assert_eq!(recovery.algorithm, Algorithm::Vector { history: 64 });
    assert_eq!(recovery.reset, Duration::from_ms(5));
    let null = Identification::Null { destination: mac(1), vlan: Some(1) };
    assert_eq!((there.identification, back.numbers), (null, Place::Station(1)));
    let outages = &planned.config.network.bridge_outages;
    let ms = |ms: u64| Instant::from_ns(ms * 1_000_000);
    let spans: Vec<_> =
        outages.iter().map(|outage| (outage.bridge, outage.from, outage.until)).collect();
    assert_eq!(spans, [(1, ms(1), Some(ms(2))), (1, ms(3_000), None)]);
}

#[test]
fn keys_reach_the_stream() {
    let text = format!(
        "[streams.s]\nfrom = \"host\"\nto = \"device\"\nidentification = \"priority\"\n\
         priority = 5\n{BOTH}eliminate = [\"right\"]\nnumbers = \"left\"\nalgorithm = \"match\"\n\
         latent_difference = 3\npolice = [\"left f\"]\n[filters.f]\nmax_sdu = \"1000B\"\n\
         block_oversize = \"on\"\nentries = [\"open 200us ipv=5 octets=1500B\", \"closed 800us\"]\n\
         rate = \"8Mb/s\"\nburst = \"2000B\"\nyellow = \"drop\"\nexcess_rate = \"1MB/s\"\n\
         excess_burst = \"64B\"\n"
    );
    let planned = built(&plan(&text));
    let stream = &planned.config.network.streams[0];
    let tag = sim::ethernet::Tag { pcp: 5, vid: 1 };
    let by = Identification::Priority { destination: mac(1), source: mac(0), tag };
    assert_eq!(stream.identification, by);
    assert_eq!((stream.numbers, stream.eliminate[0].0), (Place::Bridge(0), Place::Bridge(3)));
    let latent = stream.eliminate[0].1.latent.expect("a test");
    assert_eq!((latent.paths, latent.difference, latent.period.as_ps()), (2, 3, 2_000_000_000_000));
    let (0, filter) = &stream.filters[0] else { panic!("at left") };
    let meter = filter.meter.expect("a meter");
    assert_eq!((meter.cir, meter.cbs, meter.eir, meter.ebs), (8_000_000, 2_000, 8_000_000, 64));
    assert!(meter.drop_on_yellow && filter.block_on_oversize);
    let gate = filter.gate.as_ref().expect("a gate");
    assert_eq!((gate.cycle, gate.entries.len()), (Duration::from_ms(1), 2));
    assert_eq!((gate.entries[0].ipv, gate.entries[0].octets), (Some(5), Some(1_500)));
}

#[test]
fn stream_errors_have_a_line() {
    let ends = "[streams.s]\nfrom = \"host\"\nto = \"device\"\n";
    let at = |line: usize, column: usize, message: &str| {
        format!("p.toml:{}:{column}: {message}", LINE + line)
    };
    for (text, requested) in [
        (
            "[streams.s]\nfrom = \"host\"\n".to_owned(),
            at(0, 10, "[streams.s] needs to, unless identification is \"source\""),
        ),
        (
            format!("{ends}paths = [\"left > upper\"]\n"),
            at(3, 10, "paths: no cable leads from upper to device"),
        ),
        (
            format!("{ends}paths = [\"left > uper > right\"]\n"),
            at(
                3,
                10,
                "unknown bridge 'uper'; did you mean 'upper'? There are: left, upper, lower, right",
            ),
        ),
        (
            format!("{ends}{BOTH}eliminate = [\"host\"]\n"),
            at(0, 10, "[streams.s]: host eliminates duplicates, but is on no path of the stream"),
        ),
        (
            format!("{ends}eliminate = [\"right\"]\n"),
            at(0, 10, "[streams.s]: right eliminates duplicates, but is on no path of the stream"),
        ),
        (
            format!(
                "{ends}{BOTH}police = [\"left f\", \"left f\"]\n[filters.f]\nmax_sdu = \"100B\"\n"
            ),
            at(4, 21, "police: 'left' has a filter for this stream already"),
        ),
        (
            format!(
                "{ends}paths = [\"left > upper > right\"]\npolice = [\"lower f\"]\n[filters.f]\nmax_sdu = \"100B\"\n"
            ),
            at(4, 11, "police: 'lower' is on none of the paths"),
        ),
        (format!("{ends}{BOTH}history = 5\n"), at(4, 11, "'history' requires 'eliminate'")),
        (
            format!("{ends}{BOTH}eliminate = [\"device\"]\nlatent_paths = 2\n"),
            at(5, 16, "'latent_paths' requires 'latent_difference'"),
        ),
        (
            format!("{ends}{BOTH}eliminate = [\"device\"]\nnumbers = \"upper\"\n"),
            at(0, 10, "[streams.s]: upper numbers the frames, but is not on every path"),
        ),
        (
            format!("{ends}priority = 3\n"),
            at(3, 12, "'priority' applies only to identification = \"priority\""),
        ),
        (
            format!("{ends}police = [\"left x\"]\n[filters.y]\n"),
            at(3, 11, "unknown filter 'x'; did you mean 'y'? There are: y"),
        ),
        ("[filters.f]\nblock_red = \"on\"\n".to_owned(), at(1, 13, "'block_red' requires 'burst'")),
        (
            "[filters.f]\nentries = [\"open 2ms\"]\ncycle = \"1ms\"\n".to_owned(),
            at(1, 11, "the entries last 2000000 ns in total, longer than the cycle of 1000000 ns"),
        ),
    ] {
        fails(&plan(&text), &requested);
    }
}

#[test]
fn a_bridge_that_eliminates_stores_frames() {
    let text = plan(&format!(
        "[streams.s]\nfrom = \"host\"\nto = \"device\"\n{BOTH}eliminate = [\"right\"]\n"
    ));
    let text = text.replace("[bridges.right]\n", "[bridges.right]\nmode = \"cut-through\"\n");
    let expected = "[streams.s]: right is cut-through; filtering and elimination need \
                store-and-forward";
    fails(&text, &format!("p.toml:{}:10: {expected}", LINE + 1));
}

/// A plan of one stream with these keys, from line 7 on.
fn stream(keys: &str) -> String {
    format!(
        "runtime = \"1ms\"\n[nodes.a]\n[nodes.b]\n[traffic.t]\nfrom = \"a\"\nto = \"b\"\n{keys}"
    )
}

#[test]
fn rate_of_a_stream_counts_tag_preamble_and_gap() {
    let pattern =
        |keys: &str| built(&stream(keys)).config.network.stations[0].traffic[0].pattern.clone();
    // 1000 bytes, tag, preamble and gap: 1024 bytes, four times per interval.
    let keys = "length = \"1000B\"\nburst = 4\nrate = \"4.096MB/s\"\n";
    assert_eq!(pattern(keys), Pattern::Periodic(Duration::from_ms(1)));
    let untagged = "length = \"1000B\"\nrate = \"1.02MB/s\"\n[link]\nvlan = \"none\"\n";
    assert_eq!(pattern(untagged), Pattern::Periodic(Duration::from_ms(1)));
    let sporadic = "interval = \"2ms\"\npattern = \"sporadic\"\nleast = \"1ms\"\n";
    let [mean, least] = [2, 1].map(Duration::from_ms);
    assert_eq!(pattern(sporadic), Pattern::Sporadic { mean, least });
    // The sustained rate of an envelope is of single frames.
    let envelope = "length = \"1000B\"\npattern = \"envelope\"\nburst = 4\nrate = \"1.024MB/s\"\n";
    assert_eq!(pattern(envelope), Pattern::Envelope { interval: least, frames: 4 });
}

#[test]
fn times_of_a_stream_that_contradict_each_other_are_errors() {
    for (keys, error) in [
        ("", "4:10: [traffic.t] needs interval, such as \"100us\", or rate"),
        ("rate = \"1MB/s\"\ninterval = \"1ms\"\n", "7:8: 'interval' and 'rate' exclude each other"),
        (
            "interval = \"1ms\"\nspread = \"1us\"\n",
            "8:10: 'spread' and pattern = \"uniform\" go together",
        ),
        (
            "interval = \"1ms\"\npattern = \"sporadic\"\nleast = \"1ms\"\n",
            "9:9: least: expected less than the mean interval, 1ms",
        ),
        ("interval = \"1ms\"\njitter = \"2ms\"\n", "8:10: jitter: at most the interval, 1ms"),
        (
            "interval = \"1ms\"\npattern = \"poisson\"\njitter = \"1us\"\n",
            "9:10: 'jitter' applies only to pattern = \"periodic\"",
        ),
        ("interval = \"1ms\"\non = \"2ms\"\n", "8:6: 'on' requires 'off'"),
    ] {
        fails(&stream(keys), &format!("p.toml:{error}"));
    }
}
