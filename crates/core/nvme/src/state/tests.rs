//! Encoding and decoding of records, and invalid records.

use super::*;
use proptest::prelude::*;

fn drive() -> Drive {
    Drive {
        serial: "FL0123456789ABCDEF".into(),
        model: "farlane NVMe drive".into(),
        uuid: *b"0123456789abcdef",
        incarnation: 0x1234_5678_9abc_def0,
        capacity: 1 << 30,
        max_namespaces: 16,
    }
}

fn namespace(number: u8) -> Namespace {
    Namespace {
        blocks: 2048,
        block_shift: 12,
        nguid: [number; 16],
        eui64: [number; 8],
        uuid: [0xf0 | number; 16],
        contents: format!("namespace-{number}"),
        write_protected: false,
        private: false,
        ..Namespace::default()
    }
}

/// Blocks 8 to 11 and 100 of namespace 7.
fn marked() -> Uncorrectable {
    let mut marks = Marks::default();
    marks.set(100..101);
    marks.set(8..12);
    BTreeMap::from([(7, marks)])
}

/// Two registrants of namespace 7, of which one has a reservation for registrants.
fn reserved() -> Reservations {
    let host = |bytes: &[u8]| HostId::new(bytes).expect("an identifier");
    let registrant = |bytes, key| Registrant { host: host(bytes), key };
    let reservation = Reservation {
        persists: true,
        generation: 2,
        kind: 3,
        holder: Some(host(b"host-000")),
        registrants: vec![registrant(b"host-000", 0xaa), registrant(b"host-111", 1 << 63)],
    };
    Reservations { power_cycle: 4, namespaces: BTreeMap::from([(7, reservation)]) }
}

/// A drive with two namespaces.
fn state() -> State {
    let saved = SavedFeature { controller: 1, feature: 4, nsid: 0, value: 350 };
    State {
        namespaces: BTreeMap::from([(1, namespace(1)), (7, namespace(7))]),
        attachments: BTreeMap::from([(1, BTreeSet::from([1, 2]))]),
        features: vec![saved],
        health: History { reads: 3, errors: 2, running: true, ..History::default() },
        firmware: Firmware {
            active: 2,
            next: 1,
            images: BTreeMap::from([(2, Image(b"revision\xff".to_vec()))]),
        },
        self_tests: SelfTests {
            extended: Some(ExtendedTest { controller: 1, nsid: 7 }),
            results: vec![TestResult { extended: false, result: 2, nsid: 0, hours: 9 }],
        },
        uncorrectable: marked(),
        reservations: reserved(),
        events: EventLog([event()].into()),
        ..State::new(drive())
    }
}

/// The event that the composite temperature has reached WCTEMP.
fn event() -> LoggedEvent {
    LoggedEvent { kind: 13, controller: 0xffff, timestamp: 25, data: vec![1, 1] }
}

/// The text of the document.
const DOCUMENT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/drive.md"));

#[test]
fn records_are_what_is_documented() {
    let text = |key: &str| String::from_utf8(state().encode()[key].clone()).unwrap();
    let shown = ["drive", "namespace/7", "attachments", "features", "events", "uncorrectable"];
    for key in shown.into_iter().chain(["reservations"]) {
        assert!(DOCUMENT.contains(&text(key)), "docs/drive.md has another {key}");
    }
    let serde_json::Value::Object(health) = serde_json::from_str(&text("health")).unwrap() else {
        panic!("no object")
    };
    for field in health.keys() {
        assert!(DOCUMENT.contains(&format!("`{field}`")), "docs/drive.md lacks {field}");
    }
    assert_eq!(
        text("drive"),
        "{\"serial\":\"FL0123456789ABCDEF\",\"model\":\"farlane NVMe drive\",\
         \"uuid\":\"30313233343536373839616263646566\",\"incarnation\":\"123456789abcdef0\",\
         \"capacity\":1073741824,\"max_namespaces\":16}"
    );
    assert_eq!(
        text("namespace/7"),
        "{\"blocks\":2048,\"block_shift\":12,\"nguid\":\"07070707070707070707070707070707\",\
         \"eui64\":\"0707070707070707\",\"uuid\":\"f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7\",\
         \"contents\":\"namespace-7\",\"write_protected\":false,\"private\":false}"
    );
    let protected = Format { block_shift: 12, metadata: 8, extended: false, protection: 1 };
    let mut formatted = state();
    formatted.namespaces.insert(7, namespace(7).with_format(protected));
    let record = String::from_utf8(formatted.encode()["namespace/7"].clone()).unwrap();
    // 2048 * 4096 = 8388608 = 2044 * (4096 + 8) + 32.
    assert!(record.starts_with("{\"blocks\":2044,\"block_shift\":12,"));
    let fields = "\"private\":false,\"metadata\":8,\"protection\":1,\"rest\":32}";
    assert!(record.ends_with(fields), "{record}");
    for text in [&record[..19], &fields[1..]] {
        assert!(DOCUMENT.contains(text), "docs/drive.md lacks {text}");
    }
    assert_eq!(State::decode(&formatted.encode()), Ok(formatted));
    assert_eq!(text("attachments"), "{\"1\":[1,2]}");
    assert_eq!(text("features"), "[{\"controller\":1,\"feature\":4,\"nsid\":0,\"value\":350}]");
    assert_eq!(
        text("health"),
        "{\"units_read\":0,\"units_written\":0,\"reads\":3,\"writes\":0,\"busy_ps\":0,\
         \"power_on_ps\":0,\"power_cycles\":0,\"unsafe_shutdowns\":0,\"media_errors\":0,\
         \"errors\":2,\"warning_ps\":0,\"critical_ps\":0,\"running\":true}"
    );
    assert_eq!(
        text("self-test"),
        "{\"extended\":{\"controller\":1,\"nsid\":7},\
         \"results\":[{\"extended\":false,\"result\":2,\"nsid\":0,\"hours\":9}]}"
    );
    assert_eq!(
        text("firmware"),
        "{\"active\":2,\"next\":1,\"images\":{\"2\":\"7265766973696f6eff\"}}"
    );
    assert_eq!(text("uncorrectable"), "{\"7\":[[8,4],[100,1]]}");
    assert_eq!(
        text("events"),
        "[{\"kind\":13,\"controller\":65535,\"timestamp\":25,\"data\":\"0101\"}]"
    );
    assert_eq!(
        text("reservations"),
        "{\"power_cycle\":4,\"namespaces\":{\"7\":{\"persists\":true,\"generation\":2,\"kind\":3,\
         \"holder\":\"686f73742d303030\",\"registrants\":[\
         {\"host\":\"686f73742d303030\",\"key\":\"00000000000000aa\"},\
         {\"host\":\"686f73742d313131\",\"key\":\"8000000000000000\"}]}}}"
    );
    assert_eq!(state().encode().len(), 11);
    assert_eq!(State::decode(&state().encode()), Ok(state()));
    let sanitize = Sanitize { command: 0x23, pattern: 1, phase: SanitizePhase::Running };
    let created = State { created: 3, sanitize: Some(sanitize), ..state() };
    assert_eq!(created.encode()["created"], b"3");
    let text = "{\"command\":35,\"pattern\":1,\"phase\":\"running\"}";
    assert_eq!(created.encode()["sanitize"], text.as_bytes());
    assert_eq!(State::decode(&created.encode()), Ok(created));
}

/// One event more than the log page has room for: 512 + 1241 * 26 = 32778 bytes.
fn too_many() -> String {
    let events = EventLog(std::iter::repeat_n(event(), 1241).collect());
    String::from_utf8(encode(&events)).unwrap()
}

/// The error of the records after one record was replaced.
fn error(key: &str, value: &str) -> String {
    let mut records = state().encode();
    records.insert(key.into(), value.into());
    State::decode(&records).expect_err(value).to_string()
}

#[test]
fn inconsistent_record_is_refused_with_its_field() {
    let changed = |key: &str, from: &str, to: &str| {
        let text = String::from_utf8(state().encode()[key].clone()).unwrap();
        assert!(text.contains(from), "{text}");
        error(key, &text.replace(from, to))
    };
    let cases = [
        (
            changed("drive", "FL0123456789ABCDEF", ""),
            "drive: serial: invalid value \"\": expected 1 to 20",
        ),
        (changed("drive", "farlane NVMe", "f\u{e4}rlane"), "drive: model: "),
        (
            changed("drive", "\"max_namespaces\":16", "\"max_namespaces\":1025"),
            "'1025' is outside 1 to 1024",
        ),
        (
            changed("drive", "\"capacity\":1073741824", "\"capacity\":9"),
            "drive: capacity: '9' is below",
        ),
        (
            changed("drive", "123456789abcdef0", "123456789abcdeF0"),
            "expected 16 lower-case hexadecimal",
        ),
        (changed("drive", "\"model\"", "\"modell\""), "unknown field `modell`"),
        (
            changed("namespace/1", "\"block_shift\":12", "\"block_shift\":8"),
            "'8' is outside 9 to 16",
        ),
        (
            changed("namespace/1", "\"blocks\":2048", "\"blocks\":0"),
            "namespace/1: blocks: '0' is outside",
        ),
        (
            changed("namespace/1", "false}", "false,\"metadata\":16}"),
            "metadata: invalid value '16'",
        ),
        (
            changed("namespace/1", "false}", "false,\"extended\":true}"),
            "extended: 'true' needs metadata",
        ),
        (
            changed("namespace/1", "false}", "false,\"protection\":1}"),
            "protection: invalid value '1' with metadata 0",
        ),
        (
            changed("namespace/1", "false}", "false,\"metadata\":8,\"protection\":8}"),
            "protection: invalid value '8' with metadata 8: expected 0, ",
        ),
        (
            changed("namespace/1", "false}", "false,\"rest\":18446744073709551615}"),
            "rest: '18446744073709551615' makes",
        ),
        (changed("namespace/1", "namespace-1", "../x"), "namespace/1: contents: "),
        (changed("namespace/1", "namespace-1", ".x"), "contents: invalid name \".x\""),
        (changed("namespace/7", "namespace-7", "namespace-1"), "contents: another namespace has"),
        (
            changed("attachments", "1,2", "1,65520"),
            "attachments: CNTLID: '65520' is outside 1 to 65519",
        ),
        (
            changed("attachments", "\"1\"", "\"2\""),
            "attachments: NSID: the drive has no namespace 2",
        ),
        (changed("features", "\"feature\":4", "\"feature\":7"), "feature: 7 cannot be saved"),
        (changed("features", "\"nsid\":0", "\"nsid\":1"), "features: nsid: '1' is outside 0 to 0"),
        (changed("features", "350", "2097152"), "value: invalid '2097152' for feature 4"),
        (changed("health", "\"errors\":2", "\"errors\":-2"), "record health: "),
        (
            changed("health", "\"reads\":3", "\"reads\":340282366920938463463374607431768211455"),
            "health: reads: ",
        ),
        (
            error("sanitize", "{\"command\":4,\"pattern\":1,\"phase\":\"running\"}"),
            "sanitize: command: '4' starts no sanitize operation",
        ),
        (changed("self-test", "\"result\":2", "\"result\":10"), "result: '10' is outside 0 to 9"),
        (error("uncorrectable", "{\"2\":[[8,4]]}"), "NSID: the drive has no namespace 2"),
        (error("uncorrectable", "{\"1\":[[2047,2]]}"), "ranges end at 2049, but namespace 1 has"),
        (error("uncorrectable", "{\"1\":[[8,4],[12,1]]}"), "first block: '12' is outside 13 to"),
        (error("uncorrectable", "{\"1\":[[8,0]]}"), "blocks: '0' is outside 1 to 65536"),
        (
            error("uncorrectable", "{\"1\":[[0,60000]],\"7\":[[0,5537]]}"),
            "'5537' is outside 1 to 5536",
        ),
        (
            error("uncorrectable", "{\"1\":[]}"),
            "uncorrectable: NSID 1: the list of ranges is empty",
        ),
        (changed("reservations", "\"7\"", "\"2\""), "NSID: the drive has no namespace 2"),
        (
            changed("reservations", "\"kind\":3", "\"kind\":7"),
            "NSID 7: kind: '7' is outside 0 to 6",
        ),
        (changed("reservations", "\"kind\":3", "\"kind\":0"), "holder: does not match kind 0"),
        (changed("reservations", "\"kind\":3", "\"kind\":5"), "holder: does not match kind 5"),
        (changed("reservations", "313131", "303030"), "expected ascending hosts"),
        (changed("reservations", "r\":\"68", "r\":\"67"), "holder: expected a registrant"),
        (changed("reservations", "313131", "31"), "invalid value of 6 bytes: expected 8 or 16"),
        (changed("events", "13", "5"), "events: kind: invalid value '5': expected 1 to 4"),
        (changed("events", "65535", "65520"), "events: controller: '65520' is outside 1 to 65519"),
        (changed("events", "0101", "01"), "events: bytes of data: '1' is outside 2 to 2"),
        (changed("events", "0101", "010"), "expected pairs of lower-case hexadecimal"),
        (
            error("events", &too_many()),
            "events: bytes of the page: '32778' is outside 512 to 32768",
        ),
        (error("namespace/17", "{}"), "record namespace/17: missing field"),
        (error("namespace/01", "{}"), "record namespace/01: unknown"),
        (error("unheard", "{}"), "record unheard: unknown: the records are drive"),
        (changed("firmware", "\"next\":1", "\"next\":3"), "firmware: next: slot 3 is empty"),
        (changed("firmware", "\"2\"", "\"4\""), "firmware: slot: '4' is outside 2 to 3"),
        (changed("firmware", "72", "0a"), "images: invalid image in slot 2: expected 8 to"),
        (changed("firmware", "ff", "fF"), "expected pairs of lower-case hexadecimal"),
    ];
    for (error, expected) in cases {
        assert!(error.contains(expected), "{error}\nexpected {expected}");
    }
    assert_eq!(
        State::decode(&Records::new()).expect_err("no drive").to_string(),
        "record drive: missing"
    );
}

#[test]
fn decode_ignores_records_of_the_store() {
    let mut records = state().encode();
    records.insert("contents/1".into(), vec![0xff]);
    assert_eq!(State::decode(&records), Ok(state()));
}

proptest! {
    #[test]
    fn any_bytes_do_not_panic(
        at in 0..11usize, start in 0..400usize, length in 0..8usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut records = state().encode();
        let record = records.values_mut().nth(at).unwrap();
        let start = start % record.len();
        let end = (start + length).min(record.len());
        record.splice(start..end, bytes);
        let _ = State::decode(&records);
    }

    #[test]
    fn contents_hold_as_many_blocks_as_fit(bytes: u64, shift in 9..=16u8, metadata: bool) {
        let metadata = if metadata { 8 } else { 0 };
        let format = Format { block_shift: shift, metadata, extended: false, protection: 0 };
        let blocks = format.blocks_in(bytes);
        prop_assert!(format.bytes(blocks) <= bytes.into());
        prop_assert!(format.bytes(blocks + 1) > bytes.into());
        let before = Namespace { blocks: bytes >> 9 | 1, block_shift: 9, ..namespace(3) };
        let after = before.with_format(format);
        prop_assert_eq!(after.bytes(), before.bytes());
        if after.blocks > 0 && metadata > 0 {
            let last = after.metadata_offset(after.blocks - 1);
            prop_assert_eq!(last + 8 + after.rest, after.bytes());
            prop_assert!(after.metadata_offset(0) >= after.blocks << shift);
        }
    }

    #[test]
    fn states_round_trip(
        blocks in 1..1_000_000u64, shift in 9..=16u8, names: ([u8; 16], [u8; 8], [u8; 16]),
        counters: (u64, u64, u64), metadata: bool, protection in 0..4u8, rest: u32,
    ) {
        let mut state = state();
        let (nguid, eui64, uuid) = names;
        let other = Namespace {
            blocks,
            block_shift: shift,
            nguid,
            eui64,
            uuid,
            metadata: if metadata { 8 } else { 0 },
            protection: if metadata { protection } else { 0 },
            rest: rest.into(),
            ..namespace(3)
        };
        state.drive.capacity = u64::MAX;
        state.namespaces.insert(3, other);
        state.health.units_read = u128::from(counters.0) << 60;
        state.health.busy_ps = counters.1.into();
        state.health.errors = counters.2 >> 1;
        prop_assert_eq!(State::decode(&state.encode()), Ok(state));
    }
}
