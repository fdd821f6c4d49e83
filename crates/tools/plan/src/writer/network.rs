//! Networks without hosts: nodes, bridges, cables, streams and clocks.

use super::ports::{BITS, list, quoted, since_start};
use super::{Keys, time};
use sim::Config;
use sim::ethernet::bridge::Mode;
use sim::ethernet::port::{Algorithm, Committed};
use sim::ethernet::traffic::{Pattern, StreamId};
use sim::ethernet::{Rate, port};
use sim::network::{CableEnd, ClockNode, NetworkConfig, StationConfig, TimeConfig, TrafficConfig};
use tsn::StepPolicy;
use tsn::gptp::domain::interval;
use tsn::gptp::{Stamping, Walk};
use wire::Duration;

fn name(place: CableEnd) -> String {
    match place {
        CableEnd::Station(station, _) => format!("station-{station}"),
        CableEnd::Bridge(bridge, _) => format!("bridge-{bridge}"),
    }
}

impl Keys {
    /// Adds the keys of a network without hosts. Values that all stations or all cables share are
    /// in `[link]`.
    pub(super) fn network(&mut self, config: &Config) -> Result<(), String> {
        let network = &config.network;
        let (Some(runtime), [station, ..], [cable, ..]) =
            (config.runtime, &network.stations[..], &network.cables[..])
        else {
            return Err("a plan with hosts, or with runtime, stations and cables".into());
        };
        self.add("", "seed", config.seed);
        self.time("", "runtime", runtime);
        let (rate, propagation) = (network.port(cable.a).rate, cable.propagation);
        self.wire("link", rate, propagation);
        self.station("link", station);
        for (number, own) in network.stations.iter().enumerate() {
            let table = format!("nodes.station-{number}");
            self.table(&table);
            self.interface(&table, &own.ports[0]);
            self.clock(&table, network.time.as_ref().map(|time| &time.stations[number]));
        }
        for (number, bridge) in network.bridges.iter().enumerate() {
            let table = format!("bridges.bridge-{number}");
            let mode = match bridge.mode {
                Mode::StoreAndForward => "store-and-forward",
                Mode::CutThrough => "cut-through",
            };
            self.quoted(&table, "mode", mode);
            self.time(&table, "delay", bridge.delay);
            self.clock(&table, network.time.as_ref().map(|time| &time.bridges[number]));
        }
        for (number, cable) in network.cables.iter().enumerate() {
            let table = format!("cables.cable-{number}");
            self.quoted(&table, "a", name(cable.a));
            self.quoted(&table, "b", name(cable.b));
            let own = (network.port(cable.a).rate, cable.propagation);
            if own != (rate, propagation) {
                self.wire(&table, own.0, own.1);
            }
            for (own, other) in [(cable.a, cable.b), (cable.b, cable.a)] {
                if let CableEnd::Bridge(bridge, _) = own {
                    let table = format!("bridges.bridge-{bridge}.ports.{}", name(other));
                    self.interface(&table, network.port(own));
                }
            }
        }
        for (station, config) in network.stations.iter().enumerate() {
            for (number, traffic) in config.traffic.iter().enumerate() {
                let id = StreamId { station: station as u16, number: number as u8 };
                self.stream(id, traffic, committed(network, id));
            }
        }
        network.time.iter().for_each(|time| self.clocks(time));
        Ok(())
    }

    fn interface(&mut self, table: &str, port: &port::Config) {
        // Tables of schedules and shapers have no dots in their names.
        self.port(table, &table.replace('.', "-"), port);
        if let Some(preemption) = &port.preemption {
            self.time(table, "hold_advance", preemption.advance.hold);
        }
    }

    fn wire(&mut self, table: &str, rate: Rate, propagation: Duration) {
        self.quoted(table, "rate", rate.name());
        self.time(table, "propagation", propagation);
    }

    fn station(&mut self, table: &str, station: &StationConfig) {
        self.time(table, "tx_delay", station.tx_delay);
        self.time(table, "rx_delay", station.rx_delay);
        self.add(table, "tx_ring", station.tx_ring);
        let vlan = station.tagging.map(|tagging| tagging.vid.to_string());
        self.add(table, "vlan", vlan.unwrap_or_else(|| quoted("none")));
    }

    fn stream(&mut self, id: StreamId, traffic: &TrafficConfig, committed: Option<Committed>) {
        let table = &format!("traffic.stream-{}-{}", id.station, id.number);
        self.quoted(table, "from", name(CableEnd::station(id.station.into())));
        let to = traffic.listeners.iter().map(|to| quoted(name(CableEnd::station(to.station))));
        match &traffic.listeners[..] {
            [to] => self.quoted(table, "to", name(CableEnd::station(to.station))),
            _ => self.add(table, "to", list(to)),
        }
        self.size(table, "length", traffic.length as u64);
        self.time(table, "interval", traffic.pattern.interval());
        self.add(table, "burst", traffic.largest_burst());
        match traffic.pattern {
            // A recording has no file here.
            Pattern::Periodic(_) | Pattern::Recorded(_) => {}
            Pattern::Poisson(_) => self.quoted(table, "pattern", "poisson"),
            Pattern::Normal { deviation, .. } => {
                self.quoted(table, "pattern", "normal");
                self.time(table, "deviation", deviation);
            }
            Pattern::Uniform { spread, .. } => {
                self.quoted(table, "pattern", "uniform");
                self.time(table, "spread", spread);
            }
            Pattern::Sporadic { least, .. } => {
                self.quoted(table, "pattern", "sporadic");
                self.time(table, "least", least);
            }
            Pattern::Envelope { .. } => self.quoted(table, "pattern", "envelope"),
        }
        if traffic.pattern.is_random() {
            self.add(table, "seed", traffic.seed);
        }
        self.time(table, "start", since_start(traffic.start));
        self.quoted(table, "clock", if traffic.own_clock { "node" } else { "true" });
        self.add(table, "priority", traffic.priority);
        if let Some(committed) = committed {
            self.rate(table, "committed_rate", committed.rate);
            self.size(table, "committed_burst", committed.burst / BITS);
        }
    }

    fn clocks(&mut self, config: &TimeConfig) {
        const CLOCKS: &str = "clocks";
        let Some(node) = config.stations.first().and_then(|first| first.node.as_ref()) else {
            return self.quoted(CLOCKS, "sync", "off");
        };
        self.time(CLOCKS, "sync_interval", interval(node.domains[0].log_sync));
        self.time(CLOCKS, "pdelay_interval", interval(node.log_delay));
        self.time(CLOCKS, "delay_limit", node.most_delay);
        self.time(CLOCKS, "step", node.servo.step);
    }

    /// Adds the clock of a node.
    fn clock(&mut self, table: &str, node: Option<&ClockNode>) {
        let Some(node) = node else { return };
        self.quoted(table, "clock_drift", format!("{}ppb", node.clock.drift_ppt / 1000));
        if let Some(Walk { step_ppt, every, limit_ppt }) = node.clock.walk {
            self.quoted(table, "clock_walk", format!("{}ppb", step_ppt / 1000));
            self.time(table, "clock_walk_every", every);
            self.quoted(table, "clock_walk_limit", format!("{}ppb", limit_ppt / 1000));
        }
        if !node.steps.is_empty() {
            let steps = node.steps.iter();
            let steps = steps.map(|(at, ps)| quoted(format!("{} {ps}ps", time(since_start(*at)))));
            self.add(table, "clock_steps", list(steps));
        }
        if let Some(own) = node.node.as_ref().and_then(|node| node.domains.first()) {
            self.add(table, "clock_priority", own.own.priority1);
        }
        self.time(table, "stamp_noise", node.noise);
        if node.stamping == Stamping::Software {
            self.quoted(table, "stamping", "software");
        }
        let policy = match node.on_step {
            StepPolicy::Rederived => "rederived",
            StepPolicy::Frozen => "frozen",
            StepPolicy::Burst => "burst",
        };
        self.quoted(table, "on_step", policy);
    }
}

/// Returns the committed rate and burst of a stream, if it has its own.
fn committed(network: &NetworkConfig, stream: StreamId) -> Option<Committed> {
    let bridges = network.bridges.iter().flat_map(|bridge| &bridge.ports);
    let ports = bridges.chain(network.stations.iter().flat_map(|station| &station.ports));
    let mut classes = ports.flat_map(|port| &port.classes);
    classes.find_map(|class| match &class.algorithm {
        Algorithm::Ats(shaper) => {
            shaper.streams.iter().find(|(id, _)| *id == stream).map(|(_, committed)| *committed)
        }
        _ => None,
    })
}
