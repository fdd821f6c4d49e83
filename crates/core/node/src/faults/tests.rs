use super::*;
use proptest::prelude::*;

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

fn fault(text: &str) -> Fault {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_fault_has_one_text_form() {
    let all = fault("lba=100+8,nsid=2,late=5ms,for=0.1s,at=2000ms,count=3");
    assert_eq!(
        all,
        Fault {
            kind: FaultKind::Late(Duration::from_ms(5)),
            at: Duration::from_ms(2_000),
            length: Some(Duration::from_ms(100)),
            nsid: Some(2),
            lba: Some((100, 8)),
            count: Some(3),
        }
    );
    assert_eq!(all.to_string(), "late=5ms,at=2s,for=100ms,nsid=2,lba=100+8,count=3");
    for text in ["error=media", "poison,at=1ms", "lost-completion,count=2", "stop,for=1s"] {
        assert_eq!(fault(text).to_string(), text);
    }
    assert_eq!(fault("link-down,at=0s").to_string(), "link-down");
}

#[test]
fn invalid_faults_name_the_value_and_the_expected_form() {
    for (text, message) in [
        ("", "unknown word ''"),
        ("lat=5ms", "unknown word 'lat': late, error, lost-completion"),
        ("error=medium", "unknown error 'medium': media, read-only"),
        ("late", "late=: expected a time such as 5ms, up to 1000000s"),
        ("late=0s", "late=0s: expected a time"),
        ("poison,at=5", "at=5: expected a time"),
        ("stop,for=2000000s", "for=2000000s: expected a time"),
        ("late=1ms,late=2ms", "'late' is given twice"),
        ("late=1ms,poison", "expected exactly one of late, error"),
        ("at=1s", "expected exactly one of late, error"),
        ("stop=1s", "'stop' takes no value; found '1s'"),
        ("poison,lba=0+1", "'lba' applies only to late and error"),
        ("stop,count=2", "'count' does not apply to stop"),
        ("error=media,lba=5", "lba=5: expected FIRST+COUNT"),
        ("error=media,lba=5+0", "lba=5+0: expected FIRST+COUNT"),
        ("error=media,nsid=0", "nsid=0: expected a whole number above 0"),
    ] {
        let error = text.parse::<Fault>().expect_err(text).to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

fn any_fault() -> impl Strategy<Value = Fault> {
    let time = (1..=LONGEST.as_ps()).prop_map(Duration::from_ps);
    let kind = prop_oneof![
        time.clone().prop_map(FaultKind::Late),
        (0..STATUSES.len()).prop_map(|at| FaultKind::Error(STATUSES[at].1)),
        Just(FaultKind::LostCompletion),
        Just(FaultKind::Poison),
        Just(FaultKind::LinkDown),
        Just(FaultKind::Stop),
    ];
    let option = |most: u64| prop::option::of(1..=most);
    let at = prop_oneof![Just(Duration::ZERO), time.clone()];
    let lba = prop::option::of((any::<u64>(), 1..=u64::MAX));
    let parts = (kind, at, prop::option::of(time), option(u32::MAX.into()), lba, option(u64::MAX));
    parts.prop_map(|(kind, at, length, nsid, lba, count)| Fault {
        kind,
        at,
        length,
        nsid: nsid.filter(|_| kind.is_of_media()).map(|nsid| nsid as u32),
        lba: lba.filter(|_| kind.is_of_media()),
        count: count.filter(|_| kind.is_of_drive()),
    })
}

proptest! {
    #[test]
    fn every_fault_is_read_back(fault in any_fault()) {
        prop_assert_eq!(fault.to_string().parse(), Ok(fault));
    }

    #[test]
    fn any_text_is_a_fault_or_an_error(text in "[a-z=,+0-9-]{0,40}|\\PC{0,20}") {
        if let Ok(fault) = text.parse::<Fault>() {
            prop_assert_eq!(fault.to_string().parse(), Ok(fault));
        }
    }
}

#[test]
fn a_fault_acts_within_its_time_range_and_count() {
    let mut faults: Faults =
        [fault("error=media,at=2ms,for=3ms,nsid=1,lba=8+2,count=2"), fault("late=7ms,at=4ms")]
            .into_iter()
            .collect();
    let fails = |faults: &mut Faults, at, nsid, blocks| faults.of_access(ms(at), nsid, blocks);
    let media = Some(Error::Media);
    let late = Some(Duration::from_ms(7));
    for (at, nsid, blocks, expected) in [
        (1, 1, (8, 1), (None, None)),
        (2, 2, (8, 1), (None, None)),
        (2, 1, (6, 2), (None, None)),
        (2, 1, (10, 1), (None, None)),
        (2, 1, (0, 0), (None, None)),
        (2, 1, (0, 9), (None, media)),
        (4, 1, (9, 1), (late, media)),
        (4, 1, (9, 1), (late, None)),
        (900, 7, (9, 1), (late, None)),
    ] {
        assert_eq!(fails(&mut faults, at, nsid, blocks), expected, "{at} ms, {blocks:?}");
    }
    let begun: Vec<_> = std::iter::from_fn(|| faults.poll_begun()).map(|(at, _)| at).collect();
    assert_eq!(begun, [ms(2), ms(4)], "each fault begins once");
    let mut ended: Faults = [fault("error=media,at=2ms,for=3ms")].into_iter().collect();
    assert_eq!(fails(&mut ended, 5, 1, (0, 1)), (None, None), "the end is excluded");
}

#[test]
fn lost_completions_and_poison_act_once_by_default() {
    let mut faults: Faults =
        [fault("poison,at=1ms"), fault("lost-completion,count=2")].into_iter().collect();
    assert!(!faults.poison(ms(0)) && faults.poison(ms(1)) && !faults.poison(ms(2)));
    assert!(faults.act_on_writes(ms(2)));
    assert!(faults.lose_completion(ms(2)) && faults.lose_completion(ms(2)));
    assert!(!faults.lose_completion(ms(2)) && !faults.act_on_writes(ms(2)));
}

#[test]
fn the_condition_of_a_node_changes_at_the_planned_times() {
    use Condition::{LinkDown, Stopped, Working};
    let mut faults: Faults =
        ["link-down,at=2ms,for=4ms", "stop,at=4ms,for=1ms", "stop,at=9ms", "late=1ms,at=1ms"]
            .map(fault)
            .into_iter()
            .collect();
    let seen = [0, 2, 4, 5, 6, 9].map(|at| faults.condition(ms(at)));
    let next = [Some(2), Some(4), Some(5), Some(6), Some(9), None].map(|at| at.map(ms));
    let conditions = [Working, LinkDown, Stopped, LinkDown, Working, Stopped];
    for (at, seen) in seen.into_iter().enumerate() {
        assert_eq!(seen, (conditions[at], next[at]), "change {at}");
    }
    assert_eq!(std::iter::from_fn(|| faults.poll_begun()).count(), 3);
}
