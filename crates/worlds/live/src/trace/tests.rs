//! Files as they come out.

use super::{OnError, Settings, Tracer};
use crate::TraceSwitch;
use crate::clock::Clock;
use bytes::Bytes;
use rustix::fs::{MemfdFlags, SealFlags};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, channel};
use switch::tunnel::Report;
use testkit::Folder;
use wire::frame::{FrameReport, Header, Kind};
use wire::tlp::{MemoryRequest, Tlp, TraceId};
use wire::trace::{
    self, CHUNK_HEADER, ChunkHeader, ControllerState, NodeRole, NvmeEvent, PayloadKey, Record,
    Records, Tap,
};
use wire::{Bdf, Duration, Instant, Tag};

const KEY: PayloadKey = PayloadKey::new([7; 32]);

fn tlp(number: u64) -> Tlp {
    let request = MemoryRequest::for_bytes(Bdf::new(1, 0, 0), Tag::default(), number * 512, 512);
    Tlp::memory_write(request.unwrap(), Bytes::from(vec![number as u8; 512]))
}

/// Nothing goes wrong with a file.
fn no_error() -> OnError {
    Box::new(|error| panic!("{error}"))
}

fn record(ring: Option<u64>, snap: Option<u16>, tlps: u64) -> (Vec<u8>, u64) {
    let folder = Folder::new();
    let settings = Settings { path: folder.join("trace"), ring, snap, key: KEY };
    let tracer =
        Tracer::create(&settings, NodeRole::Host, 7, Clock::start(), None, no_error()).unwrap();
    for number in 0..tlps {
        tracer.tlp(Tap::ROOT_PORT, false, &tlp(number));
    }
    let report = tracer.finish().unwrap();
    tracer.tlp(Tap::ROOT_PORT, false, &tlp(0));
    assert_eq!(tracer.finish().unwrap().bytes, 0, "only once");
    (std::fs::read(settings.path).unwrap(), report.lost)
}

/// The addresses in the chunks of a file that is no ring, and what was lost.
fn addresses(file: &[u8]) -> (Vec<u64>, u64) {
    let (header, mut at) = trace::Header::decode(file).unwrap();
    assert_eq!((header.role, header.instance), (NodeRole::Host, 7));
    let (mut found, mut lost, mut number) = (Vec::new(), 0, 0);
    while at < file.len() {
        let chunk = ChunkHeader::decode(&file[at..]).expect("a chunk");
        assert_eq!(chunk.number, number);
        number += 1;
        lost += u64::from(chunk.lost);
        at += CHUNK_HEADER;
        let records = &file[at..at + chunk.length as usize];
        assert!(chunk.covers(records));
        at += records.len();
        for timed in Records::new(chunk.start_ns, records) {
            let Record::Tlp { length: 524, bytes, .. } = timed.record else { panic!() };
            found.push(u64::from(u32::from_be_bytes(bytes[8..12].try_into().unwrap())));
        }
    }
    (found, lost)
}

#[test]
fn trace_file_has_every_record_or_counts_it_lost() {
    let (file, lost) = record(None, None, 20_000);
    let (found, counted) = addresses(&file);
    assert!(found.is_sorted_by(|a, b| a < b));
    // What is lost at the very end has no chunk behind it.
    assert!(counted <= lost);
    assert_eq!(found.len() as u64 + lost, 20_000);
    assert_eq!(found[..100], (0..100).map(|i| i * 512).collect::<Vec<_>>());
}

#[test]
fn a_ring_stays_small_and_a_snap_cuts() {
    let (file, _) = record(Some(256 << 10), None, 4_000);
    assert!(file.len() <= 513 << 10, "{}", file.len());
    let (file, lost) = record(None, Some(16), 1_000);
    assert_eq!(addresses(&file).0.len() as u64 + lost, 1_000);
    assert!(file.len() < 50_000, "{}", file.len());
}

/// A tracer for `path`, and the errors that it reports while it records.
fn tracer_with_errors(path: &std::path::Path) -> (Tracer, Receiver<String>) {
    let settings = Settings { path: path.to_owned(), ring: None, snap: None, key: KEY };
    let (errors, reported) = channel();
    let on_error: OnError = Box::new(move |error| errors.send(error.to_string()).unwrap());
    let (role, clock) = (NodeRole::Host, Clock::start());
    (Tracer::create(&settings, role, 7, clock, None, on_error).unwrap(), reported)
}

/// Records these TLPs.
fn record_tlps(tracer: &Tracer, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| tracer.tlp(Tap::ROOT_PORT, false, &tlp(number)));
}

#[test]
fn a_trace_that_is_stopped_and_started_has_a_gap_of_known_size() {
    let folder = Folder::new();
    let path = folder.join("trace");
    let (tracer, _reported) = tracer_with_errors(&path);
    record_tlps(&tracer, 0..10);
    assert_eq!(tracer.switch(TraceSwitch::Toggle), Some(false));
    record_tlps(&tracer, 10..40);
    assert_eq!(tracer.switch(TraceSwitch::Toggle), Some(true));
    record_tlps(&tracer, 40..45);
    assert_eq!(tracer.finish().unwrap().lost, 0, "the file was fast enough");
    let (found, lost) = addresses(&std::fs::read(path).unwrap());
    assert_eq!(found, (0..10).chain(40..45).map(|i| i * 512).collect::<Vec<_>>());
    assert_eq!(lost, 30);
    assert_eq!(tracer.switch(TraceSwitch::Start), None, "it records");
    assert_eq!(Tracer::off().switch(TraceSwitch::Toggle), None);
}

#[test]
fn a_disk_that_becomes_full_is_reported_at_once_and_once_and_a_start_goes_on() {
    // A memfd with a seal stands for the disk: nothing makes it longer (fcntl(2), F_SEAL_GROW).
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("disk", flags).unwrap();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let (tracer, reported) = tracer_with_errors(path.as_ref());
    rustix::fs::fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    record_tlps(&tracer, 0..10);
    let later = Instant::ZERO + Duration::from_ms(86_400_000);
    while tracer.tick(later, true).is_some() {}
    // The trace has not ended.
    let error = reported.recv().unwrap();
    assert!(error.contains("not permitted"), "{error}");
    // Started again while nothing can be written: that is another error.
    assert_eq!(tracer.switch(TraceSwitch::Toggle), Some(true));
    record_tlps(&tracer, 10..20);
    tracer.switch(TraceSwitch::Toggle);
    assert_eq!(reported.recv().unwrap(), error);
    record_tlps(&tracer, 20..30);
    assert_eq!(tracer.finish().unwrap_err().to_string(), error);
    assert!(reported.recv().is_err(), "nothing more");
}

#[test]
fn a_full_disk_is_an_error_at_the_start() {
    let settings = Settings { path: "/dev/full".into(), ring: None, snap: None, key: KEY };
    match Tracer::create(&settings, NodeRole::Host, 7, Clock::start(), None, no_error()) {
        Err(error) => assert!(error.to_string().contains("space"), "{error}"),
        Ok(_) => panic!("the header fits on a full disk"),
    }
}

/// A sent frame is recorded later than it passed, but before anything that passed after it.
#[test]
fn records_are_in_the_order_of_time() {
    let folder = Folder::new();
    let settings = Settings { path: folder.join("trace"), ring: None, snap: None, key: KEY };
    let clock = Clock::start();
    let tracer = Tracer::create(&settings, NodeRole::Device, 7, clock, None, no_error()).unwrap();
    let mut bytes = Vec::new();
    tlp(1).encode(&mut bytes);
    let frame = |sent| {
        let length = bytes.len() as u16;
        let header = Header { length, kind: Kind::Tlps, sequence: 5, acknowledged: 0 };
        let mut frame = FrameReport::new(sent, header, 0, &[]);
        frame.add_tlp(TraceId::NONE, &bytes);
        let mut reports = Some(Report::Frame(0, frame));
        tracer.frames(Tap::UPLINK, || reports.take());
    };
    for idle in [false, true] {
        frame(false);
        tracer.tlp(Tap::FUNCTION, false, &tlp(1));
        tracer.tlp(Tap::FUNCTION, true, &tlp(2));
        frame(true);
        tracer.tick(clock.now(), idle);
    }
    // Later than a chunk may wait: it is handed over, and nothing waits.
    assert!(tracer.tick(clock.now(), true).is_some());
    assert_eq!(tracer.tick(clock.now() + Duration::from_ms(101), true), None);
    assert_eq!(tracer.tick(clock.now() + Duration::from_ms(102), true), None);
    tracer.finish().unwrap();
    let file = std::fs::read(settings.path).unwrap();
    let at = trace::Header::decode(&file).unwrap().1;
    let chunk = ChunkHeader::decode(&file[at..]).expect("a chunk");
    let records = &file[at + CHUNK_HEADER..];
    assert_eq!(records.len(), chunk.length as usize, "one chunk");
    let records: Vec<_> = Records::new(chunk.start_ns, records).collect();
    let kinds: Vec<_> = records
        .iter()
        .map(|timed| match timed.record {
            Record::Frame { up, sequence: 5, tlps: 1, .. } => ('f', up),
            Record::Tlp { up, .. } => ('t', up),
            other => panic!("{other:?}"),
        })
        .collect();
    let once = [('f', false), ('t', false), ('t', true), ('f', true)];
    assert_eq!(kinds, [once, once].concat());
    assert_eq!(records[0].at_ns, chunk.start_ns);
    assert!(records[0].at_ns < records[7].at_ns);
}

/// Timestamps may step back a little. Readers sort chunks by their start.
#[test]
fn chunks_start_in_order_after_a_step_back() {
    let folder = Folder::new();
    let settings = Settings { path: folder.join("trace"), ring: None, snap: None, key: KEY };
    let clock = Clock::start();
    let tracer = Tracer::create(&settings, NodeRole::Device, 7, clock, None, no_error()).unwrap();
    let event = || NvmeEvent::State(ControllerState::Ready);
    for first in [Duration::from_ms(2), Duration::from_ms(1)] {
        let mut events = Some(event());
        tracer.events(Some(Instant::ZERO + first), || events.take());
        tracer.tick(Instant::ZERO + Duration::from_ms(200), true);
    }
    tracer.finish().unwrap();
    let file = std::fs::read(settings.path).unwrap();
    let at = trace::Header::decode(&file).unwrap().1;
    let first = ChunkHeader::decode(&file[at..]).expect("a chunk");
    let next = at + CHUNK_HEADER + first.length as usize;
    let second = ChunkHeader::decode(&file[next..]).expect("another chunk");
    assert_eq!([first.start_ns, second.start_ns], [2_000_000; 2]);
}
