//! The same run in the live runner and in the simulator's runner gives the same TLPs, tunnel bytes
//! and trace records.

mod live;
mod network;
mod program;
mod script;
mod simulated;
mod sockets;

use crate::support::folder;
use analysis::trace::{Item, TraceFile};
use node::push::Mode;
use pcie::Ram;
use script::Setup;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::rc::Rc;
use wire::tlp::Class;
use wire::trace::{LinkState, Record};
use wire::{Duration, Instant};

/// Time, end of the link, and written bytes.
type Write = (Instant, &'static str, Vec<u8>);

/// The result of a run.
struct Run {
    sent: Vec<Write>,
    /// Records as text, in order, by node, place and direction.
    records: BTreeMap<String, Vec<String>>,
    /// Contents of host memory.
    memory: Vec<u8>,
    /// Numbers of TLPs that the link carried down and up.
    tlps: [u64; 2],
}

impl Run {
    fn new(traces: [&Path; 2], mut sent: Vec<Write>, ram: &mut Ram, tlps: [u64; 2]) -> Self {
        let mut records = BTreeMap::new();
        for (node, path) in ["host", "device"].into_iter().zip(traces) {
            read(node, path, &mut records);
        }
        let memory = ram.get(script::RAM.0, script::RAM.1).expect("all of it").to_vec();
        // At equal times the device is first.
        sent.sort_by_key(|(at, end, _)| (*at, *end));
        Self { sent, records, memory, tlps }
    }
}

fn read(node: &str, path: &Path, records: &mut BTreeMap<String, Vec<String>>) {
    let file = TraceFile::open(path).expect("a trace");
    let bad = file.read(|item| {
        let timed = match item {
            Item::Record(timed) => timed,
            Item::Gap(lost) => panic!("{}: a gap of {lost:?}", path.display()),
        };
        let place = match timed.record {
            Record::Tlp { tap, up, .. } => format!("{node} {tap:?} TLPs up {up}"),
            Record::Frame { tap, up, .. } | Record::Control { tap, up, .. } => {
                format!("{node} {tap:?} frames up {up}")
            }
            Record::Link { tap, .. } => format!("{node} {tap:?} link"),
            Record::Fault { tap, .. } => format!("{node} {tap:?} faults"),
            // Simulated drives record no events.
            Record::Nvme { .. } | Record::NotPushed { .. } | Record::Unknown { .. } => return,
        };
        let text = match timed.record {
            // The worlds have different texts for the reason why a link is down.
            Record::Link { state: LinkState::Down(_), .. } => "down".into(),
            Record::Link { state: LinkState::Interrupted(_), .. } => "interrupted".into(),
            Record::Tlp { bytes, hash, .. } => format!("{:?} {bytes:02x?} {hash:x?}", class(bytes)),
            record => format!("{record:02x?}"),
        };
        records.entry(place).or_default().push(text);
    });
    assert_eq!(bad.expect("a trace"), 0, "records that make no sense");
}

/// Returns the class of a TLP by its first byte, Fmt and Type (PCIe Base 4.0, table 2-3).
fn class(bytes: &[u8]) -> Class {
    match bytes[0] {
        0x40 | 0x60 | 0x30..=0x37 | 0x70..=0x77 => Class::Posted,
        0x0a | 0x4a => Class::Completion,
        _ => Class::NonPosted,
    }
}

/// Fails with the first difference of two sequences.
fn assert_same<T: PartialEq + Debug>(sequence: &str, simulated: &[T], live: &[T]) {
    let parts = simulated.iter().zip(live).position(|(one, other)| one != other);
    let at = parts.unwrap_or(simulated.len().min(live.len()));
    let from = at.saturating_sub(2);
    let shown = |all: &[T]| {
        let some = all[from..all.len().min(at + 4)].iter();
        some.map(|one| format!("\n{:.160}", format!("{one:02x?}"))).collect::<String>()
    };
    assert!(
        simulated == live,
        "{sequence}: {} and {} in all, number {at} differs;\nsimulated:{}\nlive:{}",
        simulated.len(),
        live.len(),
        shown(simulated),
        shown(live)
    );
}

#[test]
fn the_same_script_gives_the_same_run_in_both_shells() {
    for push in [Mode::Off, Mode::default()] {
        same_run(push, Instant::ZERO);
    }
}

/// A counter of picoseconds with 64 bits ends during the first run. The second run begins at a time
/// beyond this range.
#[test]
fn live_nodes_run_as_at_their_start_after_213_days_and_after_ten_years() {
    let days_213 = Instant::from_ps(u64::MAX) - Duration::from_ms(100);
    for uptime in [days_213, Instant::from_ns(10 * 365 * 86_400 * 1_000_000_000)] {
        same_run(Mode::default(), uptime.next_multiple_of(script::TICK));
    }
}

fn same_run(push: Mode, uptime: Instant) {
    let folder = folder::kept(&format!("parity-{push}-{}", uptime.as_ns()));
    let setup = Setup::new(push);
    let simulated =
        simulated::run(&folder, setup, |bus, ram| program::whole(bus, ram, Instant::ZERO));
    let live = live::run(&folder, setup, uptime, |bus, ram| program::whole(bus, ram, uptime));
    let live = live.expect("it runs");
    assert!(simulated.sent.len() > 200, "the link is used");
    assert_same("writes into the link", &simulated.sent, &live.sent);
    let places = |run: &Run| run.records.keys().cloned().collect::<Vec<_>>();
    assert_eq!(places(&simulated), places(&live));
    for (place, records) in &simulated.records {
        assert_same(place, records, &live.records[place]);
    }
    assert!(simulated.memory == live.memory, "host memory differs");
    assert_eq!(messages(&live) > 100, push == Mode::All, "pushed messages");
}

/// The same faults act on the same commands, and the host sees the same of each.
#[test]
fn the_same_faults_have_the_same_outcome_in_both_worlds() {
    let folder = folder::kept("parity-faults");
    let setup = Setup { faults: script::FAULTS, ..Setup::new(Mode::default()) };
    let outcomes = [(); 2].map(|()| Rc::<RefCell<Vec<String>>>::default());
    let [first, second] = outcomes.clone();
    let simulated = simulated::run(&folder, setup, |bus, ram| program::faulty(bus, ram, first));
    let live =
        live::run(&folder, setup, Instant::ZERO, |bus, ram| program::faulty(bus, ram, second));
    let live = live.expect("it runs");
    let [first, second] = outcomes.map(|outcomes| outcomes.take());
    let expected = [
        "Write 0: WRITE_FAULT",
        "Read 0: UNRECOVERED_READ_ERROR, 0 bytes new",
        "Write 1: SUCCESS, late",
        "Read 1: SUCCESS, late, 8192 bytes new",
        "Write 2: CAPACITY_EXCEEDED",
        "Write 2: SUCCESS",
        "Read 2: SUCCESS, 8192 bytes new",
        "Read 2: SUCCESS, 7936 bytes new",
        "Read 2: SUCCESS, 8192 bytes new",
        "Write 2: timeout while waiting for an I/O command",
        "Read 2: SUCCESS, 8192 bytes new",
    ];
    assert_eq!(first, expected);
    assert_eq!(second, expected);
    let [simulated, live] = [simulated, live].map(|run| run.records);
    assert_eq!(simulated["device Tap(1) faults"].len(), script::FAULTS.len());
    assert_eq!(simulated["device Tap(1) faults"], live["device Tap(1) faults"]);
}

/// Returns the number of messages with data, routed by ID (PCIe Base 4.0, table 2-3), that the host
/// sent.
fn messages(run: &Run) -> usize {
    let down = run.records.iter().filter(|(place, _)| *place == "host Tap(0) TLPs up false");
    down.flat_map(|(_, all)| all).filter(|record| record.starts_with("Posted [72,")).count()
}

/// Returns the records of TLPs by place, direction and class.
fn by_class(run: &Run) -> BTreeMap<String, Vec<&str>> {
    let mut classes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (place, records) in run.records.iter().filter(|(place, _)| place.contains("TLPs")) {
        for record in records {
            let (class, bytes) = record.split_once(' ').expect("the class stands first");
            classes.entry(format!("{place} {class}")).or_default().push(bytes);
        }
    }
    classes
}

/// The software reads the media back into host memory, so that the comparison covers the media.
#[test]
fn real_sockets_keep_tlp_order_per_class_and_memory() {
    let folder = folder::kept("parity-sockets");
    let simulated = simulated::run(&folder, Setup::new(Mode::default()), |bus, ram| async move {
        program::sleep_until(&bus, script::BOOT).await;
        program::one_by_one(bus, ram).await;
    });
    let live = sockets::run(&folder, program::one_by_one).expect("it runs");
    let [first, second] = [&simulated, &live].map(by_class);
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (place, records) in &first {
        assert_same(place, records, &second[place]);
    }
    assert!(simulated.memory == live.memory, "host memory differs");
    assert_eq!(simulated.tlps, live.tlps, "TLPs down and up");
}
