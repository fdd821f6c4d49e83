//! Traces of a host that pushes.

use super::build::{Traces, hashed, traces_of};
use super::commands;
use crate::commands::tests::{Drive, Testbed, io, pushed};
use crate::commands::view::{self, Options};
use crate::commands::{Command, Print, PushedBytes, StepKind};
use crate::trace::chart::chart;
use crate::trace::{Anomalies, PushTotals, Run, Stage, Statistics, by_stage, path};
use wire::push::Record;
use wire::trace::{PayloadKey, Record as Recorded};

const KEY: PayloadKey = PayloadKey::new([5; 32]);
const SECRET: u8 = 0x5a;
const PAGES: [u64; 3] = [0x3f_0000, 0x40_0000, 0x41_0000];

fn list() -> Vec<u8> {
    PAGES[1..].iter().flat_map(|page| page.to_le_bytes()).collect()
}

/// Two writes of 1.5 KiB and 8.5 KiB with one doorbell. The entries are in front, each write has
/// all its data. Three messages have the data of the first write, and the list and data of the
/// second.
fn writes(testbed: &mut Testbed, drive: &mut Drive) {
    let entries = [io(1, 4, 0, 3, 0x3e_0000, 0), io(1, 5, 8, 17, PAGES[0], 0x50_0000)];
    let mut records = vec![testbed.queue(drive, 1)];
    records.extend(testbed.entries(drive, 1, &entries));
    records.push(pushed(1, 4, 0x3e_0000, &[SECRET; 1536]));
    // A list whose second entry is split between two messages.
    records.push(pushed(1, 5, 0x50_0000, &list()[..12]));
    testbed.push(drive, &records);
    let data = |page: usize, length| pushed(1, 5, PAGES[page], &[SECRET; 4096][..length]);
    testbed.push(drive, &[pushed(1, 5, 0x50_000c, &list()[12..]), data(0, 3000)]);
    let rest = pushed(1, 5, PAGES[0] + 3000, &[SECRET; 1096]);
    testbed.push(drive, &[rest, data(1, 2048)]);
    let rest = pushed(1, 5, PAGES[1] + 2048, &[SECRET; 2048]);
    testbed.push(drive, &[rest, data(2, 512)]);
    let first = testbed.submit(drive, 1, &entries);
    testbed.read_port(drive, drive.sq(1) + u64::from(first) * 64, &entries[0].encode());
    testbed.read_port(drive, drive.sq(1) + u64::from(first + 1) * 64, &entries[1].encode());
    testbed.read_port(drive, 0x3e_0000, &[SECRET; 1536]);
    testbed.read_port(drive, 0x50_0000, &list());
    for (page, length) in PAGES.into_iter().zip([4096, 4096, 512]) {
        testbed.read_port(drive, page, &vec![SECRET; length]);
    }
    testbed.post(drive, 1, 1, 4, 0);
    testbed.complete(drive, 1, 1, 5, 0);
    testbed.take(drive, 1, 2);
}

/// A write whose entry and first half of data the drive reads from the host nevertheless.
fn missed(testbed: &mut Testbed, drive: &mut Drive) {
    let entry = io(1, 9, 64, 8, 0x60_0000, 0);
    let mut records = testbed.entries(drive, 1, &[entry]);
    records.push(pushed(1, 9, 0x60_0000, &[SECRET; 3072]));
    testbed.push(drive, &records);
    testbed.push(drive, &[pushed(1, 9, 0x60_0c00, &[SECRET; 1024])]);
    testbed.begin(drive, 1, &[entry]);
    testbed.read_port(drive, 0x60_0000, &[SECRET; 2048]);
    testbed.read_host(drive, 0x60_0800, &[SECRET; 2048]);
    testbed.end(drive, 1, 9, 0);
}

fn both(testbed: &mut Testbed, drive: &mut Drive) {
    writes(testbed, drive);
    missed(testbed, drive);
}

fn here(traces: &Traces, host: bool) -> (Run, Vec<Command>, Anomalies) {
    let path = if host { &traces.host } else { &traces.device };
    let run = Run::open(std::slice::from_ref(path)).unwrap();
    let (commands, anomalies) = commands(&run);
    assert!(anomalies.unexplained.is_empty(), "{}", anomalies.text());
    (run, commands, anomalies)
}

fn last<const N: usize>(commands: Vec<Command>) -> [Command; N] {
    let at = commands.len() - N;
    commands[at..].to_vec().try_into().expect("as many")
}

const FIRST: PushedBytes = PushedBytes { entry: 64, lists: 0, data: 1536 };
const SECOND: PushedBytes = PushedBytes { entry: 64, lists: 16, data: 8704 };
const MISSED: PushedBytes = PushedBytes { entry: 0, lists: 0, data: 2048 };

#[test]
fn every_tap_reports_answers_from_push() {
    let traces = traces_of(61, both);
    for run in [traces.run(), here(&traces, true).0, here(&traces, false).0] {
        let (found, anomalies) = commands(&run);
        assert!(anomalies.unexplained.is_empty(), "{}", anomalies.text());
        let found = last::<3>(found);
        let answered = found.each_ref().map(Command::answered_from_push);
        assert_eq!(answered, [FIRST, SECOND, MISSED]);
        assert!(found.iter().all(|command| command.is_whole() && command.end.is_some()));
    }
    // The function sees these reads answered from push: of the first write a fetch and 3 reads of
    // data; of the second a fetch, a read of the list and 17 reads of data; of the third 4 of 8
    // reads.
    let (run, found, _) = here(&traces, false);
    let [first, second, missed] = last(found);
    let requests = |command: &Command| {
        let all = command.steps.iter().filter(|step| step.from_push && !step.kind.is_answer());
        all.count()
    };
    assert_eq!([&first, &second, &missed].map(requests), [1 + 3, 1 + 1 + 17, 4]);
    assert_eq!(run.root().index.from_push, (4 + 19 + 4, 64 + 1536 + 64 + 16 + 8704 + 2048));
}

#[test]
fn recording_omits_only_user_data_of_pushes() {
    let traces = hashed(|_, tlp| tlp.clone(), [KEY; 2], both);
    for path in [&traces.host, &traces.device] {
        let bytes = std::fs::read(path).unwrap();
        assert!(!bytes.windows(4).any(|four| four == [SECRET; 4]), "{}", path.display());
    }
    let (run, found, _) = here(&traces, true);
    let mut plain = found.clone();
    for command in &mut plain {
        command.prints.clear();
        command.unrecorded = 0;
    }
    assert_eq!(plain, traces.testbed.commands, "as from whole TLPs");
    let [first, second, missed] = last(found);
    assert_eq!([&first, &second].map(|c| c.unrecorded), [1536, 8704]);
    // The first message has one piece, whose hash is the hash of its only print.
    let print = Print { offset: 0, bytes: 1536, print: KEY.hash(&[SECRET; 1536]) };
    assert_eq!(first.whole_prints(), Some(vec![print]));
    assert!(second.data_hash().is_some() && second.data_hash() != first.data_hash());
    // Half of the data arrived twice.
    assert_eq!((missed.unrecorded, missed.data_hash()), (4096, None));
    // The recording keeps 28 + 2 * 80 bytes of the first message, then the header of data, then
    // header and list. Of the second it keeps header, list and header; of the others one or two
    // headers.
    let mut kept = Vec::new();
    let read = run.root().file.read(|item| {
        let crate::trace::Item::Record(timed) = item else { panic!("a gap") };
        if let Recorded::Tlp { bytes, hash: Some(_), holes, .. } = timed.record
            && bytes[0] == 0x72
        {
            kept.push((bytes.len() - 16, holes.parts(bytes.len()).len()));
        }
    });
    assert_eq!(read.unwrap(), 0);
    let first = 28 + 2 * 80 + 16;
    assert_eq!(
        kept,
        [(first + 16 + 12, 2), (16 + 4 + 16, 1), (16 + 16, 2), (16 + 16, 2), (80 + 16, 1), (16, 1)]
    );
}

/// Segments and stages add up to the time from the first push.
#[test]
fn the_time_of_a_pushed_command_has_no_fetch_in_it() {
    let traces = traces_of(63, writes);
    let run = traces.run();
    let [first, second] = last(commands(&run).0);
    for command in [&first, &second] {
        let kinds: Vec<_> = command.steps.iter().map(|step| step.kind).collect();
        assert_eq!(kinds[0], StepKind::Push);
        assert!(!kinds.contains(&StepKind::SqeFetch) && !kinds.contains(&StepKind::DataRead));
        let total = command.duration_ns().unwrap();
        let intervals = crate::commands::intervals::split(command);
        assert_eq!(intervals.iter().map(|interval| interval.ns).sum::<u64>(), total);
        let names: Vec<_> = intervals.iter().map(|interval| interval.name).collect();
        let begin =
            ["pushed in front of the doorbell", "data sent to completion entry: a round trip"];
        assert_eq!(names[..2], begin);
        let stages = by_stage(&path(&run, command));
        assert_eq!(stages.iter().map(|(_, ns)| ns).sum::<u64>(), total);
        // Doorbell and completion entry cross the network once each.
        assert!(stages.contains(&(Stage::Network, 10_000)), "{stages:?}");
    }
    // Four messages 20 us apart, then the doorbell.
    assert_eq!(crate::commands::intervals::split(&first)[0].ns, 80_000);
    let traffic = (first.traffic.tlps_down, second.traffic.tlps_down);
    assert_eq!(traffic, (1 + 2, 4 + 2), "messages, doorbells");
}

#[test]
fn invalid_push_is_an_anomaly() {
    let traces = traces_of(65, |testbed, drive| {
        let mut records = testbed.entries(drive, 1, &[io(2, 3, 0, 1, 0x10_0000, 0)]);
        records.push(Record::Bytes {
            queue: 1,
            command: 3,
            address: 0x10_0000,
            bytes: bytes::Bytes::new(),
        });
        testbed.push(drive, &records);
    });
    let (_, anomalies) = commands(&traces.run());
    assert_eq!(anomalies.unexplained["push that is not valid"].count, 1);
}

fn golden(name: &str, text: &str) {
    let path = format!("{}/src/trace/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("FARLANE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{name}");
}

/// The printed views at the root port and at the function.
#[test]
fn views_of_pushed_commands() {
    let traces = traces_of(67, both);
    let mut text = String::new();
    for host in [true, false] {
        let (run, found, _) = here(&traces, host);
        let mut statistics = Statistics::default();
        let shown = last::<3>(found);
        for command in &shown {
            statistics.add(command, &[]);
            text += &view::transaction(command, Options::default());
        }
        text += &statistics.table();
        let (counters, _) = run.analyse(|_, _| {}).unwrap();
        text += &format!("{}\n\n", run.push_totals(&counters).lines().join("\n"));
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    golden("push.txt", &text);
    let run = traces.run();
    let [.., missed] = last::<3>(commands(&run).0);
    golden("push.svg", &chart(&run, &missed));
    // With both traces: five messages with 2 * 64 + 1536 + 16 + 8704, and 64 + 4096 bytes. 27 reads
    // of 12432 bytes hit. One entry, four reads of 512 bytes and five reads of the bring-up went to
    // the host.
    let (counters, _) = run.analyse(|_, _| {}).unwrap();
    let totals = run.push_totals(&counters);
    let pushed = 128 + 1536 + 16 + 8704 + 64 + 4096;
    let hits = 128 + 1536 + 16 + 8704 + 2048;
    assert_eq!(
        totals,
        PushTotals {
            messages: Some(6),
            pushed_bytes: Some(pushed),
            hits: Some(27),
            hit_bytes: Some(hits),
            misses: 1 + 4 + 3,
            unused_bytes: Some(pushed - hits),
            not_pushed: Vec::new(),
        }
    );
}
