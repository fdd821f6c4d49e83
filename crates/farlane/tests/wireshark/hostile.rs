//! Malformed connections: the dissector reports the error and continues.

use std::fs;
use std::path::{Path, PathBuf};

use analysis::commands::Direction;
use analysis::commands::stream::StreamRange;
use stats::random::Random;
use wire::frame::{
    Control, Grant, HEADER, Header, Hello, HostAfter, Kind, MoveStatus, Moved, Reject, Role,
    VERSION,
};
use wire::push::{self, Push, Record};
use wire::tlp::{Completion, MemoryRequest, Packet, Status, Tlp};
use wire::{Bdf, Instant, Tag};

use crate::support::{Recording, Tshark, check, folder};

impl Recording {
    /// Creates a connection after both greetings.
    fn greeted() -> Self {
        let mut streams = Self::default();
        for (direction, role) in [(Direction::Down, Role::Host), (Direction::Up, Role::Device)] {
            let credits = [Grant { headers: 1024, data: 65_536 }; 3];
            let (version, max_payload) = (VERSION, 4096);
            let (group, instance, push) = (0, 1, 0);
            let (session, paths, connection) = (None, None, None);
            let lease_ms = 0;
            let hello = Hello {
                version,
                role,
                max_payload,
                group,
                instance,
                push,
                session,
                paths,
                connection,
                lease_ms,
                credits,
            };
            streams.control(direction, &Control::Hello(hello));
        }
        streams
    }

    /// Adds another greeting of the host, with these entries.
    fn greet_again(&mut self, entries: &[u8]) {
        let mut payload = self.down[HEADER..].to_vec();
        payload.extend(entries);
        self.frame(Direction::Down, Kind::Hello, 0, 0, &payload);
    }

    fn bytes(&mut self, direction: Direction, bytes: &[u8]) {
        let stream = if direction == Direction::Down { &mut self.down } else { &mut self.up };
        let start = stream.len();
        stream.extend_from_slice(bytes);
        let at = Instant::from_ns(1000 * self.ranges.len() as u64);
        self.ranges.push(StreamRange { at, direction, bytes: start..stream.len() });
    }

    fn frame(
        &mut self,
        direction: Direction,
        kind: Kind,
        sequence: u32,
        acknowledged: u32,
        payload: &[u8],
    ) {
        let header = Header { length: payload.len() as u16, kind, sequence, acknowledged };
        self.bytes(direction, &[&header.encode()[..], payload].concat());
    }

    fn control(&mut self, direction: Direction, control: &Control) {
        let mut payload = Vec::new();
        control.encode(&mut payload);
        self.frame(direction, control.kind(), 0, 0, &payload);
    }

    fn tlp(&mut self, direction: Direction, sequence: u32, tlp: &Tlp) {
        let mut payload = Vec::new();
        tlp.encode(&mut payload);
        self.frame(direction, Kind::Tlps, sequence, 0, &payload);
    }

    fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        check::write_tcp(&path, "192.0.2.2:40001", self);
        path
    }
}

/// Returns the expert messages of tshark. Fails for an error in the script.
fn complaints(capture: &Path, options: &[&str]) -> Vec<String> {
    let fields = ["_ws.expert.message", "_ws.lua.error"];
    let packets = Tshark::ready().fields(capture, options, "farlane", &fields);
    assert!(!packets.is_empty(), "{}: nothing is decoded", capture.display());
    let errors: Vec<_> = packets.iter().flat_map(|packet| &packet[1]).collect();
    assert!(errors.is_empty(), "{}: {errors:?}", capture.display());
    packets.into_iter().flat_map(|mut packet| packet.swap_remove(0)).collect()
}

fn read(tag: u16) -> MemoryRequest {
    let tag = Tag::new(tag).unwrap();
    MemoryRequest::for_bytes(Bdf::new(3, 0, 0), tag, 0x1_2345_6000, 64).unwrap()
}

fn answer(tag: u16, status: Status) -> Tlp {
    Tlp::completion(Completion {
        completer: Bdf::new(0, 0, 0),
        requester: Bdf::new(3, 0, 0),
        tag: Tag::new(tag).unwrap(),
        status,
        byte_count: 64,
        lower_address: 0,
        byte_count_modified: false,
    })
}

#[test]
fn malformed_frames_are_reported() {
    use Direction::{Down, Up};
    let folder = folder::kept("wireshark-wrong");
    let wrong = |name: &str, complains: &[&str], wrong: &dyn Fn(&mut Recording)| {
        let mut streams = Recording::greeted();
        wrong(&mut streams);
        let capture = streams.write(&folder, name);
        assert_eq!(complaints(&capture, &[]), complains, "{name}");
        assert_eq!(complaints(&capture, &["-2"]), complains, "{name}, dissected twice");
    };
    let ask = |streams: &mut Recording, sequence, tag| {
        streams.tlp(Up, sequence, &Tlp::memory_read(read(tag)));
    };
    let answered = |streams: &mut Recording, tag, status| {
        ask(streams, 0, 5);
        streams.tlp(Down, 0, &answer(tag, status));
    };
    wrong("nothing", &[], &|_| {});
    let (refused, aborted) = (Status::UnsupportedRequest, Status::CompleterAbort);
    wrong("refused", &["Unsupported Request"], &|streams| answered(streams, 5, refused));
    wrong("aborted", &["Completer Abort"], &|streams| answered(streams, 5, aborted));
    let unasked = ["Unsupported Request", "Completion of no known request"];
    wrong("unasked", &unasked, &|streams| answered(streams, 6, refused));
    for (name, complaint, reads) in [
        ("reused", "Tag of a request that is still open", &[(0, 5), (1, 5)][..]),
        ("gap", "Sequence 2 where 1 is due", &[(0, 5), (2, 6), (3, 7)]),
        ("twice", "Sequence 0 where 1 is due", &[(0, 5), (0, 5)]),
    ] {
        let all = |streams: &mut Recording| {
            reads.iter().for_each(|(sequence, tag)| ask(streams, *sequence, *tag));
        };
        wrong(name, &[complaint], &all);
    }
    let ahead = "Acknowledges frames that were never sent";
    wrong("ahead", &[ahead], &|streams| streams.frame(Down, Kind::Acknowledge, 0, 1, &[]));
    let malformed = |name: &str, message: &str, make: &dyn Fn(&mut Recording)| {
        wrong(name, &[&format!("Malformed {message}")], make);
    };
    for (name, message, kind, flags) in
        [("kind", "frame: undefined kind", 77, 0), ("flags", "frame: flags are set", 4, 1)]
    {
        let head = [0, 0, kind, flags, 0, 0, 0, 0, 0, 0, 0, 0];
        malformed(name, message, &|streams| streams.bytes(Up, &head));
    }
    for (name, message, kind, payload) in [
        ("length", "frame: a length that does not fit the kind", Kind::Echo, &[0; 7][..]),
        ("short reset", "frame: a length that does not fit the kind", Kind::Reset, &[]),
        ("empty", "frame: no TLP in the frame", Kind::Tlps, &[]),
    ] {
        malformed(name, message, &|streams| streams.frame(Down, kind, 0, 0, payload));
    }
    for (head, message) in [
        (&[0x02; 12][..], "LN, TH or AT is set"),
        (&[0x1f, 0, 0, 1, 0, 0, 0, 15, 0, 0, 0, 0], "Fmt/Type is reserved or not carried"),
        (
            &[0x40, 0, 0, 9, 0, 0, 0, 255, 0, 0, 0, 0],
            "truncated TLP: 12 bytes, but its header gives 48",
        ),
        (&[0x00, 0, 0, 1, 0, 0, 0, 255, 0, 0, 0, 0], "byte enables that the length forbids"),
        (&[0x00, 0, 0, 2, 0, 0, 0, 255, 0, 0, 0x0f, 0xfc], "crosses a 4 KiB boundary"),
        (&[0x00, 0], "too short"),
    ] {
        let message = format!("TLP: {message}");
        malformed("tlp", &message, &|streams| streams.frame(Down, Kind::Tlps, 0, 0, head));
    }
    for (entries, message) in [
        (&[0, 7, 0][..], "an entry ends beyond the frame"),
        (&[0, 7, 0, 1], "an entry ends beyond the frame"),
        (&[0, 7, 0, 0, 0x80, 7, 0, 0], "an entry's number is not above the one before"),
        (&[0, 1, 0, 1, 5], "an entry of another length"),
    ] {
        let message = format!("frame: {message}");
        malformed("entries", &message, &|streams| streams.greet_again(entries));
    }
}

/// Returns a push with this payload. `change` alters the body of its message header.
fn push(payload: &[u8], change: impl FnOnce(&mut [u8; 8])) -> Tlp {
    let (root, function) = (Bdf::new(0, 1, 0), Bdf::new(3, 0, 0));
    let mut tlp = push::message(root, function, 256, false, payload.to_vec().into());
    let Packet::Message(message) = &mut tlp.packet else { unreachable!("it is one") };
    change(&mut message.body);
    tlp
}

/// Wireshark marks the pushes as malformed that `wire::push` refuses, and shows the fields of their
/// records.
#[test]
fn pushes_are_checked_as_the_codec_checks_them() {
    let folder = folder::kept("wireshark-push");
    let records = [
        Record::Queue(push::Queue {
            id: 2,
            last: 1023,
            head: 5,
            completion_last: 511,
            base: 0x1_2345_6000,
            completion_base: 0x7000,
        }),
        Record::Bytes {
            queue: 2,
            command: 0x1234,
            address: 0x1_2345_6140,
            bytes: vec![0xde, 0xad, 0xbe, 0xef].into(),
        },
        Record::EndCommand { queue: 2, command: 0x1235 },
        Record::EndQueue(3),
        Record::EndRange { address: 0x8000_0000, length: 0x10_0000 },
        Record::EndAll,
    ];
    let mut good = Vec::new();
    records.iter().for_each(|record| record.encode(&mut good));
    let malformed: Vec<(Tlp, &str)> = vec![
        (push(&good, |body| body[4] = 2), "subtype 2"),
        (push(&good, |body| body[5] = 13), "completions of 2^13 bytes"),
        (push(&good, |body| body[7] = 1), "bytes 14 and 15 are not 0"),
        (push(&good[..24], |_| {}), "truncated record: 24 bytes are left, it needs 28"),
        (
            push(&[2, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0], |_| {}),
            "truncated record: 16 bytes are left, it needs 52",
        ),
        (push(&[7, 0, 0, 0], |_| {}), "record kind 7"),
        (push(&[6, 1, 0, 0], |_| {}), "byte 1 of a record is not 0"),
        (push(&[6, 0, 0, 1], |_| {}), "a queue in a record without one"),
        (push(&[3, 0, 0, 1, 0, 1, 0, 1], |_| {}), "bytes 6 and 7 of EndCommand are not 0"),
        (push(&[2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], |_| {}), "no bytes in Bytes"),
        (
            push(&[2, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0], |_| {}),
            "an address of Bytes that is no double word below 2^64",
        ),
        (
            push(
                &[&[2, 0, 0, 1, 0, 0, 0, 1][..], &[0xff; 7], &[0xfc, 0, 0, 0, 0]].concat(),
                |_| {},
            ),
            "an address of Bytes that is no double word below 2^64",
        ),
        // The head is 5, but the last slot is 3.
        (
            push(&[&[1, 0, 0, 2, 0, 3][..], &good[6..]].concat(), |_| {}),
            "the head is no slot of the queue",
        ),
    ];
    let mut streams = Recording::greeted();
    streams.tlp(Direction::Down, 0, &push(&good, |_| {}));
    for (sequence, (tlp, message)) in (1..).zip(&malformed) {
        assert!(matches!(Push::decode(tlp), Some(Err(_))), "{message}");
        streams.tlp(Direction::Down, sequence, tlp);
    }
    // Messages of another vendor, or with other routing, may have any payload.
    let others = [push(&[9; 8], |body| body[2] = 0), push(&[9; 8], |body| body[3] = 0)];
    for (sequence, tlp) in (1 + malformed.len() as u32..).zip(&others) {
        assert_eq!(Push::decode(tlp), None);
        streams.tlp(Direction::Down, sequence, tlp);
    }
    let capture = streams.write(&folder, "push");
    let expected: Vec<_> =
        malformed.iter().map(|(_, message)| format!("Malformed push: {message}")).collect();
    assert_eq!(complaints(&capture, &[]), expected);
    assert_eq!(complaints(&capture, &["-2"]), expected, "dissected twice");
    let fields = [
        "farlane_push.target",
        "farlane_push.completion_size",
        "farlane_push.kind",
        "farlane_push.queue",
        "farlane_push.command",
        "farlane_push.address",
        "farlane_push.length",
        "farlane_push.last",
        "farlane_push.head",
        "farlane_push.completion_last",
        "farlane_push.base",
        "farlane_push.bytes",
    ];
    let found = Tshark::ready().fields(&capture, &[], "farlane_push && !_ws.expert", &fields);
    let expected: [&[&str]; 12] = [
        &["03:00.0"],
        &["256"],
        &["1", "2", "3", "4", "5", "6"],
        &["2", "2", "2", "3"],
        &["4660", "4661"],
        &["0x0000000123456140", "0x0000000080000000"],
        &["4", "1048576"],
        &["1023"],
        &["5"],
        &["511"],
        &["0x0000000123456000"],
        &["deadbeef"],
    ];
    assert_eq!(found, [expected]);
    fs::remove_dir_all(&folder).unwrap();
}

/// All fields of greetings, moves and resets have names.
#[test]
fn greetings_moves_and_resets_are_shown() {
    use Direction::{Down, Up};
    let folder = folder::kept("wireshark-greetings");
    let mut streams = Recording::greeted();
    // A Reject of a later version, with additional bytes after the first 12.
    let reject = *b"FARLANE\0\x00\x03\x05\x00\x12\x34";
    streams.frame(Up, Kind::Reject, 0, 0, &reject);
    streams.greet_again(&[0, 1, 0, 2, 0, 5, 0, 7, 0, 1, 0xaa, 0x80, 9, 0, 0]);
    let (status, host) = (MoveStatus::Done, HostAfter::Disconnected);
    for (direction, control) in [
        (Up, Control::Reject { reason: Reject::UnknownEntry(9), version: 2 }),
        (Up, Control::Reject { reason: Reject::Version, version: 2 }),
        (Down, Control::Move(7)),
        (Up, Control::Moved(Moved { status, host, awaited: true, from: 5, to: 7 })),
        (Down, Control::Reset(1)),
        (Down, Control::Reset(2)),
        (Up, Control::ResetDone(1)),
    ] {
        streams.control(direction, &control);
    }
    let write = MemoryRequest::for_bytes(Bdf::new(3, 0, 0), Tag::default(), 0x1000, 4).unwrap();
    let write = Tlp::memory_write(write, vec![0; 4].into());
    streams.tlp(Up, 0, &write);
    streams.control(Up, &Control::ResetDone(2));
    streams.tlp(Up, 1, &write);
    let capture = streams.write(&folder, "greetings");
    let text = Tshark::ready().run(&capture, &["-2", "-Y", "farlane"]);
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "Hello host, max payload 4096, group 5, entry 7, entry 9, required",
        "Reject: an entry that the device does not know is required, entry 9",
        "Reject: the versions differ",
        "Move to group 7",
        "Moved: done",
        "Reset 1",
        "Reset 2",
        "ResetDone 1",
        "(dropped: the link is being reset)",
        "ResetDone 2",
    ];
    for (line, message) in lines[lines.len() - 11..].iter().zip(expected) {
        assert!(line.contains(message), "no '{message}' in {line}: {text}");
    }
    let of_version_3 = lines[lines.len() - 12];
    assert!(of_version_3.contains("Reject") && !of_version_3.contains("4660"), "{of_version_3}");
    assert!(!lines[lines.len() - 1].contains("dropped"), "the latest reset is done: {text}");
    let fields = ["farlane.hello.entry.number", "farlane.hello.group", "farlane.moved.from"];
    let values =
        Tshark::ready().fields(&capture, &[], "farlane.hello.entry || farlane.moved.from", &fields);
    assert_eq!(values[0][..2], [vec!["1", "7", "9"], vec!["5"]]);
    assert_eq!(values[1][2], ["5"]);
    fs::remove_dir_all(&folder).unwrap();
}

/// Any bytes after the greetings, in whole frames or not, must not cause an error of the script.
#[test]
fn hostile_bytes_do_not_crash_dissector() {
    let folder = folder::kept("wireshark-hostile");
    let mut random = Random::new(0);
    let mut streams = Recording::greeted();
    for sequence in 0..3000 {
        let direction = if random.below(2) == 0 { Direction::Down } else { Direction::Up };
        let length = random.below(120) as usize;
        let mut payload = random.bytes(length);
        // Most payloads begin like a TLP.
        if let Some(first) = payload.first_mut() {
            *first = [0x00, 0x20, 0x40, 0x60, 0x04, 0x44, 0x0a, 0x4a, 0x30, 0x72, *first]
                [random.below(11) as usize];
        }
        if length > 4 {
            payload[1] &= 0x70;
            payload[2] = 0;
            payload[3] %= 8;
        }
        if length > 18 && payload[0] == 0x72 {
            // Many of these are pushes, and many have valid records.
            payload[7] = 0x7f;
            payload[10..13].copy_from_slice(&[0xfa, 0x12, 1]);
            payload[13] = random.below(16) as u8;
            payload[14..16].fill(0);
            payload[16] %= 8;
            payload[17] = 0;
        }
        let kind = Kind::from_byte(random.below(14) as u8).unwrap_or(Kind::Tlps);
        // Most frames have the expected sequence number.
        let sequence = if random.below(9) == 0 { random.below(3000) as u32 } else { sequence };
        streams.frame(direction, kind, sequence, random.below(9) as u32, &payload);
    }
    let capture = streams.write(&folder, "hostile");
    assert!(complaints(&capture, &["-2"]).len() > 1000);
    // A stream that begins in the middle of a connection. The port identifies the protocol.
    let cut = Recording { down: streams.down.split_off(100_000), ..streams };
    let ranges =
        [StreamRange { at: Instant::ZERO, direction: Direction::Down, bytes: 0..cut.down.len() }];
    let late = Recording { ranges: ranges.to_vec(), up: Vec::new(), ..cut }.write(&folder, "late");
    let text = Tshark::ready().run(&late, &["-d", "tcp.port==40001,farlane", "-V"]);
    assert!(text.contains("Malformed frame") && !text.contains("Lua Error"));
    fs::remove_dir_all(&folder).unwrap();
}
