//! Commands and settings that the program prints for Linux work with the real programs.

use serde_json::Value;
use tsn::taprio;

use crate::stock_guest::guest::Guest;
use crate::stock_guest::lab::{FAR, ROUNDS, command, document, json, probe};
use crate::stock_guest::script::script;

/// In a cycle of 20 ms, priority 3 may send in the second half, all other priorities in the first
/// half.
const GATES: &str = "sched-entry S f7 10ms sched-entry S 08 10ms";
/// Number of frames of the probe. With an interval of 7 ms and a cycle of 20 ms, frames are due at
/// each ms of the cycle in turn.
const FRAMES: u64 = 200;
const PROBE: &str = "--priority 3 --interval 7ms --count 200 --cycle 20ms --window 10ms,10ms \
     --outside";

/// Runs a probe; returns how its arrivals meet the windows.
fn arrival(guest: &mut Guest) -> Value {
    let output = guest.run(&probe((FAR, PROBE), ("raw:far", "--clock shared")));
    let heard = document(&output, "listen");
    assert_eq!(heard["counts"]["received"], FRAMES, "{}", heard["counts"]);
    let slots = heard["slots"].as_array().unwrap();
    let arrival = slots.iter().find(|slots| slots["stamp"] == "arrival").expect("by arrival");
    assert_eq!([&arrival["n"], &arrival["outside_due"]], [FRAMES, FRAMES / 2]);
    println!("{arrival}");
    arrival.clone()
}

/// Returns whether frames meet the windows of gates like [`GATES`].
pub fn kept(guest: &mut Guest) -> bool {
    // A busy machine stops the guest for milliseconds, which makes frames late, never early.
    // Otherwise at least 49 of 50 frames arrive in their windows.
    (0..ROUNDS).any(|_| {
        let gated = arrival(guest);
        assert_eq!(gated["early"], 0, "frames went round the gates");
        gated["in_window"].as_u64().unwrap() * 50 >= FRAMES * 49
    })
}

/// Returns whether the queueing discipline honours launch times.
fn launches(guest: &mut Guest) -> bool {
    let talker = "--launch 10ms --interval 20ms --count 10 --allow-losses 10";
    let output = guest.run(&probe((FAR, talker), ("raw:far", "--clock shared")));
    let talk = document(&output, "talk");
    let settings = talk["settings"].as_array().unwrap();
    let setting =
        settings.iter().find(|setting| setting["name"] == "launch times").expect("the setting");
    println!("{setting}");
    setting["in_force"] == true
}

#[test]
fn exported_lines_hold_in_a_stock_kernel() {
    let mut guest = Guest::builder("lab-gates/guest").lab().start();
    guest.run(&script!("network"));
    let list = taprio::parse(GATES).unwrap();
    let line = |offload| taprio::command(&list, &taprio::Options::new("near", offload));

    // A veth has no clock of its own, so the kernel parses the line and refuses the offload.
    let refused = guest.try_run(&command(&line(true)));
    assert!(refused.text.contains("Device does not have a PTP clock"), "{}", refused.text);
    // The kernel accepts launch times with any queueing discipline. With etf some stamps may be
    // missing.
    assert!(!launches(&mut guest), "without etf");
    guest.run(&command("tc qdisc replace dev near root etf clockid CLOCK_TAI delta 5000000"));
    assert!((0..ROUNDS).any(|_| launches(&mut guest)), "with etf");
    guest.run(&command("tc qdisc del dev near root"));

    let open = arrival(&mut guest);
    assert!(open["early"].as_u64() > Some(FRAMES / 8), "{open}");

    guest.run(&command(&line(false)));
    let shown = json(&guest.run(&command("tc -j qdisc show dev near root")).text);
    let options = &shown[0]["options"];
    assert_eq!((&shown[0]["kind"], &options["cycle_time"]), (&"taprio".into(), &20_000_000.into()));
    let entry = |index: usize| {
        let entry = &options["schedule"][index];
        (entry["cmd"].clone(), entry["gatemask"].clone(), entry["interval"].clone())
    };
    let expected = |mask: &str| ("S".into(), mask.into(), 10_000_000.into());
    assert_eq!([entry(0), entry(1)], [expected("0xf7"), expected("0x8")], "{shown}");
    assert!(kept(&mut guest), "in {ROUNDS} rounds");
    guest.power_off();
}
