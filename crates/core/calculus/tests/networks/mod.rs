//! Small networks with results by hand, and what is refused.

use farlane_calculus::{
    ArrivalCurve, Bound, Flow, Lines, Method, MethodError, Multiplexing, Network, Outputs,
    RateLatency, Rational, Server, ServiceCurve, TokenBucket, bounds, format,
};
use proptest::prelude::*;

/// A network of equal flows and servers: burst 1, rate 1, service rate 4, latency 1.
fn network(paths: &[&[&str]], more: &str) -> format::NetworkFile {
    let flows = paths.iter().enumerate();
    let flows = flows.map(|(index, path)| format!(r#"{{"name": "f{index}", "path": {path:?}}}"#));
    let flows = flows.collect::<Vec<_>>().join(", ");
    let mut names: Vec<_> = paths.iter().copied().flatten().collect();
    names.sort();
    names.dedup();
    let servers = names.iter().map(|name| format!(r#"{{"name": "{name}"}}"#));
    let servers = servers.collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"{{"network": {{"arrival_curve": {{"bursts": [1], "rates": [1]}}, "max_packet_length": 1,
            "service_curve": {{"latencies": [1], "rates": [4]}}{more}}},
            "flows": [{flows}], "servers": [{servers}]}}"#
    );
    format::parse(&text).expect("a network")
}

fn exact(text: &str) -> Bound {
    Some(text.parse().expect("a fraction"))
}

fn delays(file: &format::NetworkFile, method: Method) -> Vec<Bound> {
    let bounds = bounds(&file.network, method, Outputs::Flow).expect("bounds");
    bounds.paths.into_iter().map(|path| path.delay).collect()
}

#[test]
fn ring_has_the_exact_fixed_point() {
    // Each server: D = 1 + (1 + (1 + D)) / 4.
    let ring = network(&[&["a", "b"], &["b", "a"]], "");
    assert_eq!(delays(&ring, Method::Tfa), [exact("4"), exact("4")]);
    // Unequal: a = 1 + (2 + b) / 4 and b = 1 + (3 + a + (a + c)) / 4 with c = 1 + (1 + a + b) / 4.
    let ring = network(&[&["a", "c", "b"], &["b", "a"], &["a", "b"]], "");
    let (a, b, c) = fixed_point();
    assert_eq!(delays(&ring, Method::Tfa)[0], Some(a + b + c));
}

/// Two flows with 10 bits at once and 1 bit/s enter a server with 10 bit/s.
#[test]
fn line_from_outside_limits_what_its_flows_bring_together() {
    let whole = |number: u32| Rational::from_integer(number.into());
    let bucket = |burst, rate| TokenBucket { burst: whole(burst), rate: whole(rate) };
    let delay = |shape: Option<TokenBucket>, method| {
        let service = ServiceCurve::new([RateLatency { rate: whole(10), latency: whole(0) }]);
        let server =
            |name: &str| Server { name: name.to_owned(), service: service.clone(), capacity: None };
        let flow = |name: &str, path: Vec<usize>| Flow {
            name: name.to_owned(),
            arrival: ArrivalCurve::new([bucket(10, 1)]),
            max_packet: None,
            min_packet: None,
            paths: vec![path],
            inlet: shape.clone().map(|shape| (0, shape)),
        };
        // The second flow leaves the tree of the first.
        let flows = [flow("f0", vec![0]), flow("f1", vec![0, 1])];
        let servers = vec![server("a"), server("b")];
        let network = Network::new(servers, &flows, Multiplexing::Fifo, Lines::default());
        let found = bounds(&network.expect("no overload"), method, Outputs::Flow).expect("bounds");
        found.paths[0].delay.clone()
    };
    for method in [Method::Tfa, Method::Plp, Method::Elp] {
        assert_eq!(delay(None, method), exact("2"));
        // At 0 the 10 bits of the line wait for 1 s; it brings 10 bit/s.
        assert_eq!(delay(Some(bucket(10, 10)), method), exact("1"));
    }
}

/// Solves a = 1 + (3 + b) / 4, c = 1 + (1 + a) / 4, b = 1 + (3 + a + c + a) / 4 by hand: b = 4a - 7,
/// c = (5 + a) / 4, so 4b = 7 + 2a + c gives 16a - 28 = 7 + 2a + (5 + a) / 4, and 55a = 145.
fn fixed_point()
-> (farlane_calculus::Rational, farlane_calculus::Rational, farlane_calculus::Rational) {
    let parse = |text: &str| text.parse().expect("a fraction");
    (parse("29/11"), parse("39/11"), parse("21/11"))
}

#[test]
fn cycles_are_named_and_divergence_is_an_error() {
    let ring =
        [["a", "b", "c", "d"], ["b", "c", "d", "a"], ["c", "d", "a", "b"], ["d", "a", "b", "c"]];
    let paths: Vec<&[&str]> = ring.iter().map(|path| &path[..]).collect();
    let ring = network(&paths, "");
    let cycle: Vec<String> = ring.network.cycle().expect("a cycle");
    let follows = |pair: [&str; 2]| ["ab", "bc", "cd", "da"].contains(&pair.concat().as_str());
    assert!((0..4).all(|at| follows([&cycle[at], &cycle[(at + 1) % 4]])), "{cycle:?}");
    // D = 1 + (4 + 6 D) / 4 grows for ever.
    let error = bounds(&ring.network, Method::Tfa, Outputs::Flow).expect_err("no fixed point");
    assert!(matches!(error, MethodError::Diverges { .. }), "{error}");
    for method in [Method::Sfa, Method::Pmoo, Method::Plp, Method::Elp] {
        let error = bounds(&ring.network, method, Outputs::Flow).expect_err("a cycle");
        let text = error.to_string();
        assert!(text.starts_with(method.name()) && text.contains(&cycle.join(" > ")), "{text}");
    }
}

#[test]
fn lines_carry_no_more_than_their_capacity() {
    // In b, f0 and f1 arrive by min(2 + 2 D + 2 t, 8 t + L) with D = 1 + 2 / 4 = 3/2.
    let paths: [&[&str]; 3] = [&["a", "b"], &["a", "b"], &["b"]];
    let hop = |options: &str| {
        let file = network(&paths, &format!(r#", "capacity": 8{options}"#));
        let bounds = bounds(&file.network, Method::Tfa, Outputs::Flow).expect("bounds");
        bounds.paths[0].hops[1].clone()
    };
    // 1 + (5 + 1) / 4.
    assert_eq!(hop(""), exact("5/2"));
    // The lines meet at t = 5/6, where 20/3 and 1 + 5/6 bits have arrived: 1 + 17/8 - 5/6.
    assert_eq!(hop(r#", "analysis_option": ["IS"]"#), exact("55/24"));
    // With packets of 1 bit at t = 2/3: 1 + (19/3 + 5/3) / 4 - 2/3.
    assert_eq!(hop(r#", "analysis_option": ["IS", "PK"]"#), exact("7/3"));
    // The last packet leaves 1/4 - 1/8 earlier, in a too: 1 + (5 - 2 / 8 + 1) / 4 - 1/8.
    assert_eq!(hop(r#", "min_packet_length": 1, "analysis_option": ["MOH"]"#), exact("37/16"));
}

#[test]
fn shared_servers_count_copies_of_a_flow_once() {
    let text = r#"{"network": {"arrival_curve": {"bursts": [1], "rates": [3]},
        "service_curve": {"latencies": [1], "rates": [4]}},
        "flows": [{"name": "f", "path": ["a", "b"], "path_name": "left",
            "multicast": [{"name": "right", "path": ["a", "c"]}]}],
        "servers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}"#;
    let file = format::parse(text).expect("no overload");
    assert_eq!(file.path_names, [["left", "right"]]);
    // a: 1 + 1/4; b and c: 1 + (1 + 3 * 5/4) / 4. Alone in all servers, as one server: 2 + 1/4.
    assert_eq!(delays(&file, Method::Tfa), [exact("55/16"), exact("55/16")]);
    assert_eq!(delays(&file, Method::Sfa), [exact("9/4"), exact("9/4")]);
    assert_eq!(delays(&file, Method::Pmoo), [exact("9/4"), exact("9/4")]);
}

proptest! {
    /// Any text in place of a value, and any bytes in place of some.
    #[test]
    fn hostile_networks_are_values_or_errors(
        value in "[-+0-9.eEumkMbBps ]{0,8}|.{0,8}",
        (from, length) in (0..300_usize, 0..40_usize),
    ) {
        let quoted = serde_json::Value::from(value.as_str()).to_string();
        for word in [r#""10B""#, r#""10kbps""#, "[1]", r#""s""#, r#""us""#] {
            let _ = format::parse(&GOOD.replacen(word, &quoted, 1));
        }
        let mut text = GOOD.to_owned();
        text.replace_range(from.min(GOOD.len())..(from + length).min(GOOD.len()), &value);
        let _ = format::parse(&text);
    }
}

const GOOD: &str = r#"{"network": {"time_unit": "us"}, "flows": [{"name": "f", "path": ["s"],
    "arrival_curve": {"bursts": ["10B"], "rates": ["10kbps"]}}],
    "servers": [{"name": "s", "service_curve": {"latencies": [1], "rates": ["1Mbps"]}}]}"#;

#[test]
fn mistakes_name_their_place_and_value() {
    assert!(format::parse(GOOD).is_ok());
    for (from, to, expected) in [
        (r#"["s"]"#, r#"["s", "t"]"#, "flows[0].path[1]: unknown server 't'"),
        (r#"["s"]"#, "[]", "flows[0].path: path 0 of flow 'f' has no server"),
        (r#"["s"]"#, r#"["s", "s"]"#, "flows[0].path: path 0 of flow 'f' visits server 's' twice"),
        (
            "10kbps",
            "10kbs",
            "flows[0].arrival_curve.rates[0]: invalid rate '10kbs': expected a number such as 10 or 10Mbps",
        ),
        ("10kbps", "-1bps", "flows[0].arrival_curve.rates[0]: '-1bps' is negative"),
        (
            r#""10B""#,
            "true",
            "flows[0].arrival_curve.bursts[0]: invalid size 'true': expected a number such as 10 or 50B",
        ),
        (
            r#"[1], "rates": ["1Mbps"]"#,
            r#"[], "rates": []"#,
            "servers[0].service_curve: 0 latencies and 0 rates: expected as many, and at least 1",
        ),
        (r#""1Mbps""#, "0", "servers[0].service_curve.rates[0]: must be above 0"),
        (
            "10kbps",
            "2Mbps",
            "servers: server 's' serves 1000000 bit/s, and its flows send 2000000 bit/s: f",
        ),
        (r#""us""#, r#""B""#, "network.time_unit: invalid unit of times 'B': expected such as us"),
        (
            r#""time_unit": "us""#,
            r#""multiplexing": "LIFO""#,
            "network.multiplexing: invalid multiplexing 'LIFO': expected FIFO or ARBITRARY",
        ),
        (r#""name": "f", "#, "", "flows[0]: 'name' is missing"),
        ("[{", "{[", "line 1 column 44: invalid JSON"),
    ] {
        let error = format::parse(&GOOD.replacen(from, to, 1)).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}
