//! Fits the delays of live nodes on this machine: on raw TCP and configuration reads, never on NVMe
//! commands.

use crate::compare::{Quiet, simulated};
use crate::floor::Floor;
use crate::run::{LiveOptions, run};
use live::{Stop, Waiting};
use load::Console;
use plan::{Machine, Plan, Planned};
use report::{Failure, time};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::Duration;

/// Two stations and a cable that limits nothing.
const PLAN: &str = r#"
machine = "farlane"
transport = "tcp"

[link]
rate = "100G"
processor = "serial"

[drive]
mps = 4096

[workload]
configreads = 2000
gap = "0us"
"#;

/// What was measured: medians over the rounds, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measurements {
    /// Raw TCP while both ends poll: 64 bytes there, and each of [`REPLIES`] back.
    pub replies_ns: [u64; 3],
    /// Configuration read of a drive below the root port, without tunnel.
    pub direct_ns: u64,
    /// Configuration read through the tunnel while both nodes poll.
    pub polled_ns: u64,
    /// Configuration read through the tunnel with the requested `--spin`.
    pub waiting_ns: u64,
}

/// Bytes of the answers: of a small message, of three frames, of many frames.
const REPLIES: [usize; 3] = [64, 4096, 65_536];
/// Payload of a full frame.
const SEGMENT: u64 = 1448;
/// The waiting mode of nodes that poll.
const POLLED: Waiting = Waiting::Spin(Duration::from_ms(1));

/// A fitted calibration. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The machine.
    pub machine: Machine,
    /// The measurements.
    pub measured: Measurements,
    /// Time of a turn that sends or receives.
    pub turn_ns: u64,
    /// Time to wake an idle node; 0 if nodes poll.
    pub wake_ns: u64,
    /// Time per payload byte at each end, in picoseconds.
    pub copy_ps: u64,
    /// Time of each further frame of a turn.
    pub frame_ns: u64,
    /// Time of each TLP that crosses a node.
    pub tlp_ns: u64,
}

/// Measures `rounds` rounds and fits. `spin` is the waiting mode as in the file.
///
/// # Errors
/// If a measurement fails, or a signal ends it.
pub fn calibrate(
    waiting: Waiting,
    spin: &str,
    rounds: u64,
    (console, stop): (&mut dyn Console, &Stop),
) -> Result<Calibration, Failure> {
    let plan = built(&[])?;
    let direct = built(&[("transport", "direct".into())])?;
    let floor = Floor::new(&plan)?;
    let mut all: Vec<Measurements> = Vec::new();
    for round in 1..=rounds {
        console.progress(&format!("round {round} of {rounds}"));
        let mut one = Measurements::default();
        for (time, reply) in one.replies_ns.iter_mut().zip(REPLIES) {
            *time = floor.reply(POLLED, reply)?;
        }
        let read = |plan: &Planned, waiting| -> Result<u64, Failure> {
            let live = run(plan, &LiveOptions::new(waiting), (&mut Quiet, stop))?.whole()?;
            Ok(live.hosts[0].config_reads.summary().p50_ns)
        };
        one.direct_ns = read(&direct, POLLED)?;
        one.polled_ns = read(&plan, POLLED)?;
        one.waiting_ns = read(&plan, waiting)?;
        if stop.is_set() {
            return Err(Failure("interrupted: nothing was written".into()));
        }
        all.push(one);
    }
    console.done();
    fit(medians(&all), this_machine(spin), stop)
}

/// Returns the medians of the rounds.
fn medians(all: &[Measurements]) -> Measurements {
    let of = |value: &dyn Fn(&Measurements) -> u64| {
        let mut values: Vec<u64> = all.iter().map(value).collect();
        values.sort_unstable();
        stats::medians::median(&values).unwrap_or(0)
    };
    Measurements {
        replies_ns: [0, 1, 2].map(|reply| of(&|one| one.replies_ns[reply])),
        direct_ns: of(&|one| one.direct_ns),
        polled_ns: of(&|one| one.polled_ns),
        waiting_ns: of(&|one| one.waiting_ns),
    }
}

/// Fits the delays:
///
/// - a byte and a further frame: from the differences between the answers of raw TCP
/// - a TLP: a direct configuration read crosses root port and drive twice
/// - a turn: a quarter of what a polled configuration read takes besides
/// - the wake-up: half of what the read takes longer when nodes sleep
fn fit(measured: Measurements, machine: Machine, stop: &Stop) -> Result<Calibration, Failure> {
    let Measurements { replies_ns: [small, medium, large], direct_ns, polled_ns, waiting_ns } =
        measured;
    let [bytes, further] = [REPLIES[1] as u64, REPLIES[2] as u64]
        .map(|reply| [reply - REPLIES[0] as u64, reply.div_ceil(SEGMENT) - 1]);
    // Both ends spend c on each byte and f on each further frame:
    // 2 (c bytes + f frames) = difference.
    let [one, other] = [medium, large].map(|reply| reply.saturating_sub(small) as f64 / 2.0);
    let ([b1, f1], [b2, f2]) = (bytes.map(|n| n as f64), further.map(|n| n as f64));
    let determinant = b1 * f2 - b2 * f1;
    let solved = [(one * f2 - other * f1) / determinant, (b1 * other - b2 * one) / determinant];
    let [byte, frame] = match solved {
        [byte, frame] if byte >= 0.0 && frame >= 0.0 => [byte, frame],
        // One cost would be negative: take it as zero, with the whole difference on the frames.
        _ => [0.0, one / f1],
    };
    let mut fitted = Calibration {
        machine,
        measured,
        turn_ns: 0,
        wake_ns: waiting_ns.saturating_sub(polled_ns) / 2,
        copy_ps: (byte * 1000.0).round() as u64,
        frame_ns: frame.round() as u64,
        tlp_ns: direct_ns / 4,
    };
    let polled = Calibration { wake_ns: 0, ..fitted.clone() };
    let (report, _) = simulated(&built(&polled.values())?, stop)?;
    // Two nodes receive and send.
    fitted.turn_ns = polled_ns.saturating_sub(report.latency_ns.p50) / 4;
    Ok(fitted)
}

/// Builds the plan of the calibration with values.
fn built(values: &[(&str, String)]) -> Result<Planned, Failure> {
    let failed = |error: plan::KeyError| Failure(error.to_string());
    let mut plan = Plan::parse("calibration", PLAN).map_err(failed)?;
    for (key, value) in values {
        plan = plan.with(key, value, "--set").map_err(failed)?;
    }
    plan.build().map_err(failed)
}

impl Calibration {
    /// Returns the keys of a plan and their values.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let ns = |ns: u64| format!("{ns}ns");
        let mut all = vec![
            ("link.tx_delay", ns(self.turn_ns)),
            ("link.rx_delay", ns(self.turn_ns)),
            ("link.wake_time", ns(self.wake_ns)),
            ("link.frame_time", ns(self.frame_ns)),
            ("link.tlp_time", ns(self.tlp_ns)),
        ];
        if let Some(rate) = 1_000_000_000u64.checked_div(self.copy_ps) {
            all.push(("link.copy_rate", format!("{rate}kB/s")));
        }
        all
    }

    /// Returns the text of the file.
    pub fn toml(&self) -> String {
        let Measurements { replies_ns, direct_ns, polled_ns, waiting_ns } = self.measured;
        let [small, medium, large] = replies_ns.map(|ns| time(ns as f64));
        let [direct, polled, waiting] =
            [direct_ns, polled_ns, waiting_ns].map(|ns| time(ns as f64));
        let values: String = self
            .values()
            .iter()
            .map(|(key, value)| format!("{} = \"{value}\"\n", key.trim_start_matches("link.")))
            .collect();
        format!(
            "# Written by `farlane calibrate`. A plan names this file: calibration = \"FILE\".\n\
             # Measured: polled raw TCP, 64 bytes there and 64, 4096, 65536 back: {small}, {medium}, {large};\n\
             # configuration read direct {direct}, tunnelled {polled}, with this --spin {waiting}.\n\
             machine = \"farlane\"\n\n{}\n[link]\nprocessor = \"serial\"\n{values}",
            self.machine.toml()
        )
    }
}

/// Returns a description of this machine.
pub fn this_machine(spin: &str) -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let date = chrono::DateTime::from_timestamp(seconds as i64, 0).unwrap_or_default();
    Machine {
        processor: model.map_or_else(|| "unknown".into(), |(_, model)| model.trim().to_owned()),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        spin: spin.to_owned(),
        date: date.format("%Y-%m-%d").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fit_recovers_the_times_of_a_simulated_machine() {
        let stop = Stop::new().unwrap();
        let machine = Calibration {
            machine: Machine::default(),
            measured: Measurements::default(),
            turn_ns: 2_500,
            wake_ns: 5_000,
            copy_ps: 400,
            frame_ns: 300,
            tlp_ns: 200,
        };
        let read = |machine: &Calibration| {
            simulated(&built(&machine.values()).unwrap(), &stop).unwrap().0.latency_ns.p50
        };
        let way = |reply: u64| 2 * (reply * 400 / 1000 + (reply.div_ceil(SEGMENT) - 1) * 300);
        let waiting_ns = read(&machine);
        let polled_ns = read(&Calibration { wake_ns: 0, ..machine.clone() });
        let replies_ns = REPLIES.map(|reply| 10_000 + way(reply as u64));
        let measured = Measurements { replies_ns, direct_ns: 800, polled_ns, waiting_ns };
        let fitted = fit(measured, Machine::default(), &stop).unwrap();
        let text = fitted.toml();
        // Histograms keep three digits.
        for (found, right) in [
            (fitted.turn_ns, machine.turn_ns),
            (fitted.wake_ns, machine.wake_ns),
            (fitted.copy_ps, machine.copy_ps),
            (fitted.frame_ns, machine.frame_ns),
            (fitted.tlp_ns, machine.tlp_ns),
        ] {
            assert!(found.abs_diff(right) * 50 <= right, "{found} {right}: {text}");
        }
        assert!(text.contains("[calibrated]") && text.contains("tlp_time = \"200ns\""), "{text}");
    }
}
