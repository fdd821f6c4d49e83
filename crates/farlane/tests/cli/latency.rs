//! Talker and listener of `farlane latency`. Times depend on the machine: no test looks at how
//! long anything took.

use crate::support::isolated::isolated;
use crate::support::parquet::rows;
use crate::support::process::wait_until;
use crate::support::program::{
    fails, farlane, is_wrong_usage, page, parsed, scratch, succeeds, text,
};
use live::net::{Interface, Namespace};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A listener, killed if a test forgets it.
struct Listener {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
    address: String,
}

impl Listener {
    fn start(address: &str, options: &[&str]) -> Self {
        let arguments =
            [&["latency", "listen", address, "--json", "--wait", "60s"], options].concat();
        let mut child = farlane(&arguments).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut address = String::new();
        // What is refused is said first.
        while !address.starts_with("listening on ") {
            address.clear();
            assert!(errors.read_line(&mut address).unwrap() > 0, "the listener ended early");
        }
        let address = address.trim_end().replace("listening on ", "");
        Self { child, errors, address }
    }

    fn udp(options: &[&str]) -> Self {
        Self::start("127.0.0.1:0", options)
    }

    /// Its document, after its end.
    fn report(mut self) -> Value {
        let (mut out, mut errors) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        assert!(self.child.wait().unwrap().success(), "{errors}");
        parsed(&out)
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn talk(address: &str, options: &[&str]) -> Value {
    let arguments = ["latency", "talk", address, "--json", "--interval", "2ms"];
    parsed(&succeeds(&[&arguments[..], options].concat()))
}

fn segment<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["segments"].as_array().unwrap();
    all.iter().find(|of| of["segment"] == name).unwrap_or_else(|| panic!("no {name}: {document}"))
}

fn kinds(document: &Value) -> Vec<&str> {
    let all = document["findings"].as_array().unwrap();
    all.iter().map(|of| of["kind"].as_str().unwrap()).collect()
}

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
        // The kernel begins to stamp a moment after it was asked.
        assert!(segment(document, "wire to kernel")["whole"]["n"].as_u64() > Some(100));
        // The driver's stamps of either end reach the other one in later frames, ends included.
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

/// The window opens 1.5 s after the frames are due: at once they come outside it. Then a relay keeps
/// them until it opens, as a gate does.
#[test]
fn frames_due_outside_their_windows_show_whether_something_held_them() {
    let base = live::latency::now() + 500_000_000;
    let opens = base + 1_500_000_000;
    let windows = ["--cycle", "4s", "--window", "1.5s,1.5s", "--outside", "--count", "20"];
    let base = base.to_string();
    let talk = |address: &str| talk(address, &[&windows[..], &["--base", &base]].concat());
    let listeners = [Listener::udp(&[]), Listener::udp(&[])];
    let mut held: Vec<Vec<u8>> = Vec::new();
    let relay = Relay::start(&listeners[1].address, move |number, bytes, far| {
        held.push(bytes.to_vec());
        if number.is_none_or(|number| number == 20) {
            while !live::latency::sleep_until(opens) {}
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

/// Passes datagrams on to a listener.
struct Relay {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// `pass` gets each datagram that came, by its number if it is a frame of data, and sends what
    /// is to go on.
    fn start(
        target: &str,
        mut pass: impl FnMut(Option<u64>, &[u8], &UdpSocket) + Send + 'static,
    ) -> Self {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        far.connect(target).unwrap();
        near.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let address = near.local_addr().unwrap();
        let ended = Arc::<AtomicBool>::default();
        let own = ended.clone();
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut number) = ([0; 2048], 0);
            while !own.load(Ordering::Relaxed) {
                let Ok((bytes, _)) = near.recv_from(&mut buffer) else { continue };
                // Kind 0 is data: the ends pass.
                let is_data = buffer[5] == 0;
                number += u64::from(is_data);
                pass(is_data.then_some(number), &buffer[..bytes], &far);
            }
        });
        Self { address, ended, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
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
            // The first one comes twice.
            for _ in 0..if number == Some(1) { 2 } else { 1 } {
                far.send(bytes).unwrap();
            }
        }
    });
    // The last one is lost too: only the talker's end says that it was sent.
    talk(&relay.address.to_string(), &["--count", "300"]);
    let far = listener.report();
    let dropped = dropped.load(Ordering::Relaxed);
    let counts = &far["counts"];
    assert_eq!(dropped, 30);
    assert_eq!((&counts["sent"], &counts["lost"]), (&300.into(), &dropped.into()), "{counts}");
    assert_eq!([&counts["duplicates"], &counts["longest_loss"], &counts["reordered"]], [1, 1, 0]);
}

/// Forty frames are held back until the last of them has come, and then sent at once.
#[test]
fn frames_that_were_held_back_are_a_stall() {
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
    let is_ours = |of: &&Value| {
        of["kind"] == "stall" && of["first"].as_u64() < Some(139) && of["last"].as_u64() >= Some(99)
    };
    let stall = far["findings"].as_array().unwrap().iter().find(is_ours);
    assert!(stall.is_some_and(|of| of["segment"] == "sent to kernel"), "{}", far["findings"]);
    assert_eq!(far["counts"]["lost"], 0);
}

#[test]
fn an_offset_of_one_clock_is_not_taken_for_latency() {
    // Both ways: latencies below zero, and latencies that look long.
    for offset in ["-40ms", "40ms"] {
        let listener = Listener::udp(&["--reflect", "--stamp-offset", offset]);
        let near = talk(&listener.address, &["--count", "100", "--reflect"]);
        let far = listener.report();
        let proven = near["clock"]["proven_ns"].as_u64().unwrap();
        assert!((10_000_000..=40_000_000).contains(&proven), "{offset}: {proven}");
        assert!(kinds(&near).contains(&"clock-offset"), "{offset}: {near}");
        for name in ["end to end", "back to application"] {
            assert_eq!(segment(&near, name)["caution"], "no latency: the clocks are apart");
        }
        for name in ["round trip", "turn at the listener"] {
            assert_eq!(segment(&near, name)["caution"], "", "one clock measures it");
        }
        // Nothing came back to the listener, which has another clock.
        assert_eq!(far["clock"]["source"], "unknown", "{far}");
        if offset == "40ms" {
            let caution = &segment(&far, "sent to kernel")["caution"];
            assert_eq!(caution, "holds the clock error, which is not known");
        } else {
            let one_way = segment(&far, "sent to kernel");
            assert_eq!(one_way["caution"], "no latency: the clocks are apart");
            assert_eq!(one_way["whole"]["n"], one_way["whole"]["negative"]);
        }
    }
}

/// One of two ends knows the leap seconds: named with and without frames that come back, whichever
/// end it is.
#[test]
fn ends_that_are_the_leap_seconds_apart_are_told_so() {
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
            let apart = all.iter().find(|of| of["kind"] == "clock-offset");
            let evidence = apart.unwrap_or_else(|| panic!("{document}"))["evidence"].as_str();
            assert!(evidence.unwrap().contains("37 s apart: only one knows TAI"), "{evidence:?}");
            let caution = &segment(&document, "end to end")["caution"];
            assert_eq!(caution, "no latency: the clocks are apart", "{document}");
        }
    }
}

#[test]
fn a_listener_answers_its_own_run_alone_and_counts_strangers() {
    let listener = Listener::udp(&["--reflect", "--run", "abc"]);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    stranger.send_to(b"hello", &listener.address).unwrap();
    let other = talk(&listener.address, &["--count", "5", "--reflect", "--run", "abd"]);
    assert_eq!((&other["counts"]["received"], &other["counts"]["lost"]), (&0.into(), &5.into()));
    let near = talk(&listener.address, &["--count", "5", "--reflect", "--run", "abc"]);
    assert_eq!(near["counts"]["received"], 5);
    assert!(stranger.recv_from(&mut [0; 2048]).is_err(), "nobody answers a stranger");
    let far = listener.report();
    // One datagram, and of another run five frames, and three ends or one for each follow-up.
    let strangers = far["faults"]["strangers"].as_u64().unwrap();
    assert!((9..=11).contains(&strangers), "{strangers}");
    let first = far["faults"]["first_stranger"].as_str().unwrap();
    assert!(first.ends_with("5 bytes, fewer than the 104 of a frame"), "{first}");
}

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
fn tagged_frames_cross_a_cable_and_come_back() {
    isolated("cli::latency::tagged_frames_cross_a_cable_and_come_back", |home| {
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

/// A queue of one frame in front of 80 kbit/s: 142 bytes take it 14 ms, and most are dropped. The
/// kernel counts them too, so the stamps of the others have to be told apart by that.
#[test]
fn frames_that_a_queue_drops_are_refused_and_confuse_no_stamps() {
    isolated("cli::latency::frames_that_a_queue_drops_are_refused_and_confuse_no_stamps", |home| {
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
    fails(&wrong, &["loaded.json", "no document of `farlane latency talk`"]);
}

/// Both ends are killed while they run: their rows so far are there, in order, and those that came
/// with later frames too.
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
            let column = names.iter().position(|of| *of == name).unwrap();
            let known = lines.iter().filter(|cells| !cells[column].is_empty()).count();
            assert!(known * 2 > lines.len(), "{path}: {known} rows of {} have {name}", lines.len());
        }
    }
}

#[test]
fn mistakes_are_named() {
    let talk = |options: &[&'static str]| [&["latency", "talk", "localhost"], options].concat();
    fails(&talk(&["--interval", "5s"]), &["the interval is 5000000000 ns", "1 to 4000000000 ns"]);
    let slot = ["--cycle", "500us", "--window", "400us,200us"];
    fails(&talk(&slot), &["the window's opening is 400000 ns", "0 to 300000 ns"]);
    let slot = ["--cycle", "500us", "--window", "100us,200us"];
    fails(&talk(&slot), &["frame 0 is due 0 ns into its cycle", "100000 to 300000 ns; --outside"]);
    fails(&talk(&["--vlan", "5"]), &["--vlan is of Ethernet frames"]);
    fails(&talk(&["--interval", "1ns"]), &["an interval of 1 ns is too short here"]);
    fails(&["latency", "talk", "raw:nosuch0,02:00:5e:10:00:01"], &["no interface 'nosuch0'"]);
    fails(&["latency", "listen", "0.0.0.0:0", "--reflect"], &["--insecure"]);
    let nobody = ["latency", "listen", "127.0.0.1:0", "--wait", "50ms"];
    let output = crate::support::program::run(&nobody);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.contains("no frame of a talker came to 127.0.0.1:0 within 50000000 ns"),
        "{errors}"
    );
    for wrong in [
        &["--cycle", "1ms"][..],
        &["--outside"],
        &["--size", "103"],
        &["--priority", "8"],
        &["--fifo", "100"],
        &["--band", "2us,1us"],
        &["--launch", "1ms", "--spin", "1us"],
    ] {
        is_wrong_usage(&[&["latency", "talk", "localhost"], wrong].concat());
    }
}

/// A program in ptp4l's place, which answers in the profile of gPTP alone: 25 us from its master.
#[test]
fn what_ptp4l_says_is_the_clock_error() {
    let path = scratch("latency-ptp").join("ptp4l");
    let socket = UnixDatagram::bind(&path).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((bytes, from)) = socket.recv_from(&mut buffer) {
            if buffer[0] >> 4 != 1 {
                continue;
            }
            let mut answer = buffer[..bytes].to_vec();
            // A response, and TIME_STATUS_NP with gmPresent in domain 0 alone.
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
    fails(&nobody, &["ptp4l cannot be asked; /nonexistent/ptp4l: "]);
    let master = ["latency", "talk", "localhost", "--clock", &how, "--ptp-domain", "1"];
    fails(&master, &["follows no other clock"]);
    let clock = |how: &'static str| ["latency", "talk", "localhost", "--clock", how];
    fails(&clock("phc2sys=/dev/null"), &["--clock phc2sys=/dev/null: /dev/null is no hardware"]);
    fails(&clock("phc2sys=lo"), &["lo has no hardware clock"]);
    let both = ["--clock", "shared", "--clock", "ptp4l"];
    fails(&[&clock("ptp4l")[..3], &both[..]].concat(), &["only be ptp4l and phc2sys"]);
}

/// No machine has CPU 1000, `lo` has no hardware stamps, and launch times need etf.
#[test]
fn refusals_are_reported_and_the_run_goes_on() {
    let listener = Listener::udp(&[]);
    let wanted = ["--cpu", "1000", "--hardware", "lo", "--launch", "1ms", "--count", "20"];
    let near = talk(&listener.address, &wanted);
    let refused: Vec<&Value> =
        near["settings"].as_array().unwrap().iter().filter(|of| of["in_force"] == false).collect();
    let names: Vec<&str> = refused.iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hardware stamps", "CPU", "launch times"]);
    assert!(refused[1]["note"].as_str().unwrap().contains("no CPU 1000"));
    assert!(refused[2]["note"].as_str().unwrap().starts_with("ignored: a probe"), "{}", refused[2]);
    assert_eq!(listener.report()["counts"]["received"], 20);
}
