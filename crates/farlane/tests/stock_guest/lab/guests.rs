//! Two guests on a cable. An application in the second guest receives frames, and its clock
//! differs.

use serde_json::Value;
use tsn::taprio;

use crate::stock_guest::guest::Guest;
use crate::stock_guest::lab::{document, segment};
use crate::stock_guest::script::script;
use crate::support::folder::Sockets;

/// Seconds by which the second guest's clock is ahead. A guest reads its first time in whole
/// seconds.
const AHEAD: i64 = 7;
/// Number of frames.
const FRAMES: u64 = 100;

/// MAC address of the second guest.
const MAC: &str = "02:00:5e:00:53:22";

/// Starts a guest with a NIC at one end of a cable.
fn start(name: &str, cable: &Sockets, end: &str, mac: &str) -> Guest {
    let path = cable.path("cable");
    let path = path.display();
    Guest::builder(&format!("lab-guests/{name}"))
        .lab()
        .option("-netdev", format!("stream,id=net,addr.type=unix,addr.path={path},{end}"))
        .device(format!("virtio-net-pci,netdev=net,romfile=,mac={mac}"))
        .start()
}

#[test]
fn guest_application_receives_and_clock_offset_is_reported() {
    let sockets = Sockets::new();
    let mut first = start("first", &sockets, "server=on", "02:00:5e:00:53:21");
    let mut second = start("second", &sockets, "server=off", MAC);
    let list = taprio::parse("sched-entry S f7 10ms sched-entry S 08 10ms").unwrap();
    let gates = taprio::command(&list, &taprio::Options::new("out", false));
    first.run(&script!("bridges").argument(gates));
    second.run(&script!("listen").argument(AHEAD));

    // Frames are due 9 ms before the gate opens.
    let talk = format!(
        "raw:near,{MAC} --reflect --vlan 5 --priority 3 --interval 20ms --cycle 20ms \
         --window 10ms,10ms --outside --offset 1ms --count {FRAMES} --fifo 80 --lock-memory"
    );
    let talked = first.run(&script!("talk").arguments(&talk));
    let listened = second.run(&script!("listened"));
    let (talk, listen) = (document(&talked, "talk"), document(&listened, "listen"));

    for counts in [&talk["counts"], &listen["counts"]] {
        assert_eq!([&counts["sent"], &counts["received"]], [FRAMES, FRAMES], "{counts}");
    }
    assert_eq!(
        (&listen["tags"][0]["vlan"], &listen["tags"][0]["priority"]),
        (&5.into(), &3.into())
    );
    // One clock measures the round trip. Most of the time is the wait at the gate.
    let trip = segment(&talk, "round trip");
    assert_eq!((&trip["whole"]["n"], &trip["caution"]), (&FRAMES.into(), &"".into()));
    let median = trip["whole"]["p50_ns"].as_i64().unwrap();
    assert!((5_000_000..1_000_000_000).contains(&median), "{median} ns");
    // The talker reports the clock offset, and marks the segments between the clocks.
    let ns = |key: &str| talk["clock"][key].as_i64().unwrap();
    let seconds = (AHEAD - 2) * 1_000_000_000..(AHEAD + 2) * 1_000_000_000;
    assert!(seconds.contains(&ns("offset_ns")), "{}", ns("offset_ns"));
    assert!(seconds.contains(&ns("proven_ns")), "{}", ns("proven_ns"));
    assert_eq!(talk["clock"]["source"], "exchange");
    let kinds = talk["findings"].as_array().unwrap().iter().map(|finding| &finding["kind"]);
    assert!(kinds.into_iter().any(|kind| kind == "clock-offset"), "{}", talk["findings"]);
    let crossing = |finding: &&Value| finding["crosses_clocks"] == true;
    let crossing: Vec<_> = talk["segments"].as_array().unwrap().iter().filter(crossing).collect();
    assert!(
        !crossing.is_empty() && crossing.iter().all(|finding| finding["caution"] != ""),
        "{crossing:?}"
    );
    // Without answers, the listener reports that the other clock is unknown.
    assert_eq!(listen["clock"]["source"], "unknown");
    first.power_off();
    second.power_off();
}
