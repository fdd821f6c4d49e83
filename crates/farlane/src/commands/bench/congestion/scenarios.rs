//! The simulated scenarios.

use super::CongestionRun;
use crate::commands::rounded;
use report::Failure;
use sim::ethernet::Rate;
use sim::ethernet::port::RateStep;
use sim::flows::{self, BOTTLENECK, BOTTLENECK_PORT, FlowsConfig, incast, jain, star};
use sim::measure::{Latency, Summary};
use sim::transport::{RawConfig, TransportConfig};
use sim::workload::{Fio, Rw, Workload};
use sim::world::{Attached, SwitchConfig};
use sim::{Config, World};
use stats::random::Probability;
use switch::raw::Settings;
use wire::{Duration, Instant};

/// Rate of every line in bits per second.
const LINE: u64 = 10_000_000_000;
/// The delay target of several scenarios: 8 us of propagation; the remaining 17 us are for queues.
const TARGET: &str = "swift=25us";

/// A simulation.
pub struct Scenario {
    kind: Kind,
    description: String,
    congestion: &'static str,
    flows: usize,
}

enum Kind {
    /// The bottleneck has 10, 2 and 10 Gb/s, for 5 ms each.
    Step,
    /// Flows start one after the other, separated by this time.
    Fair(Duration),
    /// Every cable loses this share of frames, in parts per million.
    Loss(u32),
    /// The bottleneck has a constant rate.
    Steady,
    /// Drives answer a host over a cable of this rate, in bits per second.
    Nvme(u64),
}

const fn ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

/// Returns all scenarios, in the order of the table.
pub fn all() -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut add = |kind, description: &str, congestion, flows| {
        all.push(Scenario { kind, description: description.to_owned(), congestion, flows });
    };
    for flows in [1, 4] {
        for congestion in [TARGET, "swift", "none"] {
            add(Kind::Step, "10, 2, 10 Gb/s", congestion, flows);
        }
    }
    for (description, apart) in [("together", 0), ("300 us apart", 300)] {
        for congestion in [TARGET, "swift"] {
            for flows in [2, 4, 8] {
                add(Kind::Fair(Duration::from_us(apart)), description, congestion, flows);
            }
        }
    }
    for (description, ppm) in [("no loss", 0), ("0.1 % lost", 1_000), ("1 % lost", 10_000)] {
        add(Kind::Loss(ppm), description, TARGET, 1);
    }
    add(Kind::Steady, "rate limit", "rate=5G", 1);
    for (description, rate) in [("NVMe reads", LINE), ("NVMe reads, 2 Gb/s", 2_000_000_000)] {
        for congestion in ["swift=40us", "none"] {
            add(Kind::Nvme(rate), description, congestion, 4);
        }
    }
    all
}

impl Scenario {
    pub fn name(&self) -> String {
        format!("{}, {}, {} flows", self.description, self.congestion, self.flows)
    }

    /// Runs the simulation.
    pub fn run(&self) -> Result<CongestionRun, Failure> {
        match self.kind {
            Kind::Nvme(rate) => self.nvme(rate),
            _ => self.elastic(),
        }
    }

    fn blank(&self, waits: Summary, longest: Duration) -> CongestionRun {
        let scenario = match self.kind {
            Kind::Step => "step",
            Kind::Fair(_) => "fairness",
            Kind::Loss(_) => "loss",
            Kind::Steady => "rate",
            Kind::Nvme(_) => "nvme",
        };
        CongestionRun {
            scenario,
            what: self.description.clone(),
            congestion: self.congestion.to_owned(),
            flows: self.flows,
            wait_p99_us: us(waits.p99_ns),
            wait_max_us: us(longest.as_ns()),
            ..CongestionRun::default()
        }
    }

    fn config(&self) -> Result<FlowsConfig, Failure> {
        let congestion = control(self.congestion)?;
        let apart = match self.kind {
            Kind::Fair(apart) => apart,
            _ => Duration::ZERO,
        };
        let time = match self.kind {
            Kind::Step => 15,
            Kind::Loss(_) => 50,
            _ => 20,
        };
        let mut config = incast(self.flows, congestion, apart, Duration::from_ms(time));
        match self.kind {
            Kind::Step => {
                let steps = [(0, LINE), (5, 2_000_000_000), (10, LINE)];
                let step = |(at, bits_per_second)| RateStep { at: ms(at), bits_per_second };
                config.network = star(self.flows, Rate::G10, steps.map(step).to_vec());
            }
            Kind::Loss(ppm) => {
                let faults = config.network.cables.iter_mut().flat_map(|cable| &mut cable.faults);
                for (faults, seed) in faults.zip(1..) {
                    faults.loss = Probability::from_ppm(ppm).expect("a share");
                    faults.seed = seed;
                }
            }
            _ => {}
        }
        Ok(config)
    }

    fn elastic(&self) -> Result<CongestionRun, Failure> {
        let config = self.config()?;
        let report = flows::run(&config).map_err(|error| Failure(error.to_string()))?;
        let end = Instant::ZERO + config.time;
        // The figures leave out the start: 10 ms for `fairness` and `step`, otherwise 1 ms.
        let from = if matches!(self.kind, Kind::Fair(_)) { ms(10) } else { ms(1) };
        let from = if matches!(self.kind, Kind::Step) { ms(10) } else { from };
        let longest = match self.kind {
            Kind::Fair(_) => report.longest_wait(from, end),
            _ => longest(&report.waits),
        };
        let mut run = self.blank(report.waits.summary(), longest);
        run.bits_per_s = report.line_rate(BOTTLENECK, from, end);
        run.utilisation_percent = Some(rounded(run.bits_per_s as f64 * 100.0 / LINE as f64, 1));
        if let Kind::Step = self.kind {
            let back = report.time_to_rate(BOTTLENECK, LINE / 10 * 9, from);
            run.back_us = back.map(|span| us(span.as_ns()));
        }
        if let Kind::Fair(_) = self.kind {
            run.jain = Some(jain(&report.delivered(from, end)) as f64 / 1e3);
        }
        run.dropped = report.dropped;
        run.retransmitted = report.senders.iter().map(|sender| sender.retransmitted).sum();
        run.digest = format!("{:016x}", report.digest);
        Ok(run)
    }

    fn nvme(&self, rate: u64) -> Result<CongestionRun, Failure> {
        let failure = |error: sim::world::Error| Failure(error.to_string());
        let config = drives(self.flows, rate, control(self.congestion)?);
        let mut world = World::new(&config).map_err(failure)?;
        let (bridge, port) = BOTTLENECK_PORT;
        world.watch(bridge, port);
        let report = world.run().map_err(failure)?;
        let host = &report.hosts[0];
        if host.mismatches + host.failures > 0 {
            return Err(Failure("blocks have wrong data".into()));
        }
        let (waits, dropped) = world.waits().expect("the port is watched");
        let mut run = self.blank(waits.summary(), longest(&waits));
        let load = report.links.iter().find(|link| link.name == "bridge 0 port 0 to station 0");
        let load = load.expect("the host's cable").load;
        let bits = u128::from(8 * (load.bytes + 12 * load.packets));
        run.bits_per_s = (bits * 1_000_000_000_000 / u128::from(host.span.as_ps())) as u64;
        run.utilisation_percent = Some(rounded(run.bits_per_s as f64 * 100.0 / rate as f64, 1));
        let commands = host.latency.summary();
        run.command_p50_us = Some(us(commands.p50_ns));
        run.command_p99_us = Some(us(commands.p99_ns));
        run.dropped = dropped;
        run.retransmitted = world.retransmitted();
        run.digest = format!("{:016x}", report.digest);
        Ok(run)
    }
}

fn control(text: &str) -> Result<switch::congestion::Config, Failure> {
    text.parse().map_err(|error: switch::congestion::UnknownCongestion| Failure(error.to_string()))
}

/// Builds `count` nodes, each with one drive without latency. One host reads from them: 64 KiB
/// reads, 16 in flight per drive.
fn drives(count: usize, rate: u64, congestion: switch::congestion::Config) -> Config {
    let raw = |station| {
        let settings = Settings { congestion, ..Settings::new(0) };
        TransportConfig::Raw(RawConfig { stations: [0, station], priority: 0, settings })
    };
    let fio = Fio {
        runtime: Some(Duration::from_ms(10)),
        time_based: true,
        numjobs: count,
        size: (count as u64) << 20,
        ..Fio::new(Rw::RandRead, 64 << 10, 16)
    };
    let mut config = Config::nvme_tsn_tunnel(Workload::Fio(fio), raw(1));
    let Attached::Switch(switch) = &mut config.hosts[0].attached else { unreachable!("a tunnel") };
    let port = switch.ports[0].clone();
    let ports = (1..=count).map(|station| {
        let mut port = port.clone();
        port.transport = raw(station);
        port.drive.timing = sim::drive::Timing::NULL;
        port.drive.serial = format!("NULL-{station}");
        port.drive.reads_in_flight = 16;
        port
    });
    *switch = SwitchConfig::new(256, ports.collect());
    let steps = vec![RateStep { at: Instant::ZERO, bits_per_second: rate }];
    config.network = star(count, Rate::G10, steps);
    config
}

fn longest(waits: &Latency) -> Duration {
    Duration::from_ns(waits.summary().max_ns)
}

fn us(ns: u64) -> f64 {
    rounded(ns as f64 / 1e3, 1)
}
