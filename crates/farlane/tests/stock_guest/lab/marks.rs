//! Marks on the wire, and clocks, as the kernel and linuxptp have them.

use crate::stock_guest::guest::Guest;
use crate::stock_guest::lab::{FAR, document, probe};
use crate::stock_guest::script::script;

#[test]
fn marks_reach_the_wire_and_ptp4l_is_asked() {
    let mut guest = Guest::builder("lab-marks/guest").lab().start();
    guest.run(&script!("network"));
    guest.run(&script!("marks"));

    guest.run(&script!("ptp"));
    let listener = ["--clock", "ptp4l=/run/far"];
    let talker = ["--interval", "20ms", "--count", "100"];
    let output = guest.run(&probe((FAR, &talker), ("raw:far", &listener)));
    let clock = &document(&output, "listen")["clock"];
    assert_eq!(clock["source"], "ptp4l", "{clock}");
    // Both ends have one clock, and ptp4l measures within what the kernel takes to stamp: however
    // busy the machine is, within a second.
    assert!(clock["offset_ns"].as_i64().unwrap().abs() < 1_000_000_000, "{clock}");
    // Asked once at the start, and every second.
    assert!(clock["series"].as_array().unwrap().len() >= 2, "{clock}");
    guest.power_off();
}
