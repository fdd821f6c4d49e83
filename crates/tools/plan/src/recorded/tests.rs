//! Recordings in every format, and files that are refused.

use super::*;
use crate::Planned;
use crate::tests::{built, fails};
use columns::{Batch, Column, Csv, Parquet, Schema, Value};
use proptest::prelude::*;
use sim::ethernet::Mac;
use sim::ethernet::traffic::{self, Output, Pattern, Source};
use tempfile::TempDir;
use wire::Instant;
use wire::pcapng::{self, link_type};

/// Times in nanoseconds, and bytes from header to FCS without tag.
type Recorded = [(u64, usize)];

const FRAMES: [(u64, usize); 4] = [
    (1_700_000_000_000_000_123, 64),
    (1_700_000_000_000_050_124, 1518),
    (1_700_000_000_000_050_124, 300),
    (1_700_000_003_000_000_123, 999),
];

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// The bytes of a frame without FCS, with a tag if it is tagged.
fn frame(length: usize, tagged: bool) -> Vec<u8> {
    let mut bytes = vec![0; length - 4 + if tagged { 4 } else { 0 }];
    bytes[12..14].copy_from_slice(if tagged { &[0x81, 0] } else { &[8, 0] });
    bytes
}

fn pcapng_of(frames: &Recorded, link_type: u16) -> Vec<u8> {
    let mut out = Vec::new();
    pcapng::Section::default().encode(&mut out);
    pcapng::Interface { link_type, name: "a", description: "" }.encode(&mut out);
    for (number, (at_ns, length)) in frames.iter().enumerate() {
        // Only the first bytes are kept.
        let bytes = frame(*length, number.is_multiple_of(2));
        let data = &bytes[..bytes.len().min(40)];
        let cut = (bytes.len() - data.len()) as u32;
        let (direction, comment) = (None, "");
        pcapng::Packet { interface: 0, at_ns: *at_ns, direction, data, cut, comment }
            .encode(&mut out);
    }
    out
}

/// A pcap file (draft-ietf-opsawg-pcap) with a resolution of 1 ns.
fn pcap_of(frames: &Recorded, number: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let short = if number(1)[0] == 1 { u16::to_le_bytes } else { u16::to_be_bytes };
    let mut out = number(0xa1b2_3c4d).to_vec();
    out.extend([short(2), short(4)].concat());
    out.extend([0, 0, 262_144, 1].map(number).concat());
    for (index, (at_ns, length)) in frames.iter().enumerate() {
        let bytes = frame(*length, index % 2 == 1);
        let length = bytes.len() as u32;
        let (s, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        out.extend([s as u32, ns as u32, length, length].map(number).concat());
        out.extend(bytes);
    }
    out
}

const SCHEMA: Schema =
    &[Column::text("stream"), Column::unsigned("length", "B"), Column::unsigned("time_ns", "ns")];

fn batch(frames: &Recorded) -> Batch {
    let mut batch = Batch::new(SCHEMA);
    for (at, length) in frames {
        let (length, time) = (Value::Unsigned(*length as u64), Value::Unsigned(*at));
        batch.push(&[Value::Text("a, \"b\""), length, time]);
    }
    batch
}

fn parquet_of(frames: &Recorded) -> Vec<u8> {
    let mut file = tempfile::tempfile().unwrap();
    let mut parquet = Parquet::new(file.try_clone().unwrap(), SCHEMA).unwrap();
    parquet.write(&batch(frames)).unwrap();
    parquet.finish(&[]).unwrap();
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn csv_of(frames: &Recorded) -> Vec<u8> {
    let mut bytes = Vec::new();
    Csv::new(&mut bytes, SCHEMA).unwrap().write(&batch(frames)).unwrap();
    bytes
}

/// CSV in seconds, with the line ends and the mark of spreadsheets.
fn seconds_of(frames: &Recorded) -> String {
    let line = |(at, length): &(u64, usize)| {
        format!("{}.{:09} , {length}\r\n", at / 1_000_000_000, at % 1_000_000_000)
    };
    format!("\u{feff}time,length\r\n{}", frames.iter().map(line).collect::<String>())
}

fn read_all(path: &Path) -> Vec<(Duration, usize)> {
    frames(path).collect::<Result<_, _>>().unwrap_or_else(|why| panic!("{why}"))
}

fn every_format(folder: &Folder, frames: &Recorded) -> [PathBuf; 6] {
    [
        folder.file("a.pcapng", pcapng_of(frames, link_type::ETHERNET)),
        folder.file("le.pcap", pcap_of(frames, u32::to_le_bytes)),
        folder.file("be.pcap", pcap_of(frames, u32::to_be_bytes)),
        folder.file("a.parquet", parquet_of(frames)),
        folder.file("ns.csv", csv_of(frames)),
        folder.file("s.csv", seconds_of(frames)),
    ]
}

fn planned(path: &Path, keys: &str) -> Planned {
    built(&plan(path, keys))
}

fn plan(path: &Path, keys: &str) -> String {
    format!(
        "runtime = \"1ms\"\n[nodes.a]\n[nodes.b]\n[traffic.t]\nfrom = \"a\"\nto = \"b\"\n\
         replay = \"{}\"\n{keys}",
        path.display()
    )
}

#[test]
fn times_and_lengths_of_every_format_are_exact() {
    let folder = Folder::new();
    for path in every_format(&folder, &FRAMES) {
        let expected = [(0, 64), (50_001, 1518), (50_001, 300), (3_000_000_000, 999)];
        let expected = expected.map(|(ns, length)| (Duration::from_ns(ns), length));
        assert_eq!(read_all(&path), expected, "{}", path.display());
    }
}

#[test]
fn units_of_time_are_in_the_name_of_the_column() {
    let folder = Folder::new();
    for (name, cell) in [
        ("time", "0.0000015"),
        ("time", "1.5e-06"),
        ("time_ms", ".0015"),
        ("time_us", "1.5"),
        ("time_ns", "1500"),
    ] {
        let text = format!("no,length,{name}\n1,64,0\n\n2,64,{cell}\n");
        let path = folder.file("a.csv", text);
        assert_eq!(read_all(&path)[1].0, Duration::from_ns(1_500), "{name} {cell}");
    }
}

#[test]
fn plan_has_mean_interval_mean_length_and_longest_frame() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "time_us,length\n5,20\n8,1000\n25,500\n");
    let planned = planned(&path, "repeat = \"on\"\npriority = 3\n");
    let traffic = &planned.config.network.stations[0].traffic[0];
    let Pattern::Recorded(recording) = &traffic.pattern else { panic!("a recording") };
    assert_eq!((traffic.length, traffic.mean_length()), (1000, 520));
    assert_eq!((recording.interval, recording.repeats), (Duration::from_us(10), true));
    // 0, 3, 20, 30, 33, 50, 60 us and so on.
    let report = sim::World::new(&planned.config).unwrap().run().unwrap();
    assert_eq!(report.streams[0].sent, 101);
}

#[test]
fn recording_that_changes_after_the_check_is_a_failure() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "time_us,length\n0,64\n5,64\n9,64\n");
    let planned = planned(&path, "");
    let run = || sim::World::new(&planned.config).unwrap().run().unwrap().streams[0].sent;
    assert_eq!((run(), failure(&planned.config)), (3, None));
    folder.file("a.csv", "time_us,length\n0,64\n5,x\n");
    let why = format!("{}: line 3: invalid length 'x'", path.display());
    assert_eq!((run(), failure(&planned.config)), (1, Some(why)));
}

#[test]
fn recording_that_cannot_be_replayed_is_an_error() {
    let folder = Folder::new();
    let falling = [FRAMES[1], FRAMES[0]];
    let mut simple = pcapng_of(&[], link_type::ETHERNET);
    // A simple packet block (section 4.4 of the draft) of 64 bytes, which has no time.
    simple.extend([3, 80, 64].map(u32::to_le_bytes).concat());
    simple.extend([0; 64]);
    simple.extend(80_u32.to_le_bytes());
    let mut cut = pcap_of(&FRAMES, u32::to_le_bytes);
    cut.truncate(cut.len() - 1);
    let long = [(0, 64), (1, 9_100)];
    let none = "no column of times. Expected a capture, or columns length and one of: time, \
                time_ms, time_us, time_ns";
    for (bytes, why) in [
        (b"".to_vec(), none),
        (b"length,at\n64,1\n".to_vec(), none),
        (b"time,size\n".to_vec(), "no column length"),
        (b"time,length\n".to_vec(), "expected frames at two times or more"),
        (b"time,length\n1,64\n1,64\n".to_vec(), "expected frames at two times or more"),
        (b"time,length\n0,64\n-1,64\n".to_vec(), "line 3: invalid time '-1'"),
        (b"time,length\n0,64\n,64\n".to_vec(), "line 3: invalid time ''"),
        (b"time,length\n0\n".to_vec(), "line 2: invalid length ''"),
        (b"time,length\n0,64\n1e9,64\n".to_vec(), "line 3: 213 days after the first"),
        (csv_of(&long), "line 3: a frame of 9100B: expected 9018B at most"),
        (pcap_of(&long, u32::to_le_bytes), "packet 2: a frame of 9100B: expected 9018B at most"),
        (csv_of(&falling), "line 3: earlier than the frame before"),
        (parquet_of(&falling), "row 2: earlier than the frame before"),
        (pcap_of(&falling, u32::to_be_bytes), "packet 2: earlier than the frame before"),
        (pcapng_of(&[], link_type::ETHERNET), "expected frames at two times or more"),
        (pcapng_of(&FRAMES, link_type::USER0), "packet 1: link type 147: expected Ethernet (1)"),
        (simple, "packet 1: without a time"),
        (cut, "after packet 3: the file ends in a block"),
    ] {
        let path = folder.file("x", bytes);
        let error = format!("p.toml:7:10: replay: {}: {why}", path.display());
        fails(&plan(&path, ""), &error);
    }
    let missing = folder.0.path().join("none");
    let error = format!("{}: No such file or directory (os error 2)", missing.display());
    fails(&plan(&missing, ""), &format!("p.toml:7:10: replay: {error}"));
}

#[test]
fn keys_that_a_recording_replaces_are_errors() {
    let folder = Folder::new();
    let path = folder.file("a.csv", csv_of(&FRAMES));
    let error = "p.toml:8:8: 'rate' and 'replay' exclude each other";
    fails(&plan(&path, "rate = \"1MB/s\"\n"), error);
    let text = plan(&path, "repeat = \"on\"\n").replace("replay", "interval = \"1ms\" #");
    fails(&text, "p.toml:8:10: 'repeat' requires 'replay'");
}

fn source_config() -> traffic::Config {
    traffic::Config {
        source: Mac::local(1),
        destination: Mac::local(2),
        length: 64,
        priority: 0,
        pattern: Pattern::Periodic(Duration::from_ms(1)),
        jitter: Duration::ZERO,
        on_off: None,
        burst: 1,
        start: Instant::ZERO,
        stop: None,
        own_clock: false,
        babbles: Vec::new(),
        line_time: Duration::ZERO,
        seed: 0,
        first_id: 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Each frame is sent at its time with its length, from every format.
    #[test]
    fn replayed_frames_are_the_recorded_ones(
        steps in prop::collection::vec((0_u64..3_000_000_000, 60_usize..=9018), 2..60),
        first in 0_u64..4_000_000_000_000_000_000,
        start_ns in 0_u64..1_000_000,
    ) {
        let mut at = first;
        let frames: Vec<_> = steps.iter().map(|(step, length)| {
            at += step;
            (at, *length)
        }).collect();
        prop_assume!(at > first + steps[0].0);
        let folder = Folder::new();
        for path in every_format(&folder, &frames) {
            let Checked { recording, longest } = check(&path).unwrap();
            let mut source = Source::new(traffic::Config {
                length: longest,
                pattern: Pattern::Recorded(recording),
                start: Instant::from_ns(start_ns),
                ..source_config()
            });
            let (mut now, mut sent) = (Instant::ZERO, Vec::new());
            loop {
                match source.poll(now, None) {
                    Output::Frame(frame) => sent.push((now.as_ns(), frame.bytes.len() + 4)),
                    Output::Timeout(Some(at)) => now = at,
                    Output::Timeout(None) => break,
                }
            }
            let due = frames.iter().map(|(at, length)| (at - frames[0].0 + start_ns, *length));
            prop_assert!(due.eq(sent), "{}", path.display());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_bytes_make_a_reader_panic(
        magic in prop::sample::select(vec![&b"\x0a\x0d\x0d\x0a"[..], b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"PAR1", b"time,length\n"]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        format in 0_usize..6,
    ) {
        let folder = Folder::new();
        let path = folder.file("x", [magic, &bytes].concat());
        frames(&path).take(1_000).for_each(drop);
        // A valid file with one changed byte.
        let path = &every_format(&folder, &FRAMES)[format];
        let mut valid = std::fs::read(path).unwrap();
        let at = at.index(valid.len());
        valid[at] = bytes.first().copied().unwrap_or(0xff);
        frames(&folder.file("x", valid)).take(1_000).for_each(drop);
    }
}
