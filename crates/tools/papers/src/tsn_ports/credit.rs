//! The credit-based shaper: a worked example computed by hand, with and without a closed gate, and
//! the frame spacing of a simulation with ns-3.

use super::star::{Star, at, gates, once};
use super::{CaseLab, Figures, observed::us};
use report::Failure;
use sim::ethernet::port::{Algorithm, Counted, CreditBased};
use sim::network::TrafficConfig;
use wire::{Duration, Instant};

/// Bytes without tag of a frame that takes 1000 bytes on the line, preamble and gap included; and
/// the time to its last bit after a cable.
const FRAME: usize = 1000 - 8 - 12 - 4;
const FRAME_US: f64 = 79.04 + 0.05;
/// Start of the long frame at the port in us: the time of the frame and of a cable.
const BEGIN_US: f64 = 122.4 + 0.05;
const CLASS: usize = 6;

/// Returns a shaper whose credit also counts gaps.
pub(super) fn shaper(idle_slope: u64) -> Algorithm {
    Algorithm::CreditBased(CreditBased {
        idle_slope,
        counted: Counted::WithGap,
        rises_in_guard_band: true,
    })
}

pub(super) fn simulate(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let open = [(0xff, 10_000.0)];
    // The gate is closed for 100 us of 10 ms, from 220 us after the start on.
    let from = BEGIN_US + 220.0;
    let others: u8 = !(1 << CLASS);
    let closed = [(0xff, from), (others, 100.0), (0xff, 9_900.0 - from)];
    let [first, second] =
        example(lab.rows(&["first_starts", "second_starts"]), 20_000_000, true, &open, 80.0)?;
    // The second frame arrives while the first one, which was alone in its queue, is on the line.
    let [_, late] = example(lab.rows(&["second_enters_late"]), 20_000_000, true, &open, 150.0)?;
    // IEEE 802.1Q-2022, 8.6.8.2 d: 19.8 Mb/s of 100 % of the time equal 20 Mb/s of 99 %.
    let [_, risen] = example(lab.rows(&["second_starts_gate"]), 19_800_000, true, &closed, 80.0)?;
    let [_, frozen] =
        example(lab.rows(&["second_starts_gate_frozen"]), 19_800_000, false, &closed, 80.0)?;
    Ok(vec![
        ("first_starts", first),
        ("second_starts", second),
        ("second_enters_late", late),
        ("second_starts_gate", risen),
        ("second_starts_gate_frozen", frozen),
    ])
}

/// Returns the start of both frames, in microseconds after the long one. The first frame arrives 1
/// ns after the long one, the second frame later by the given microseconds.
fn example(
    lab: CaseLab<'_>,
    idle_slope: u64,
    rises_in_guard_band: bool,
    windows: &[(u8, f64)],
    apart_us: f64,
) -> Result<[f64; 2], Failure> {
    let mut star = Star::new(3, Duration::ZERO);
    let port = star.port();
    port.gates = Some(gates(windows));
    let counted = Counted::WithGap;
    let credit = CreditBased { idle_slope, counted, rises_in_guard_band };
    port.classes[CLASS].algorithm = Algorithm::CreditBased(credit);
    let senders = star.senders.clone();
    star.tree.stream(senders[0], once(1518, 0, Instant::ZERO));
    let shaped = [(1, 0.0), (2, apart_us)].map(|(sender, later)| {
        let enters = BEGIN_US + 0.001 + later;
        star.tree.stream(senders[sender], once(FRAME, CLASS as u8, at(enters - FRAME_US)))
    });
    let observed = lab.run(&mut star.tree, Duration::from_ms(2))?;
    let start = |stream| {
        let arrival = observed.arrival(stream, 0)?;
        Ok::<_, Failure>(us(arrival.at.since(at(BEGIN_US + FRAME_US))))
    };
    Ok([start(shaped[0])?, start(shaped[1])?])
}

/// Returns the spacing of the last frames in a burst of four.
pub(super) fn ns3(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let blocked = spacing(lab.rows(&["credit"]), shaper(30_000_000), None)?;
    // 30 Mb/s in all of the time are 40 Mb/s in three quarters of the time.
    let windows = [(0, 1_000.0), (1, 3_000.0)];
    let gated = spacing(lab.rows(&["credit_behind_a_gate"]), shaper(30_000_000), Some(&windows))?;
    let eligible = super::eligibility::shaper(30_000_000, 3_200);
    let eligible = spacing(lab.rows(&["eligibility"]), eligible, None)?;
    Ok(vec![("credit", blocked), ("credit_behind_a_gate", gated), ("eligibility", eligible)])
}

fn spacing(
    lab: CaseLab<'_>,
    algorithm: Algorithm,
    windows: Option<&[(u8, f64)]>,
) -> Result<f64, Failure> {
    let mut star = Star::new(1, Duration::ZERO);
    let port = star.port();
    port.gates = windows.map(gates);
    port.classes[0].algorithm = algorithm;
    let burst = TrafficConfig { burst: 4, ..once(400 - 4, 0, Instant::ZERO) };
    let burst = star.tree.stream(star.senders[0], burst);
    let observed = lab.run(&mut star.tree, Duration::from_ms(4))?;
    let [third, fourth] = [observed.arrival(burst, 2)?, observed.arrival(burst, 3)?];
    Ok(us(fourth.at.since(third.at)))
}
