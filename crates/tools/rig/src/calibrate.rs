//! Fits the delays of live nodes on this machine: on raw TCP and configuration reads, never on NVMe
//! commands.

use crate::compare::{Quiet, simulated};
use crate::floor::{Floor, FloorRound};
use crate::run::{LiveOptions, run};
use live::{Stop, Waiting};
use load::{Console, TraceTarget};
use plan::{Machine, Plan, Planned};
use report::{Failure, time};
use std::collections::BTreeMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Two stations and a cable that limits nothing; `VALUES` are the fitted ones.
const PLAN: &str = r#"
machine = "farlane"
transport = "tcp"

[link]
rate = "100G"
processor = "serial"

[workload]
configreads = 2000
gap = "0us"
"#;

/// What was measured, as medians over the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measurements {
    /// Round trip of 64 bytes over TCP, in nanoseconds.
    pub round_trip_ns: u64,
    /// Processor time of both ends per round trip, in nanoseconds.
    pub processor_ns: u64,
    /// Processor time per byte of a stream with a copy on each side, in picoseconds: of the sender
    /// and of the receiver.
    pub stream_ps_per_byte: [u64; 2],
    /// Configuration read through the tunnel, in nanoseconds.
    pub config_read_ns: u64,
}

/// A fitted calibration.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The machine.
    pub machine: Machine,
    /// The measurements.
    pub measured: Measurements,
    /// Time of a turn that receives one frame, in nanoseconds.
    pub receive_ns: u64,
    /// Time of a call that sends one frame, in nanoseconds.
    pub send_ns: u64,
    /// Time to wake an idle node, in nanoseconds; 0 while nodes spin.
    pub wake_ns: u64,
    /// Bytes per second at which a node's processor sends or receives payload.
    pub copy_rate: u64,
    /// Time of each TLP that crosses a node, in nanoseconds.
    pub tlp_ns: u64,
}

/// Measures `rounds` rounds and fits. `spin` is the waiting mode as on the command line.
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
    let options = LiveOptions {
        waiting,
        verify: false,
        list: false,
        backing: BTreeMap::new(),
        credentials: None,
        trace: TraceTarget::default(),
    };
    let floor = Floor::new(&plan)?;
    let (mut floors, mut reads) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        console.progress(&format!("round {round} of {rounds}"));
        floors.push(floor.measure(waiting)?);
        let live = run(&plan, &options, (&mut Quiet, stop))?;
        if stop.is_set() {
            return Err(Failure("interrupted: nothing was written".into()));
        }
        reads.push(live.hosts[0].config_reads.summary().p50_ns);
    }
    console.done();
    let measured = medians(&floors, reads);
    fit(waiting, measured, this_machine(spin), stop)
}

/// Returns the medians of the rounds.
fn medians(floors: &[FloorRound], reads: Vec<u64>) -> Measurements {
    let of = |value: fn(&FloorRound) -> u64| median(floors.iter().map(value).collect());
    Measurements {
        round_trip_ns: of(|round| round.trips.latency.summary().p50_ns),
        processor_ns: of(|round| round.trips.near_cpu_ns + round.trips.far_cpu_ns),
        stream_ps_per_byte: [
            of(|round| round.stream.sender_ps_per_byte),
            of(|round| round.stream.receiver_ps_per_byte),
        ],
        config_read_ns: median(reads),
    }
}

/// Returns the median of values; 0 without values.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    stats::medians::median(&values).unwrap_or(0)
}

/// Fits the delays. A node that sleeps uses its processor for less than the round trip; the rest is
/// the wake-up. What a configuration read takes beyond raw TCP is the time of its TLPs.
fn fit(
    waiting: Waiting,
    measured: Measurements,
    machine: Machine,
    stop: &Stop,
) -> Result<Calibration, Failure> {
    let Measurements { round_trip_ns, processor_ns, stream_ps_per_byte, config_read_ns } = measured;
    let busy_ns = match waiting {
        Waiting::Block => processor_ns.min(round_trip_ns),
        Waiting::Spin(_) => round_trip_ns,
    };
    let per_byte: u64 = stream_ps_per_byte.iter().sum::<u64>() / 2;
    let mut fitted = Calibration {
        machine,
        measured,
        receive_ns: busy_ns / 4,
        send_ns: busy_ns / 4,
        wake_ns: (round_trip_ns - busy_ns) / 2,
        copy_rate: 1_000_000_000_000 / per_byte.max(1),
        tlp_ns: 0,
    };
    // The latency of a configuration read is linear in the time of a TLP.
    let read = |fitted: &Calibration| -> Result<u64, Failure> {
        let report = simulated(&built(&fitted.values())?, None, stop)?;
        Ok(report.latency_ns.p50)
    };
    let [without, with] = [0, 1000].map(|tlp_ns| read(&Calibration { tlp_ns, ..fitted.clone() }));
    let (without, with) = (without?, with?);
    let left = config_read_ns.saturating_sub(without);
    fitted.tlp_ns = left * 1000 / with.saturating_sub(without).max(1);
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
    pub fn values(&self) -> [(&'static str, String); 5] {
        let ns = |ns: u64| format!("{ns}ns");
        [
            ("link.tx_delay", ns(self.send_ns)),
            ("link.rx_delay", ns(self.receive_ns)),
            ("link.wake_time", ns(self.wake_ns)),
            ("link.copy_rate", format!("{}kB/s", self.copy_rate / 1000)),
            ("link.tlp_time", ns(self.tlp_ns)),
        ]
    }

    /// Returns the text of the file.
    pub fn toml(&self) -> String {
        let Measurements { round_trip_ns, processor_ns, stream_ps_per_byte, config_read_ns } =
            self.measured;
        let [sent, received] = stream_ps_per_byte;
        let values: String = self
            .values()
            .iter()
            .map(|(key, value)| format!("{} = \"{value}\"\n", key.trim_start_matches("link.")))
            .collect();
        format!(
            "# Written by `farlane calibrate`. A plan names this file: calibration = \"FILE\".\n\
             # Measured: 64-byte TCP round trip {}, {} of it processor time of both ends; stream\n\
             # with one copy per side {sent} ps (sender) and {received} ps (receiver) per byte;\n\
             # configuration read through the tunnel {}.\n\
             machine = \"farlane\"\n\n{}\n[link]\nprocessor = \"serial\"\n{values}",
            time(round_trip_ns as f64),
            time(processor_ns as f64),
            time(config_read_ns as f64),
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
            receive_ns: 2_500,
            send_ns: 2_500,
            wake_ns: 5_000,
            copy_rate: 2_500_000_000,
            tlp_ns: 700,
        };
        let plan = built(&machine.values()).unwrap();
        let config_read_ns = simulated(&plan, None, &stop).unwrap().latency_ns.p50;
        let measured = Measurements {
            round_trip_ns: 20_000,
            processor_ns: 10_000,
            stream_ps_per_byte: [500, 300],
            config_read_ns,
        };
        let fitted = fit(Waiting::Block, measured, Machine::default(), &stop).unwrap();
        let without_tlps = |fitted: &Calibration| {
            (fitted.receive_ns, fitted.send_ns, fitted.wake_ns, fitted.copy_rate)
        };
        assert_eq!(without_tlps(&fitted), without_tlps(&machine));
        // Histograms keep three digits.
        assert!(fitted.tlp_ns.abs_diff(machine.tlp_ns) < 10, "{}", fitted.tlp_ns);
        // A node that polls uses its processor all the time.
        let spins = Waiting::Spin(wire::Duration::from_us(50));
        let fitted = fit(spins, measured, Machine::default(), &stop).unwrap();
        assert_eq!((fitted.wake_ns, fitted.receive_ns), (0, 5_000));
        let text = fitted.toml();
        assert!(text.contains("[calibrated]") && text.contains("rx_delay = \"5000ns\""), "{text}");
    }
}
