//! Offsets of clocks, and the findings that report them.

use super::{Listener, kinds, segment, talk};
use crate::support::program::{fails, is_refused, scratch, text};
use serde_json::Value;
use std::os::unix::net::UnixDatagram;

#[test]
fn an_offset_of_one_clock_is_not_taken_for_latency() {
    // Negative latencies, and latencies that seem too long.
    for offset in ["-40ms", "40ms"] {
        let listener = Listener::udp(&["--reflect", "--stamp-offset", offset]);
        let near = talk(&listener.address, &["--count", "100", "--reflect"]);
        let far = listener.report();
        let proven = near["clock"]["proven_ns"].as_u64().unwrap();
        assert!((10_000_000..=40_000_000).contains(&proven), "{offset}: {proven}");
        assert!(kinds(&near).contains(&"clock-offset"), "{offset}: {near}");
        for name in ["end to end", "back to application"] {
            assert_eq!(segment(&near, name)["caution"], "not a latency: the clocks differ");
        }
        for name in ["round trip", "turn at the listener"] {
            assert_eq!(segment(&near, name)["caution"], "", "one clock measures it");
        }
        // The listener receives no answers, and it does not know the clock of the talker.
        assert_eq!(far["clock"]["source"], "unknown", "{far}");
        if offset == "40ms" {
            let caution = &segment(&far, "sent to kernel")["caution"];
            assert_eq!(caution, "includes the clock error, which is unknown");
        } else {
            let one_way = segment(&far, "sent to kernel");
            assert_eq!(one_way["caution"], "not a latency: the clocks differ");
            assert_eq!(one_way["whole"]["n"], one_way["whole"]["negative"]);
        }
    }
}

/// One of two ends counts leap seconds (TAI), the other does not. The documents report the offset
/// with and without `--reflect`, whichever end counts them.
#[test]
fn clocks_apart_by_leap_seconds_are_reported() {
    let leap = ["--stamp-offset", "37s"];
    for (here, there) in [(&[][..], &leap[..]), (&leap, &[])] {
        let both = [there, &["--reflect"]].concat();
        let listener = Listener::udp(&both);
        let near = talk(&listener.address, &[here, &["--count", "100", "--reflect"]].concat());
        let reflecting = listener.report();
        let listener = Listener::udp(there);
        talk(&listener.address, &[here, &["--count", "100"]].concat());
        for document in [near, reflecting, listener.report()] {
            let all = document["findings"].as_array().unwrap();
            let apart = all.iter().find(|finding| finding["kind"] == "clock-offset");
            let evidence = apart.unwrap_or_else(|| panic!("{document}"))["evidence"].as_str();
            assert!(evidence.unwrap().contains("differ by 37 s: only one has TAI"), "{evidence:?}");
            let caution = &segment(&document, "end to end")["caution"];
            assert_eq!(caution, "not a latency: the clocks differ", "{document}");
        }
    }
}

/// A program replaces ptp4l and answers only in the profile of gPTP. It reports an offset of 25 us
/// from the master.
#[test]
fn clock_error_is_taken_from_ptp4l() {
    let path = scratch("latency-ptp").join("ptp4l");
    let socket = UnixDatagram::bind(&path).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((bytes, from)) = socket.recv_from(&mut buffer) {
            if buffer[0] >> 4 != 1 {
                continue;
            }
            let mut answer = buffer[..bytes].to_vec();
            // A RESPONSE with TIME_STATUS_NP. gmPresent is set only in domain 0.
            answer[46] = 2;
            answer.extend(25_000i64.to_be_bytes());
            answer.extend([0; 42]);
            answer[95] = u8::from(buffer[4] == 0);
            socket.send_to_addr(&answer, &from).unwrap();
        }
    });
    let how = format!("ptp4l={}", text(&path));
    let listener = Listener::udp(&["--clock", &how]);
    talk(&listener.address, &["--count", "50"]);
    let clock = &listener.report()["clock"];
    assert_eq!([&clock["source"], &clock["offset_ns"]], [&Value::from("ptp4l"), &25_000.into()]);
    assert_eq!([&clock["proven_ns"], &clock["possible_ns"]], [0, 50_000]);
    let nobody = ["latency", "talk", "localhost", "--clock", "ptp4l=/nonexistent/ptp4l"];
    fails(&nobody, &["ptp4l does not answer; /nonexistent/ptp4l: "]);
    let master = ["latency", "talk", "localhost", "--clock", &how, "--ptp-domain", "1"];
    fails(&master, &["has no master"]);
    let clock = |how: &'static str| ["latency", "talk", "localhost", "--clock", how];
    fails(&clock("phc2sys=/dev/null"), &["--clock phc2sys=/dev/null: /dev/null is not a hardware"]);
    fails(&clock("phc2sys=lo"), &["lo has no hardware clock"]);
    let both = ["--clock", "shared", "--clock", "ptp4l"];
    is_refused(&[&clock("ptp4l")[..3], &both[..]].concat(), &["twice only as ptp4l and phc2sys"]);
}
