//! Filters: verdicts, permanent blocks of a stream, counters.

mod gate;
mod meter;

use tsn::Clock;
use tsn::psfp::{
    Config, Filter, FilterError, Frame, GateConfig, GateEntry, GateError, MeterConfig, Reason,
    Verdict,
};
use wire::{Duration, Instant};

pub const PASS: Verdict = Verdict::Pass { ipv: None, drop_eligible: false };

pub fn us(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

/// A frame of `sdu` bytes behind the EtherType.
pub fn frame(sdu: u64) -> Frame {
    Frame { sdu, length: sdu + 18, drop_eligible: false }
}

pub fn entry(open: bool, us: u64) -> GateEntry {
    GateEntry { open, ipv: None, interval: Duration::from_us(us), octets: None }
}

pub fn gate(cycle: u64, entries: Vec<GateEntry>) -> GateConfig {
    GateConfig {
        base: Instant::ZERO,
        cycle: Duration::from_us(cycle),
        entries,
        close_on_invalid: false,
        close_on_excess: false,
        clock: Clock::default(),
    }
}

#[test]
fn long_frames_are_dropped_and_may_block_the_stream() {
    for (block_on_oversize, after) in [(false, PASS), (true, Verdict::Drop(Reason::Blocked))] {
        let config = Config { max_sdu: Some(100), block_on_oversize, ..Config::default() };
        let mut filter = Filter::new(&config).unwrap();
        assert_eq!(filter.take(us(0), frame(100)), PASS);
        assert_eq!(filter.take(us(1), frame(101)), Verdict::Drop(Reason::Oversize));
        assert_eq!(filter.take(us(2), frame(50)), after);
        let counters = filter.counters();
        let blocked = block_on_oversize.then_some((Reason::Oversize, us(1)));
        assert_eq!((counters.matching, counters.blocked), (3, blocked));
        let both = if block_on_oversize { (1, 2) } else { (2, 1) };
        assert_eq!((counters.passing_sdu, counters.not_passing_sdu), both);
    }
}

/// The filter checks the longest SDU first, then the gate, then the meter. A frame that one check
/// discards does not use octets or tokens of the next.
#[test]
fn max_sdu_gate_and_meter_are_checked_in_order() {
    let meter = MeterConfig { cir: 8_000_000, cbs: 118, ..MeterConfig::default() };
    let octets = GateEntry { octets: Some(150), ..entry(true, 100) };
    let config = Config {
        max_sdu: Some(120),
        block_on_oversize: false,
        gate: Some(gate(200, vec![octets, entry(false, 100)])),
        meter: Some(meter),
    };
    let mut filter = Filter::new(&config).unwrap();
    let steps = [
        (0, 121, Verdict::Drop(Reason::Oversize)),
        (0, 100, PASS), // 118 bytes: the bucket is empty, 100 octets are used.
        (1, 51, Verdict::Drop(Reason::Octets)),
        // 50 octets remain. The bucket has gained 1 byte in 1 us, too few for the frame.
        (1, 50, Verdict::Drop(Reason::Red)),
        (150, 50, Verdict::Drop(Reason::GateClosed)),
        (200, 100, PASS),
    ];
    for (at, sdu, expected) in steps {
        assert_eq!(filter.take(us(at), frame(sdu)), expected, "{sdu} bytes at {at} us");
    }
    let c = filter.counters();
    assert_eq!((c.matching, c.dropped, c.blocked), (6, 4, None));
    assert_eq!((c.passing_sdu, c.not_passing_sdu), (5, 1));
    assert_eq!((c.passing, c.not_passing), (3, 2));
    assert_eq!((c.red, c.yellow), (1, 0));
}

#[test]
fn invalid_filters_are_refused() {
    let config = Config { gate: Some(gate(100, vec![])), ..Config::default() };
    let error = Filter::new(&config).map(drop).unwrap_err();
    assert_eq!(error, FilterError::Gate(GateError::Empty));
    let meter = MeterConfig { eir: 1, ..MeterConfig::default() };
    let error = Filter::new(&Config { meter: Some(meter), ..Config::default() });
    let said = "the excess burst is 0 bytes with a rate above 0: no frame would ever conform \
                (MEF 10.3, 12.2)";
    assert_eq!(error.map(drop).unwrap_err().to_string(), said);
}
