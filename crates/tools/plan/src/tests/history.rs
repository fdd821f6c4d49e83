//! Histories that are too short for the delays and losses of a stream's paths.

use super::*;

/// A plan with one frame per millisecond over two paths with equal delays, keys of the four cables,
/// and keys of the stream.
fn plan(cables: [&str; 4], stream: &str) -> String {
    let [shared, upper, lower, last] = cables;
    format!(
        "runtime = \"20s\"\n[link]\nrate = \"1G\"\nvlan = 1\n[nodes.a]\n[nodes.b]\n\
         [bridges.left]\n[bridges.upper]\n[bridges.lower]\n[bridges.right]\n\
         [cables.al]\na = \"a\"\nb = \"left\"\n{shared}\n\
         [cables.lu]\na = \"left\"\nb = \"upper\"\n{upper}\n\
         [cables.ll]\na = \"left\"\nb = \"lower\"\n{lower}\n\
         [cables.ur]\na = \"upper\"\nb = \"right\"\n[cables.lr]\na = \"lower\"\nb = \"right\"\n\
         {last}\n[cables.rb]\na = \"right\"\nb = \"b\"\n\
         [traffic.t]\nfrom = \"a\"\nto = \"b\"\ninterval = \"1ms\"\nlength = \"500B\"\n\
         [streams.s]\nfrom = \"a\"\nto = \"b\"\n\
         paths = [\"left > upper > right\", \"left > lower > right\"]\n\
         eliminate = [\"b\"]\n{stream}\n"
    )
}

fn stream_remarks(cables: [&str; 4], stream: &str) -> Vec<String> {
    let remarks = built(&plan(cables, stream)).remarks;
    remarks.iter().map(Remark::sentence).filter(|text| text.starts_with("stream s")).collect()
}

/// Returns the number of frames that arrived, of 20000 sent.
fn arrived(cables: [&str; 4], stream: &str) -> u64 {
    let planned = built(&plan(cables, stream));
    let report = sim::World::new(&planned.config).unwrap().run().unwrap();
    assert_eq!(report.streams[0].sent, 20_000);
    report.streams[0].arrived()
}

/// Frames are sent every millisecond, and the cable that all paths share loses one of ten: one loss
/// every 10 ms. After a loss the next number differs by two from the previous one, which exceeds a
/// history of 2, so frames are rogue for the reset time of 2 s. About 10 ms of every 2 s arrive. A
/// history of 8 fails after 7 losses in a row, every 10^4 s.
#[test]
fn a_lost_frame_ends_a_stream_whose_history_is_two() {
    let lossy = ["loss = \"10%\"", "", "", ""];
    let share = arrived(lossy, "");
    assert!((20..400).contains(&share), "{share}");
    assert_eq!(
        stream_remarks(lossy, ""),
        ["stream s at b: its paths lose a frame together about every 10 ms: with a history of 2 \
          numbers all that follows is rogue and discarded for 2s (802.1CB-2017, 7.4.3.4)"]
    );
    let share = arrived(lossy, "history = 8");
    assert!((17_800..18_200).contains(&share), "{share}");
    assert!(
        stream_remarks(lossy, "history = 8")[0]
            .contains("lose 7 frames in a row together about every")
    );
    // A history of 13 numbers fails only every 10^9 s.
    assert_eq!(stream_remarks(lossy, "history = 13"), [""; 0]);
}

/// A loss of a tenth on each path is a loss of a hundredth on both.
#[test]
fn losses_of_separate_paths_multiply() {
    let lossy = ["", "loss = \"10%\"", "corruption = \"10%\"", ""];
    assert!(stream_remarks(lossy, "")[0].contains("lose a frame together about every 100 ms"));
    assert_eq!(stream_remarks(["", "loss = \"10%\"", "", ""], ""), [""; 0]);
    assert_eq!(stream_remarks(["loss = \"10%\"", "", "", ""], "algorithm = \"match\""), [""; 0]);
}

/// From 7 to 9 ms both paths are cut: the frames of 7 and 8 ms are lost.
#[test]
fn a_cut_of_all_paths_ends_a_stream_whose_history_is_shorter() {
    let cut = ["", "cuts = [\"5ms..9ms\"]", "cuts = [\"6.9ms..12ms\"]", ""];
    assert_eq!(
        stream_remarks(cut, "history = 3"),
        [
            "stream s at b: all its paths are cut from 6900us to 9ms, for 2 frames: with a history of \
          3 numbers all that follows is rogue and discarded for 2s (802.1CB-2017, 7.4.3.4)"
        ]
    );
    // Seven frames arrive before the cut. Frames arrive again from 2006 ms on: 2 s after the last
    // of the seven.
    assert_eq!(arrived(cut, "history = 3"), 7 + 20_000 - 2_006);
    assert_eq!(arrived(cut, "history = 4"), 20_000 - 2);
    assert_eq!(stream_remarks(cut, "history = 4"), [""; 0]);
}

/// The slower path is a frame and a half later: after a loss the fast copies are two numbers ahead.
#[test]
fn lossy_fastest_path_makes_its_copies_rogue() {
    let late = ["", "loss = \"10%\"", "", "propagation = \"1.5ms\""];
    assert_eq!(
        stream_remarks(late, ""),
        [
            "stream s at b: the fastest path loses a frame about every 10 ms, and the slowest is up to \
          1 behind: with a history of 2 numbers the copies of the fastest are rogue from then on \
          (802.1CB-2017, 7.4.3.4)"
        ]
    );
    assert_eq!(stream_remarks(late, "history = 16"), [""; 0]);
    assert_eq!(stream_remarks(["", "", "", "propagation = \"1.5ms\""], ""), [""; 0]);
}

/// Frames of a burst follow without gaps and each burst is 1 ms after the previous one. A skew of
/// 200 us covers many frames of a burst, but no interval.
#[test]
fn frames_of_a_burst_count_towards_the_skew() {
    let late = ["", "", "", "propagation = \"200us\""];
    let burst = plan(late, "").replace("interval = \"1ms\"", "interval = \"1ms\"\nburst = 10");
    let remarks = built(&burst).remarks;
    assert!(remarks[0].sentence().contains("9 frames later, but the history has 2 numbers"));
}

/// From 1 s on only the lower path is left, with a loss of a tenth: one loss every 10 ms, and a few
/// frames of every 2 s arrive.
#[test]
fn losses_on_the_paths_that_are_left_end_a_stream() {
    let lossy = ["", "", "loss = \"10%\"", ""];
    let cut = ["", "cuts = [\"1s..\"]", lossy[2], ""];
    let rest = "of its 2 paths left and loses a frame about every 10 ms: with a history of 2 numbers \
                all that follows is rogue and discarded for 2s (802.1CB-2017, 7.4.3.4)";
    let open = [format!("stream s at b: from 1s on it has 1 {rest}")];
    assert_eq!(stream_remarks(cut, ""), open);
    let share = arrived(cut, "");
    assert!((1_000..1_400).contains(&share), "{share}");
    let dark = |outages: &str, cables| {
        let upper = format!("[bridges.upper]\noutages = [{outages}]");
        let remarks = built(&plan(cables, "").replace("[bridges.upper]", &upper)).remarks;
        let sentences = remarks.iter().map(Remark::sentence);
        sentences.filter(|text| text.starts_with("stream s")).collect::<Vec<_>>()
    };
    assert_eq!(dark("\"1s..\"", lossy), open);
    // Overlapping outages are one. One in ten frames is lost within 11 ms, not within 9.
    let twice = dark("\"1s..1.007s\", \"1.003s..1.011s\"", lossy);
    assert_eq!(twice, [format!("stream s at b: from 1s to 1011ms it has 1 {rest}")]);
    assert_eq!(dark("\"1s..1.009s\"", lossy), [""; 0]);
    // The lossy path is the one without power.
    assert_eq!(dark("\"1s..\"", ["", "loss = \"10%\"", "", ""]), [""; 0]);
}

/// Both paths are equally long, but a frame on the lower one may be 3 ms late.
#[test]
fn a_cable_that_delays_frames_makes_its_path_the_slower_one() {
    let late = "delay = \"1%\"\ndelay_up_to = \"3ms\"";
    for cables in [["", "loss = \"10%\"", late, ""], ["", late, "loss = \"10%\"", ""]] {
        let remarks = stream_remarks(cables, "");
        assert!(
            remarks[0].contains("every 10 ms, and the slowest is up to 3 behind"),
            "{remarks:?}"
        );
    }
    // All copies are late equally, or only the copy on the path without losses is early.
    assert_eq!(stream_remarks([late, "loss = \"10%\"", "", ""], ""), [""; 0]);
    assert_eq!(stream_remarks(["", &format!("loss = \"10%\"\n{late}"), "", ""], ""), [""; 0]);
}

/// A permanent cut is longer than the reset time, for any number of frames.
#[test]
fn a_cut_for_good_of_a_fast_stream_has_a_plan() {
    let cut = ["", "cuts = [\"1s..\"]", "cuts = [\"1s..\"]", ""];
    let fast = plan(cut, "").replace("\"1ms\"", "\"1ns\"\nburst = 100000");
    let remarks = built(&fast).remarks;
    assert!(!remarks.iter().any(|remark| remark.sentence().contains("all its paths")));
}
