//! `farlane latency lab` in a kernel with all features: each kind of bridge, and what the lab
//! leaves.

use serde_json::Value;

use crate::stock_guest::guest::Guest;
use crate::stock_guest::lab::{ROUNDS, document};
use crate::stock_guest::script::{Script, script};

/// Runs the lab with these options; returns the first bridge of its document.
fn lab(guest: &mut Guest, options: &[&str]) -> Value {
    let output = guest.run(&options.iter().fold(script!("lab"), Script::argument));
    let bridge = document(&output, "lab")["bridges"][0].clone();
    println!("{options:?}: {} {} {}", bridge["outcome"], bridge["gate"], bridge["why"]);
    guest.run(&script!("left"));
    bridge
}

/// Returns a run of a bridge.
fn run<'a>(bridge: &'a Value, name: &str) -> &'a Value {
    let runs = bridge["runs"].as_array().unwrap();
    runs.iter().find(|run| run["name"] == name).unwrap_or_else(|| panic!("no {name}: {runs:?}"))
}

/// Measures a bridge of this kind, which must pass all frames; returns the verdict about its gates.
/// A busy machine stops the guest for milliseconds, which makes frames late. The measurement is
/// then repeated.
fn verdict(guest: &mut Guest, kind: &str) -> String {
    for _ in 0..ROUNDS {
        let bridge = lab(guest, &["--bridge", kind]);
        assert_eq!((&bridge["bridge"], &bridge["outcome"]), (&kind.into(), &"passes".into()));
        let counts = &run(&bridge, "idle")["listen"]["counts"];
        assert_eq!(counts["received"], 50, "{kind}: {counts}");
        if bridge["gate"]["verdict"] != "late" {
            return bridge["gate"]["verdict"].as_str().unwrap().to_owned();
        }
    }
    panic!("{kind}: {ROUNDS} rounds without a verdict");
}

#[test]
fn measurement_identifies_gates_of_each_bridge() {
    let mut guest = Guest::builder("lab-bridges/guest").lab().start();
    for kind in ["linux", "macvtap", "ovs"] {
        assert_eq!(verdict(&mut guest, kind), "gated", "{kind}");
    }
    for kind in ["xdp", "xdp-generic"] {
        assert_eq!(verdict(&mut guest, kind), "not-gated", "{kind}");
    }
    // The result of these kinds depends on the machine. Open vSwitch in user space needs a CPU for
    // itself.
    for kind in ["ovs-user", "ovs-afxdp", "vfio"] {
        let bridge = lab(&mut guest, &["--bridge", kind]);
        let why = bridge["why"].as_str().unwrap();
        match bridge["outcome"].as_str().unwrap() {
            "passes" => assert_ne!(run(&bridge, "gates")["listen"]["counts"]["received"], 0),
            "loses-everything" => assert_eq!(bridge["gate"], Value::Null),
            "refused" => assert!(!why.is_empty(), "{kind}"),
            other => panic!("{kind}: {other}: {why}"),
        }
        assert!(kind != "vfio" || bridge["outcome"] == "refused", "the guest has no NIC to give");
    }
    guest.power_off();
}

#[test]
fn a_lab_leaves_nothing_and_counts_what_is_injected() {
    let mut guest = Guest::builder("lab-left/guest").lab().start();
    // The lab drops one of five frames, and a clock has an offset.
    let options = ["--drop", "5", "--listen", "--stamp-offset 50ms"];
    let bridge = lab(&mut guest, &options);
    let idle = run(&bridge, "idle");
    let counts = &idle["listen"]["counts"];
    let count = |key: &str| counts[key].as_u64().unwrap();
    // Every fifth frame of the talker's interface is dropped, and other frames count too.
    assert!((7..=10).contains(&count("lost")), "{counts}");
    assert_eq!((count("sent"), count("received") + count("lost")), (50, 50), "{counts}");
    let clock = &idle["talk"]["clock"];
    assert!(clock["offset_ns"].as_i64().unwrap() > 40_000_000, "{clock}");
    let kinds = idle["talk"]["findings"].as_array().unwrap().iter().map(|finding| &finding["kind"]);
    assert!(kinds.into_iter().any(|kind| kind == "clock-offset"), "{}", idle["talk"]["findings"]);

    // The load comes from the real iperf3.
    let bridge = lab(&mut guest, &["--stress", "2", "--stress-rate", "1M"]);
    let bits = |name| run(&bridge, name)["received_bits_per_second"].as_u64().unwrap();
    assert!(bits("loaded") > bits("idle") + 500_000, "{} {}", bits("loaded"), bits("idle"));

    guest.run(&script!("killed"));
    let took = guest.run(&script!("lab").argument("--bridge").argument("linux"));
    assert!(took.text.contains("took down what an earlier lab left"), "{}", took.text);
    guest.run(&script!("left"));

    let heard = document(&guest.run(&script!("dry_run")), "listen");
    assert_eq!(heard["counts"]["received"], 100, "{}", heard["counts"]);
    guest.run(&script!("left"));
    guest.power_off();
}
