//! Mistakes, refused settings, and frames of strangers.

use super::{Listener, talk};
use crate::support::isolated::isolated;
use crate::support::program::{fails, farlane, is_refused, is_wrong_usage, one_line, parsed, run};
use latency::frame::{ETHERTYPE, Frame, Kind, LEAST, Window};
use latency_linux::{Port, Remote};
use linux::{Interface, Mac, Namespace};
use serde_json::Value;
use std::net::UdpSocket;
use std::process::{Command, Output};
use std::time::Duration;

#[test]
fn a_listener_answers_its_own_run_alone_and_counts_strangers() {
    let listener = Listener::udp(&["--reflect", "--run", "abc"]);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    stranger.send_to(b"hello", &listener.address).unwrap();
    let allowed = ["--count", "5", "--reflect", "--run", "abd", "--allow-losses", "5"];
    let other = talk(&listener.address, &allowed);
    assert_eq!((&other["counts"]["received"], &other["counts"]["lost"]), (&0.into(), &5.into()));
    let near = talk(&listener.address, &["--count", "5", "--reflect", "--run", "abc"]);
    assert_eq!(near["counts"]["received"], 5);
    assert!(stranger.recv_from(&mut [0; 2048]).is_err(), "nobody answers a stranger");
    let far = listener.report();
    // Strangers are one datagram, and five data frames of another run with three to five End
    // frames.
    let strangers = far["faults"]["strangers"].as_u64().unwrap();
    assert!((9..=11).contains(&strangers), "{strangers}");
    let first = far["faults"]["first_stranger"].as_str().unwrap();
    assert!(first.ends_with("5 bytes are too short for a frame: the minimum is 104"), "{first}");
}

#[test]
fn mistakes_are_named() {
    let talk = |options: &[&'static str]| [&["latency", "talk", "localhost"], options].concat();
    is_refused(
        &talk(&["--interval", "5s"]),
        &["the interval is 5000000000 ns", "1 to 4000000000 ns"],
    );
    let slot = ["--cycle", "500us", "--window", "400us,200us"];
    is_refused(&talk(&slot), &["the window's opening is 400000 ns", "0 to 300000 ns"]);
    let slot = ["--cycle", "500us", "--window", "100us,200us"];
    is_refused(
        &talk(&slot),
        &["frame 0 is due 0 ns into its cycle", "100000 to 300000 ns; allow it with --outside"],
    );
    is_refused(&talk(&["--vlan", "5"]), &["--vlan applies only to Ethernet frames"]);
    fails(&talk(&["--interval", "1ns"]), &["an interval of 1 ns is too short here"]);
    fails(&["latency", "talk", "raw:nosuch0,02:00:5e:10:00:01"], &["no interface 'nosuch0'"]);
    fails(&["latency", "listen", "raw:nosuch0"], &["no interface 'nosuch0'"]);
    is_refused(&["latency", "listen", "0.0.0.0:0", "--reflect"], &["--insecure"]);
    let nobody = ["latency", "listen", "127.0.0.1:0", "--wait", "50ms"];
    let output = run(&nobody);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.contains("no frame of a talker arrived at 127.0.0.1:0 within 50000000 ns"),
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

/// Twenty frames are lost. Without `--reflect` the talker counts losses by ICMP messages.
#[test]
fn a_talker_without_a_listener_fails_unless_the_losses_are_allowed() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let talk = |options: &[&str]| {
        run(&[&["latency", "talk", &free, "--count", "20", "--json"], options].concat())
    };
    for (reflect, how) in [(&[][..], "reach"), (&["--reflect"], "come back from")] {
        let output = talk(reflect);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        let says = format!("farlane: 20 of 20 frames did not {how} {free}: nobody listens there");
        assert!(errors.lines().any(|line| line.starts_with(&says)), "{errors}");
        let document = parsed(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(document["faults"]["unreachable"], 20);
        assert_eq!(talk(&[reflect, &["--allow-losses", "19"]].concat()).status.code(), Some(1));
        let allowed = talk(&[reflect, &["--allow-losses", "20"]].concat());
        assert!(allowed.status.success(), "{allowed:?}");
    }
}

/// Starts a listener that returns the frames whose number `answers` selects, until the run ends.
/// Returns the address.
fn reflector(answers: fn(u64) -> bool) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        loop {
            let (bytes, from) = socket.recv_from(&mut buffer).unwrap();
            let frame = Frame::decode(&buffer[..bytes]).unwrap();
            match frame.kind {
                Kind::End => return,
                _ if !answers(frame.sequence) => {}
                _ => {
                    let mut back = Vec::new();
                    frame.reflected([None; 4], None).encode(&mut back);
                    socket.send_to(&back, from).unwrap();
                }
            }
        }
    });
    address
}

#[test]
fn a_talker_fails_when_all_frames_or_more_than_allowed_are_lost() {
    let talk = |answers: fn(u64) -> bool, options: &[&str]| {
        let to = reflector(answers);
        let count = ["latency", "talk", &to, "--count", "30", "--reflect", "--json"];
        let output = run(&[&count[..], options].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let most = |number: u64| !number.is_multiple_of(10);
    assert_eq!(talk(most, &[]).0, Some(0), "some losses are no failure");
    assert_eq!(talk(most, &["--allow-losses", "3"]).0, Some(0));
    for (answers, options, lost) in
        [(most as fn(u64) -> bool, &["--allow-losses", "2"][..], 3), (|_| false, &[], 30)]
    {
        let (status, errors) = talk(answers, options);
        let says = format!("farlane: {lost} of 30 frames did not come back from 127.0.0.1:");
        assert!(status == Some(1) && errors.contains(&says), "{errors}");
    }
}

/// The program runs as root without capabilities and limits. Each setting without permission is a
/// row that names the missing permission, and the run continues. Without raw sockets there is no
/// run.
#[test]
fn missing_capability_is_named_per_setting() {
    let name = "cli::latency::refusals::missing_capability_is_named_per_setting";
    isolated(name, |home| {
        home.run("ip link set lo up").unwrap();
        let listener = Listener::udp(&[]);
        let wanted =
            ["--fifo", "80", "--lock-memory", "--priority", "7", "--hardware", "lo", "--json"];
        let talk = ["latency", "talk", &listener.address, "--count", "20"];
        let output = without_permission(&[&talk[..], &wanted].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let near = parsed(std::str::from_utf8(&output.stdout).unwrap());
        for (name, needs) in [
            ("SCHED_FIFO", "CAP_SYS_NICE"),
            ("locked memory", "CAP_IPC_LOCK"),
            ("priority", "CAP_NET_ADMIN"),
            ("hardware stamps", "CAP_NET_ADMIN"),
        ] {
            let all = near["settings"].as_array().unwrap();
            let row = all.iter().find(|row| row["name"] == name).unwrap();
            let note = row["note"].as_str().unwrap();
            assert!(row["in_force"] == false && note.contains(needs), "{row}");
            assert!(errors.contains(&format!("{name} ")), "no {name} in {errors}");
        }
        assert_eq!(listener.report()["counts"]["received"], 20);
        for end in [&["talk", "raw:lo,02:00:5e:10:00:01"][..], &["listen", "raw:lo"]] {
            let output = without_permission(&[&["latency"], end].concat());
            let line = one_line(&output);
            assert!(line.contains("raw Ethernet needs CAP_NET_RAW"), "{line}");
            assert_eq!(output.status.code(), Some(1));
        }
    });
}

/// Runs the program without capabilities (setpriv(1)), and with limits of 0 (locked memory,
/// real-time priority).
fn without_permission(arguments: &[&str]) -> Output {
    let program = farlane(arguments);
    let shell = "ulimit -l 0; ulimit -r 0; exec setpriv --inh-caps=-all --bounding-set=-all \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh"]).arg(program.get_program()).args(program.get_args());
    command.output().unwrap()
}

/// The listener receives frames that are no frames of `farlane latency`, frames of another
/// EtherType, and frames of its run from another station. It answers only the talker of its run.
#[test]
fn strangers_on_the_cable_are_counted() {
    isolated("cli::latency::refusals::strangers_on_the_cable_are_counted", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let mac = away.enter(|| Interface::find("far0").unwrap().mac).unwrap();
        let options = ["--run", "abc", "--reflect", "--insecure"];
        let listener = away.enter(|| Listener::start("raw:far0", &options)).unwrap();
        let own = Interface::find("near0").unwrap();
        let mut other = own;
        other.mac = Mac([2, 0, 0, 0, 0, 9]);
        let port = |interface, ethertype| Port::ethernet(interface, ethertype).unwrap();
        let (talker, station) = (port(&own, ETHERTYPE), port(&other, ETHERTYPE));
        let send = |port: &Port, bytes: &[u8]| {
            port.send(bytes, Remote::Ethernet(mac), None, None).unwrap();
        };
        let frame = |kind, sequence| {
            let (mut bytes, more, window) = (Vec::new(), [0; 4], Window::default());
            let [scheduled, woken, sent] = [linux::time::now(); 3];
            let (size, interval) = (LEAST as u16, 1_000_000);
            Frame {
                kind,
                size,
                run: 0xabc,
                sequence,
                scheduled,
                woken,
                sent,
                more,
                window,
                interval,
            }
            .encode(&mut bytes);
            bytes
        };
        for _ in 0..3 {
            send(&talker, &[7; 50]);
            send(&port(&own, ETHERTYPE + 1), &frame(Kind::Data, 0));
        }
        send(&talker, &frame(Kind::Data, 0));
        send(&station, &frame(Kind::Data, 1));
        send(&station, &frame(Kind::End, 9));
        send(&talker, &frame(Kind::End, 1));
        let far = listener.report();
        assert_eq!([&far["counts"]["sent"], &far["counts"]["received"]], [1, 1], "{far}");
        assert_eq!(far["faults"]["strangers"], 3 + 2, "{far}");
        let mut buffer = [0; 2048];
        let answers = std::iter::from_fn(|| {
            let received = talker.receive(&mut buffer).unwrap()?;
            Some(Frame::decode(&buffer[talker.payload_at()..][..received.bytes]).unwrap())
        });
        // The End frame gets an answer too. The answers to the data frame have sequence number 0.
        let answers: Vec<_> = answers.filter(|answer| answer.sequence == 0).collect();
        assert!(answers.len() == 1 && answers[0].kind == Kind::Reflected, "{answers:?}");
    });
}

/// If only frames of strangers arrive, the error has their number.
#[test]
fn listener_with_only_foreign_frames_reports_count() {
    let listener = Listener::udp(&["--wait", "4s", "--run", "abc"]);
    talk(&listener.address, &["--count", "5", "--run", "abd"]);
    let errors = listener.fails();
    let strangers = errors.rsplit_once("other frames: ").unwrap().1.trim();
    assert!((8..=10).contains(&strangers.parse().unwrap()), "{errors}");
}

/// No machine has CPU 1000, `lo` has no hardware stamps, and launch times need the queueing
/// discipline etf.
#[test]
fn refusals_are_reported_and_the_run_goes_on() {
    let listener = Listener::udp(&[]);
    let wanted = ["--cpu", "1000", "--hardware", "lo", "--launch", "1ms", "--count", "20"];
    let near = talk(&listener.address, &wanted);
    let refused: Vec<&Value> = near["settings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["in_force"] == false)
        .collect();
    let names: Vec<&str> = refused.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hardware stamps", "CPU", "launch times"]);
    assert!(refused[1]["note"].as_str().unwrap().contains("no CPU '1000'"));
    assert!(refused[2]["note"].as_str().unwrap().starts_with("ignored: a probe"), "{}", refused[2]);
    assert_eq!(listener.report()["counts"]["received"], 20);
}
