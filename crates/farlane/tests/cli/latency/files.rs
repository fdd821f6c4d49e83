//! Rows, documents and pages, and runs that end early.

use super::{Listener, segment, talk};
use crate::support::parquet::rows;
use crate::support::process::wait_until;
use crate::support::program::{fails, farlane, page, parsed, scratch, succeeds, text};
use std::net::SocketAddr;
use std::time::Duration;

#[test]
fn ctrl_c_ends_both_with_their_reports() {
    let listener = Listener::udp(&[]);
    let arguments = ["latency", "talk", &listener.address, "--json", "--count", "100000"];
    let talker = farlane(&arguments).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    let pid = rustix::process::Pid::from_child(&talker);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = talker.wait_with_output().unwrap();
    assert!(output.status.success());
    let near = parsed(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(near["ended"], "interrupted");
    let far = listener.report();
    assert_eq!(
        (&far["ended"], &far["counts"]["lost"]),
        (&"done".into(), &0.into()),
        "it said how many"
    );
    let idle = Listener::udp(&[]);
    let address: SocketAddr = idle.address.parse().unwrap();
    idle.interrupt();
    let report = idle.report();
    assert_eq!((&report["ended"], &report["counts"]["sent"]), (&"interrupted".into(), &0.into()));
    assert!(address.port() > 0);
}

#[test]
fn every_frame_is_a_row_and_runs_stand_side_by_side() {
    let folder = scratch("latency");
    let path = |name: &str| text(&folder.join(name));
    let mut documents = Vec::new();
    for label in ["idle", "loaded"] {
        let (csv, parquet) = (path(&format!("{label}.csv")), path(&format!("{label}.parquet")));
        let listener = Listener::udp(&[
            "--label",
            label,
            "--band",
            "0,1s",
            "--csv",
            &csv,
            "--parquet",
            &parquet,
        ]);
        talk(&listener.address, &["--count", "700"]);
        let report = listener.report();
        assert_eq!(segment(&report, "end to end")["whole"]["in_band"], 700);
        let csv = std::fs::read_to_string(csv).unwrap();
        let (rows, about) = rows(parquet.as_ref());
        assert_eq!((csv.lines().count(), rows.len()), (701, 700));
        let first: Vec<_> = csv.lines().nth(1).unwrap().split(',').collect();
        assert_eq!(first, rows[0]);
        assert!(csv.starts_with("sequence,scheduled_ns,woken_ns,sent_ns,queued_ns,driver_ns,"));
        assert_eq!(
            (&about["farlane.label"][..], &about["farlane.interval_ns"][..]),
            (label, "2000000")
        );
        let document = path(&format!("{label}.json"));
        std::fs::write(&document, report.to_string()).unwrap();
        documents.push(document);
    }
    let html = path("both.html");
    let shown = succeeds(&["latency", "compare", &documents[0], &documents[1], "--html", &html]);
    for name in ["end to end, compared", "idle", "loaded", "100.00 %"] {
        assert!(shown.contains(name), "no {name} in {shown}");
    }
    let page = page(&html);
    for name in [
        "end to end along time",
        "loaded: listened on",
        "Stable range, by sent to kernel",
        "end to end, runs along time",
        "end to end, cumulative distributions",
        "loaded, longest",
    ] {
        assert!(page.contains(name), "no {name}");
    }
    std::fs::write(&documents[1], "{}").unwrap();
    let wrong = ["latency", "compare", &documents[0], &documents[1]];
    fails(&wrong, &["loaded.json", "not a document of `farlane latency talk`"]);
}

/// Both ends are killed while they run. Their files have all rows until then, in order, including
/// stamps that came with later frames.
#[test]
fn killed_programs_leave_their_rows() {
    let folder = scratch("latency-killed");
    let [near, far] = ["near.csv", "far.csv"].map(|name| text(&folder.join(name)));
    let listener = Listener::udp(&["--reflect", "--csv", &far]);
    let options = ["--interval", "2ms", "--count", "1000000", "--reflect", "--csv", &near];
    let arguments = [&["latency", "talk", &listener.address, "--json"], &options[..]].concat();
    let mut talker = farlane(&arguments).spawn().unwrap();
    let rows = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    wait_until("rows of both ends", || {
        std::thread::sleep(Duration::from_millis(100));
        [&near, &far].iter().all(|path| rows(path).lines().count() > 100)
    });
    talker.kill().unwrap();
    talker.wait().unwrap();
    drop(listener);
    for (path, last) in [(&near, "back_received_ns"), (&far, "returned_ns")] {
        let text = rows(path);
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let lines: Vec<_> = lines.collect();
        let numbers: Vec<u64> = lines.iter().map(|cells| cells[0].parse().unwrap()).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{path}: {numbers:?}");
        for name in ["driver_ns", last] {
            let column = names.iter().position(|known| *known == name).unwrap();
            let known = lines.iter().filter(|cells| !cells[column].is_empty()).count();
            assert!(known * 2 > lines.len(), "{path}: {known} rows of {} have {name}", lines.len());
        }
    }
}
