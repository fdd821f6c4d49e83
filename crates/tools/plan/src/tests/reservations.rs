//! Plans with reserved bandwidth.

use super::super::Plan;

/// A host and a drive at both ends of a bridge, and a stream on the same path to the drive.
fn mistake(host: &str, stream: &str, link: &str) -> Result<(), String> {
    let text = format!(
        "transport = \"tsn\"\n[link]\nrate = \"1G\"\npriority = 3\n{link}\n[hosts.h]\n{host}\n\
         [drive]\nnode = \"n\"\n[nodes.n]\n[nodes.c]\n\
         [bridges.b]\nschedule = \"s\"\n[schedules.s]\nentries = [\"S 08 40us\", \"S f7 60us\"]\n\
         [traffic.t]\nfrom = \"c\"\nto = \"n\"\ninterval = \"1ms\"\npriority = 5\n{stream}\n\
         [workload]\nrw = \"read\"\nsize = \"4KiB\"\n"
    );
    Plan::parse("plan.toml", &text).unwrap().build().map(drop).map_err(|error| error.to_string())
}

#[test]
fn reservations_within_the_rate_are_admitted() {
    for (host, stream, link) in [
        ("", "", ""),
        // 75 % of 1 Gb/s.
        ("reserve = \"300Mb/s\"", "reserve = \"450Mb/s\"", ""),
        ("reserve = \"300Mb/s\"", "reserve = \"480Mb/s\"", "reservable = \"90%\""),
    ] {
        assert_eq!(mistake(host, stream, link), Ok(()), "{host} {stream} {link}");
    }
}

#[test]
fn reservations_beyond_the_rate_are_errors_with_port_and_sum() {
    let sum = mistake("reserve = \"300Mb/s\"", "reserve = \"451Mb/s\"", "").unwrap_err();
    assert!(sum.starts_with("plan.toml:"), "{sum}");
    for part in [
        "stream t cannot reserve 451.0 Mb/s: ",
        "lends 750.0 Mb/s, 75 % of its rate, and 751.0 Mb/s are wanted there: ",
        "host h 300.0 Mb/s, stream t 451.0 Mb/s",
    ] {
        assert!(sum.contains(part), "{sum}");
    }
    // 40 of 100 us hold three frames of 12.336 us.
    let other = "reserve = \"100Mb/s\"";
    let gates = mistake("reserve = \"400Mb/s\"", other, "").unwrap_err();
    assert!(gates.contains("host h cannot reserve 400.0 Mb/s: "), "{gates}");
    assert!(gates.contains("what its gates leave to class 3, and 400.0 Mb/s are"), "{gates}");
    assert!(gates.ends_with(": host h 400.0 Mb/s"), "of the class alone: {gates}");
    let share = mistake("", "reserve = \"20Mb/s\"", "reservable = \"1%\"").unwrap_err();
    assert!(share.contains("lends 10.0 Mb/s, 1 % of its rate"), "{share}");
}
