//! Segments, windows, losses and tags of frames.

use super::{Listener, Relay, segment, talk};
use crate::support::isolated::isolated;
use linux::{Interface, Namespace};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn every_frame_comes_back_and_every_part_of_its_way_is_measured() {
    let listener = Listener::udp(&["--reflect", "--label", "far"]);
    let windows = ["--cycle", "1ms", "--window", "100us,400us", "--offset", "200us"];
    let near = talk(&listener.address, &[&["--count", "200", "--reflect"], &windows[..]].concat());
    let far = listener.report();
    assert_eq!(
        (&near["run"], &near["ended"], &far["ended"]),
        (&far["run"], &"done".into(), &"done".into())
    );
    for (end, document) in [("talk", &near), ("listen", &far)] {
        assert_eq!(document["end"], end);
        let counts = &document["counts"];
        assert_eq!(
            [&counts["sent"], &counts["received"], &counts["lost"]],
            [200, 200, 0],
            "{counts}"
        );
        assert_eq!(
            (&document["interval_ns"], &document["cycle_ns"]),
            (&2_000_000.into(), &1_000_000.into())
        );
        assert_eq!(document["clock"]["source"], "shared", "loopback has one clock");
        for name in ["schedule to wake-up", "end to end", "turn at the listener"] {
            let whole = &segment(document, name)["whole"];
            assert_eq!(
                (&whole["n"], &whole["negative"]),
                (&200.into(), &0.into()),
                "{name}: {whole}"
            );
        }
        // The kernel stamps received frames only some time after the socket has enabled stamps.
        assert!(segment(document, "wire to kernel")["whole"]["n"].as_u64() > Some(100));
        // Later frames, including End frames, bring the driver's stamps of each end to the other
        // end.
        for name in ["sent to queue", "queue to wire", "sent back to queue", "back, queue to wire"]
        {
            assert_eq!(segment(document, name)["whole"]["n"], 200, "{end}: {name}");
        }
        let slots = document["slots"].as_array().unwrap();
        assert!(slots.len() == 2 && slots.iter().all(|slots| slots["n"] == 200), "{slots:?}");
    }
    assert_eq!(segment(&near, "round trip")["whole"]["n"], 200);
    assert!(near["clock"]["series"].as_array().is_some_and(|series| !series.is_empty()));
    assert_eq!(near["clock"]["proven_ns"], 0);
    for name in ["back, wire to kernel", "back, kernel to application"] {
        assert!(segment(&near, name)["whole"]["n"].as_u64() > Some(100), "{name}");
    }
    let departures = |document: &Value| document["slots"][0]["in_slot"].clone();
    assert_eq!(departures(&near), departures(&far));
}

/// The window opens 1.5 s after the frames are due. Without a relay the frames arrive outside of
/// the window. Then a relay holds the frames until the window opens, as a gate does.
#[test]
fn frames_due_outside_their_windows_show_whether_something_held_them() {
    let base = linux::time::now() + 500_000_000;
    let opens = base + 1_500_000_000;
    let windows = ["--cycle", "4s", "--window", "1.5s,1.5s", "--outside", "--count", "20"];
    let base = base.to_string();
    let talk = |address: &str| talk(address, &[&windows[..], &["--base", &base]].concat());
    let listeners = [Listener::udp(&[]), Listener::udp(&[])];
    let mut held: Vec<Vec<u8>> = Vec::new();
    let relay = Relay::start(&listeners[1].address, move |number, bytes, far| {
        held.push(bytes.to_vec());
        if number.is_none_or(|number| number == 20) {
            while !linux::time::sleep_until(opens) {}
            for bytes in held.drain(..) {
                far.send(&bytes).unwrap();
            }
        }
    });
    let gated = relay.address.to_string();
    let ends = std::thread::scope(|scope| {
        let near = [&listeners[0].address, &gated].map(|to| scope.spawn(|| talk(to)));
        near.map(|talker| talker.join().unwrap())
    });
    let [open, gated] = listeners.map(Listener::report);
    for slots in [&ends[0]["slots"][0], &ends[1]["slots"][0], &open["slots"][1]] {
        let counts = ["n", "outside_due", "outside_arrived", "early"].map(|key| &slots[key]);
        assert_eq!(counts, [20; 4], "{slots}");
    }
    let slots = &gated["slots"][1];
    let counts = ["n", "in_slot", "outside_due", "outside_arrived"].map(|key| &slots[key]);
    assert_eq!(counts, [20, 20, 20, 0], "{slots}");
}

#[test]
fn losses_and_copies_are_counted() {
    let listener = Listener::udp(&[]);
    let dropped = Arc::<AtomicU64>::default();
    let count = dropped.clone();
    let relay = Relay::start(&listener.address, move |number, bytes, far| match number {
        Some(number) if number.is_multiple_of(10) => {
            count.fetch_add(1, Ordering::Relaxed);
        }
        number => {
            // The first frame is sent twice.
            for _ in 0..if number == Some(1) { 2 } else { 1 } {
                far.send(bytes).unwrap();
            }
        }
    });
    // The last data frame is lost too. The talker's End frame reveals the loss.
    talk(&relay.address.to_string(), &["--count", "300"]);
    let far = listener.report();
    let dropped = dropped.load(Ordering::Relaxed);
    let counts = &far["counts"];
    assert_eq!(dropped, 30);
    assert_eq!((&counts["sent"], &counts["lost"]), (&300.into(), &dropped.into()), "{counts}");
    assert_eq!([&counts["duplicates"], &counts["longest_loss"], &counts["reordered"]], [1, 1, 0]);
}

/// The relay holds forty frames until a later frame comes, and then sends them at once.
#[test]
fn delayed_frames_are_reported_as_stall() {
    let listener = Listener::udp(&[]);
    let mut held: Vec<Vec<u8>> = Vec::new();
    let relay = Relay::start(&listener.address, move |number, bytes, far| {
        held.push(bytes.to_vec());
        if !number.is_some_and(|number| (100..140).contains(&number)) {
            for bytes in held.drain(..) {
                far.send(&bytes).unwrap();
            }
        }
    });
    talk(&relay.address.to_string(), &["--count", "300"]);
    let far = listener.report();
    let is_ours = |finding: &&Value| {
        finding["kind"] == "stall"
            && finding["first"].as_u64() < Some(139)
            && finding["last"].as_u64() >= Some(99)
    };
    let stall = far["findings"].as_array().unwrap().iter().find(is_ours);
    assert!(
        stall.is_some_and(|finding| finding["segment"] == "sent to kernel"),
        "{}",
        far["findings"]
    );
    assert_eq!(far["counts"]["lost"], 0);
}

#[test]
fn tagged_frames_cross_a_cable_and_come_back() {
    isolated("cli::latency::way::tagged_frames_cross_a_cable_and_come_back", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let mac = away.enter(|| Interface::find("far0").unwrap().mac).unwrap();
        let options = ["--reflect", "--insecure", "--clock", "shared"];
        let listener = away.enter(|| Listener::start("raw:far0", &options)).unwrap();
        let tagged = ["--vlan", "5", "--priority", "3", "--clock", "shared"];
        let to = format!("raw:near0,{mac}");
        let near = talk(&to, &[&["--count", "100", "--reflect"], &tagged[..]].concat());
        let far = listener.report();
        assert_eq!([&near["counts"]["received"], &far["counts"]["received"]], [100, 100]);
        let tags = serde_json::json!([{ "priority": 3, "vlan": 5, "n": 100 }]);
        assert_eq!((&far["tags"], &near["address"]), (&tags, &to.into()));
        assert_eq!(segment(&far, "wire to kernel")["crosses_clocks"], true);
        assert_eq!(near["settings"][0]["name"], "priority");
    });
}

/// The queue has room for one frame and a rate of 80 kbit/s. A frame of 142 bytes takes 14 ms, so
/// most frames are dropped. The kernel numbers dropped frames too, and the talker must assign
/// stamps to the other frames.
#[test]
fn dropped_frames_are_refused_without_wrong_stamps() {
    isolated("cli::latency::way::dropped_frames_are_refused_without_wrong_stamps", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        home.run("tc qdisc add dev near0 root tbf rate 80kbit burst 1600 limit 200").unwrap();
        let mac = away.enter(|| Interface::find("far0").unwrap().mac).unwrap();
        let listener = away.enter(|| Listener::start("raw:far0", &["--clock", "shared"])).unwrap();
        let near = talk(&format!("raw:near0,{mac}"), &["--count", "300", "--clock", "shared"]);
        let far = listener.report();
        let refused = near["faults"]["refused"].as_u64().unwrap();
        let came = far["counts"]["received"].as_u64().unwrap();
        assert!(refused > 0 && came > 0 && refused + came <= 300, "{refused} {came}");
        let refusal = near["faults"]["refusal"].as_str().unwrap();
        assert!(refusal.contains("No buffer space"), "{refusal}");
        assert_eq!(segment(&near, "queue to wire")["whole"]["n"], 300 - refused);
        assert_eq!(near["faults"]["without_stamp"], 0);
        for name in ["sent to queue", "queue to wire", "wire to kernel"] {
            let whole = &segment(&far, name)["whole"];
            assert_eq!(whole["negative"], 0, "{name}: {whole}");
        }
    });
}
