//! Tests with artificial runs: equal ones, and ones that differ in one place.

use super::*;
use crate::commands::{Direction, Step, StepKind, Transfer};
use stats::random::Random;
use wire::Instant;
use wire::nvme::Status;

/// The times of a command's segments in nanoseconds, in the order of a Read.
const READ: [u64; 6] = [36_000, 35_000, 1_400, 1_300, 0, 2_500];

fn command(start: u64, segments: [u64; 6], status: u16) -> Command {
    use StepKind::{CqDoorbell, CqeWrite, DataWrite, MsiX, SqDoorbell, SqeFetch};
    let mut command = Command { queue: 1, ..Command::default() };
    command.entry.opcode = 2;
    command.transfer = Transfer::ToHost(4096);
    command.status = Some(Status::from_bits(status));
    command.start = Instant::from_ns(start);
    let mut at = start;
    let mut step = |at, kind, direction| {
        let (number, tlp, address, bytes, tag) = (0, "MWr32", 0, 4, None);
        let (length, at) = (16, Instant::from_ns(at));
        let status = wire::tlp::Status::Success;
        let from_push = false;
        let step = Step {
            at,
            number,
            kind,
            direction,
            tlp,
            address,
            bytes,
            length,
            tag,
            status,
            from_push,
        };
        command.traffic.add(&step);
        command.steps.push(step);
    };
    step(at, SqDoorbell, Direction::Down);
    let kinds = [SqeFetch, DataWrite, DataWrite, CqeWrite, MsiX, CqDoorbell];
    for (kind, ns) in kinds.into_iter().zip(segments) {
        at += ns;
        let down = kind == CqDoorbell;
        step(at, kind, if down { Direction::Down } else { Direction::Up });
    }
    command.end = Some(Instant::from_ns(at));
    command
}

/// A run of `n` Reads. The times of each segment are skewed, and correlated by one half with the
/// previous command. Segment `slower.0` takes `slower.1` per cent longer.
fn run(seed: u64, n: u64, slower: (usize, u64)) -> Side {
    let mut random = Random::new(seed);
    let (mut side, mut levels) = (Side::default(), [0i64; 6]);
    for number in 0..n {
        let mut segments = READ;
        for (index, (ns, level)) in segments.iter_mut().zip(&mut levels).enumerate() {
            *level = *level / 2 + random.normal(80);
            let tail = random.exponential(60) as i64;
            let share = if index == slower.0 { 100 + slower.1 } else { 100 };
            *ns = *ns * share / 100 * (1000 + *level + tail).max(1) as u64 / 1000;
        }
        side.add(&command(number * 100_000, segments, 0), &[]);
    }
    side
}

fn significant(compared: &Compared) -> Vec<&'static str> {
    let all = compared.pairs.iter().flat_map(|pair| &pair.differences);
    all.filter(|one| one.is_significant()).map(|one| one.measure.name).collect()
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let side = run(1, 300, (0, 0));
    let compared = compare(&side, &side, true);
    assert_eq!(significant(&compared), [""; 0]);
    // Duration and five segments; the sixth one is always 0, TLPs and bytes are always the same.
    assert_eq!(compared.tests, 6);
    assert_eq!(sentence(&compared), "Nothing differs significantly in 6 comparisons.");
}

/// At most about one of twenty pairs of equal runs seems to differ.
#[test]
fn equal_runs_seldom_differ() {
    let pairs = 60;
    let found = |pair: &u64| {
        let [a, b] = [2 * pair, 2 * pair + 1].map(|seed| run(seed, 400, (0, 0)));
        !significant(&compare(&a, &b, true)).is_empty()
    };
    let wrong = (0..pairs).filter(found).count();
    assert!((1..=7).contains(&wrong), "{wrong} of {pairs}");
}

#[test]
fn a_segment_that_takes_five_per_cent_more_is_found() {
    let found = |seed: u64| {
        let (a, b) = (run(2 * seed, 2000, (1, 5)), run(2 * seed + 1, 2000, (1, 0)));
        significant(&compare(&a, &b, true)).contains(&READ_DATA)
    };
    const READ_DATA: &str = "entry sent to first data: a round trip";
    let times = (0..8).filter(|seed| found(*seed)).count();
    assert_eq!(times, 8);
    let (a, b) = (run(1, 2000, (1, 5)), run(2, 2000, (1, 0)));
    let compared = compare(&a, &b, true);
    let text = sentence(&compared);
    assert!(text.starts_with("Read 4 KiB takes "), "{text}");
    assert!(text.contains(" us longer in A than in B (+"), "{text}");
    assert!(
        text.contains(", most of all in 'entry sent to first data: a round trip': +"),
        "{text}"
    );
    let text = sentence(&compare(&b, &a, true));
    assert!(text.contains(" us shorter in A than in B (-"), "{text}");
}

#[test]
fn types_of_one_run_alone_are_listed_and_failures_count() {
    let (mut a, mut b) = (run(1, 10, (0, 0)), run(2, 4, (0, 0)));
    // Status code 81h of the type 2h, an Unrecovered Read Error (section 4.6.1.2.3).
    a.add(&command(5_000_000, READ, (2 << 8 | 0x81) << 1), &[]);
    let mut flush = command(6_000_000, READ, 0);
    (flush.entry.opcode, flush.transfer, flush.end) = (0, Transfer::None, None);
    b.add(&flush, &[]);
    let compared = compare(&a, &b, true);
    assert_eq!(compared.alone, [vec![], vec![LoneType { kind: "Flush".into(), commands: 1 }]]);
    let [first, second] = &compared.pairs[0].kinds;
    assert_eq!((first.commands, first.failed, second.commands, second.failed), (11, 1, 4, 0));
    let n = compared.pairs[0].differences[0].n;
    assert_eq!((n, compared.tests), ([11, 4], 0), "four commands are too few");
    let end = "Nothing differs significantly in 0 comparisons; 1 type of command only in B.";
    assert_eq!(sentence(&compared), end);
}

#[test]
fn traffic_is_compared_and_places_if_they_are_the_same() {
    let [a, b] = [2u64, 1].map(|more| {
        let mut side = Side::default();
        for number in 0..40 {
            let mut command = command(number * 1000, READ, 0);
            command.traffic.tlps_up += more * 10;
            let (from_ns, to_ns, step) = (0, 10 + number as i64, StepKind::SqDoorbell);
            let stage = super::super::path::Stage::Network;
            let leg = Leg { stage, part: None, step, from_ns, to_ns };
            side.add(&command, &[leg]);
        }
        side
    });
    let compared = compare(&a, &b, true);
    let differences = |compared: &Compared, name| {
        let mut all = compared.pairs[0].differences.iter();
        all.find(|one| one.measure.name == name).copied()
    };
    assert_eq!(differences(&compared, "network").unwrap().medians.medians, [29, 29]);
    assert!(differences(&compared, "switch").is_none(), "always 0");
    assert!(differences(&compare(&a, &b, false), "network").is_none());
    let (expected, more) = (" has 10 more TLPs from the drive in A than in B", "(+66.7 %");
    let text = sentence(&compared);
    assert!(text.contains(expected) && text.contains(more), "{text}");
}

#[test]
fn long_runs_keep_a_part_of_every_stretch() {
    let mut sample = Sample::default();
    let n = 5 * MOST_SAMPLES as u64 / 2;
    (0..n).for_each(|number| sample.add([number; measures::COUNT]));
    let kept = sample.column(0);
    assert!((MOST_SAMPLES / 2..=MOST_SAMPLES).contains(&kept.len()) && kept.is_sorted());
    let half = kept.iter().filter(|number| **number < n / 2).count();
    assert!(half.abs_diff(kept.len() / 2) < 1000, "{half} of {}", kept.len());
}
