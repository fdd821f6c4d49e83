//! Marks on the wire, and clocks, with the kernel and linuxptp.

use crate::stock_guest::guest::Guest;
use crate::stock_guest::lab::{FAR, document, probe};
use crate::stock_guest::script::script;

#[test]
fn marks_reach_the_wire_and_lines_for_boards_work() {
    let mut guest = Guest::builder("lab-marks/guest").lab().start();
    guest.run(&script!("network"));
    guest.run(&script!("marks"));

    guest.run(&script!("ptp"));
    let talker = "--interval 20ms --count 100";
    let output = guest.run(&probe((FAR, talker), ("raw:far", "--clock ptp4l=/run/far")));
    let clock = &document(&output, "listen")["clock"];
    assert_eq!(clock["source"], "ptp4l", "{clock}");
    // The printed commands declare the talker's clock as TAI, 37 s ahead of UTC. With the clock of
    // a NIC this is true. With stamps of the kernel both clocks are UTC, so the offset is 37 s.
    let offset = clock["offset_ns"].as_i64().unwrap();
    assert!((36_000_000_000..38_000_000_000).contains(&offset), "{clock}");
    // ptp4l is read at the start and every second.
    assert!(clock["series"].as_array().unwrap().len() >= 2, "{clock}");
    guest.power_off();
}
