//! Options that the lab refuses before it creates anything.

use super::{GATES, alone, gates, nothing_is_left};
use crate::support::program::{fails, is_wrong_usage};

fn lab<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["latency", "lab"], options].concat()
}

#[test]
fn gates_are_named_by_file_and_line_or_number() {
    let good = gates("lab-gates", GATES);
    let written = |more: &[&'static str]| {
        let all = [&["--gate", &good, "--dry-run"], more].concat();
        let says = ["--gate ", &good[..]];
        (all.into_iter().map(str::to_owned).collect::<Vec<String>>(), says.map(str::to_owned))
    };
    for (priority, says) in [("6", "gate 6 never opens"), ("7", "gate 7 never closes")] {
        let (options, [option, file]) = written(&["--priority", priority]);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        fails(&lab(&options), &[&option, &file, says, "--priority"]);
    }
    let wrong = gates("lab-gates-wrong", "base-time 0\nsched-entry S 08 2ms\nsched-entry S 08\n");
    fails(&lab(&["--gate", &wrong, "--dry-run"]), &[&wrong, "line 3"]);
    fails(&lab(&["--gate", "/nonexistent/gates"]), &["--gate /nonexistent/gates: No such file"]);
}

/// Gates of 5 us would hang a guest.
#[test]
fn gates_that_are_too_short_for_software_are_refused() {
    alone("cli::lab::mistakes::gates_that_are_too_short_for_software_are_refused", || {
        let short = gates("lab-gates-short", "sched-entry S 08 5us sched-entry S f7 495us");
        fails(&lab(&["--gate", &short]), &["--gate: ", "5000 ns"]);
        assert!(!std::path::Path::new(super::FOLDER).exists(), "nothing was made");
    });
}

#[test]
fn invalid_schedule_is_an_error_of_the_talker() {
    alone("cli::lab::mistakes::invalid_schedule_is_an_error_of_the_talker", || {
        let talk = lab(&["--count", "10", "--talk", "--interval 5s"]);
        let output = crate::support::program::run(&talk);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains("linux: failed: idle: the talker: "), "{errors}");
        nothing_is_left();
    });
}

#[test]
fn options_are_named() {
    for (wrong, says) in [
        (&["--bridge", "hub"][..], "all, linux, macvtap, xdp"),
        (&["--guest", "an-interface-name,02:00:5e:10:00:02"], "invalid interface name"),
        (&["--guest", "a;b,02:00:5e:10:00:02"], "invalid interface name"),
        (&["--guest", "g0,02:00:5e:10:00"], "'02:00:5e:10:00'"),
        (&["--guest", "g0"], "INTERFACE,MAC"),
        (&["--boards", "eth1"], "TALKER,BRIDGE"),
        (&["--boards", "eth1,eth/2"], "'eth/2'"),
        (&["--boards", "eth1,eth2"], "--dry-run"),
        (&["--name", "a b"], "1 to 32 letters"),
        (&["--name", "../x"], "1 to 32 letters"),
        (&["--priority", "8"], "0..=7"),
        (&["--vlan", "4095"], "1..=4094"),
        (&["--stress-rate", "1M"], "--stress"),
        (&["--gate-first"], "--gate"),
        (&["--gate-margin", "1ms"], "--drive"),
        (&["--drop", "1"], "2..=100000"),
        (&["--count", "0"], "1..="),
        (&["--dry-run", "--json"], "--json"),
        (&["--drive", "--guest", "tap,02:00:5e:10:00:02"], "--guest"),
    ] {
        let usage = is_wrong_usage(&lab(wrong));
        assert!(usage.contains(says), "{wrong:?}: {usage}");
    }
}
