//! One node, two shells: the same run through the live shell and through the
//! simulator's gives the same TLPs, tunnel bytes and trace records.

mod live;
mod program;
mod script;
mod simulated;

use crate::support::folder;
use farlane::trace::{Item, TraceFile};
use pcie::Ram;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use wire::Instant;
use wire::trace::{LinkState, Record};

/// When, by which end of the link, and what was written.
type Write = (Instant, &'static str, Vec<u8>);

/// What came of a run.
struct Run {
    sent: Vec<Write>,
    /// Records by node, place and direction.
    records: BTreeMap<String, Vec<String>>,
    /// Host memory.
    memory: Vec<u8>,
}

impl Run {
    fn new(traces: [&Path; 2], mut sent: Vec<Write>, ram: &Ram) -> Self {
        let mut records = BTreeMap::new();
        for (node, path) in ["host", "device"].into_iter().zip(traces) {
            read(node, path, &mut records);
        }
        let memory = ram.get(script::RAM.0, script::RAM.1).expect("all of it").to_vec();
        // Of the same time, those of the device first.
        sent.sort_by_key(|(at, end, _)| (*at, *end));
        Self { sent, records, memory }
    }
}

fn read(node: &str, path: &Path, records: &mut BTreeMap<String, Vec<String>>) {
    let file = TraceFile::open(path).expect("a trace");
    let bad = file.read(|item| {
        let Item::Record(timed) = item else { panic!("{}: a gap", path.display()) };
        let place = match timed.record {
            Record::Tlp { tap, up, .. } => format!("{node} {tap:?} TLPs up {up}"),
            Record::Frame { tap, up, .. } | Record::Control { tap, up, .. } => {
                format!("{node} {tap:?} frames up {up}")
            }
            Record::Link { tap, .. } => format!("{node} {tap:?} link"),
            // Simulated drives tell no events.
            Record::Nvme { .. } | Record::Unknown { .. } => return,
        };
        let text = match timed.record {
            // Why a link is down, worlds say in their own words.
            Record::Link { state: LinkState::Down(_), .. } => "down".into(),
            record => format!("{record:02x?}"),
        };
        records.entry(place).or_default().push(text);
    });
    assert_eq!(bad.expect("a trace"), 0, "records that make no sense");
}

/// Says where two sequences part.
fn assert_same<T: PartialEq + Debug>(what: &str, simulated: &[T], live: &[T]) {
    let parts = simulated.iter().zip(live).position(|(one, other)| one != other);
    let at = parts.unwrap_or(simulated.len().min(live.len()));
    let from = at.saturating_sub(2);
    let shown = |all: &[T]| {
        let some = all[from..all.len().min(at + 4)].iter();
        some.map(|one| format!("\n{:.160}", format!("{one:02x?}"))).collect::<String>()
    };
    assert!(
        simulated == live,
        "{what}: {} and {} in all, number {at} differs;\nsimulated:{}\nlive:{}",
        simulated.len(),
        live.len(),
        shown(simulated),
        shown(live)
    );
}

#[test]
fn the_same_script_gives_the_same_run_in_both_shells() {
    let folder = folder::kept("parity");
    let simulated = simulated::run(&folder, script::LINK, program::whole);
    let live = live::run(&folder, script::LINK, program::whole).expect("it runs");
    assert!(simulated.sent.len() > 200, "the link is used");
    assert_same("writes into the link", &simulated.sent, &live.sent);
    let places = |run: &Run| run.records.keys().cloned().collect::<Vec<_>>();
    assert_eq!(places(&simulated), places(&live));
    for (place, records) in &simulated.records {
        assert_same(place, records, &live.records[place]);
    }
    assert!(simulated.memory == live.memory, "host memory differs");
}
