//! Marks on the wire, and clocks, as the kernel and linuxptp have them.

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
    // The exported lines call the talker's clock TAI, 37 s ahead of UTC. With a NIC's clock it is;
    // with stamps of the kernel both clocks are UTC, and just that is off, however busy the machine.
    let offset = clock["offset_ns"].as_i64().unwrap();
    assert!((36_000_000_000..38_000_000_000).contains(&offset), "{clock}");
    // Asked once at the start, and every second.
    assert!(clock["series"].as_array().unwrap().len() >= 2, "{clock}");
    guest.power_off();
}
