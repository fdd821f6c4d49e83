//! The results of a live run as a report of a simulation, from which documents and pages are made.

use crate::LiveRun;
use crate::host::HostResult;
use plan::{Planned, PlannedLink};
use sim::measure::Breakdown;
use sim::world::{HostReport, Report, TunnelReport};
use wire::Instant;

impl LiveRun {
    /// Returns the results as a report without events and digest, and without what only the
    /// simulator sees: links, queues, streams.
    pub fn report(&self, plan: &Planned) -> Report {
        let end = |host: &HostResult| host.began + host.span;
        Report {
            digest: 0,
            events: 0,
            time: self.hosts.iter().map(end).max().unwrap_or(Instant::ZERO),
            hosts: self.hosts.iter().map(host).collect(),
            links: Vec::new(),
            tunnels: self.tunnels(plan),
            streams: Vec::new(),
            bulk: Vec::new(),
            handled: Vec::new(),
            retransmitted: 0,
            queues: Vec::new(),
            time_of_nodes: None,
        }
    }

    /// The tunnels of the hosts, named as in the simulation: link and direction.
    fn tunnels(&self, plan: &Planned) -> Vec<TunnelReport> {
        let own = |host: usize| {
            let links = plan.tunnel_links().filter(move |link| link.host == host);
            links.filter(|link| link.link.above.is_none())
        };
        let hosts = self.hosts.iter().enumerate();
        let counted = hosts.flat_map(|(number, host)| own(number).zip(&host.tunnels));
        let tunnel = |(link, counters): (PlannedLink<'_>, &switch::tunnel::Counters)| {
            let name = |way| format!("{} {way}", link.name);
            [
                TunnelReport {
                    name: name("down"),
                    frames: counters.frames_sent,
                    tlps: counters.tlps_sent,
                    ..TunnelReport::default()
                },
                TunnelReport {
                    name: name("up"),
                    frames: counters.frames_received,
                    tlps: counters.tlps_received,
                    ..TunnelReport::default()
                },
            ]
        };
        counted.flat_map(tunnel).collect()
    }
}

fn host(result: &HostResult) -> HostReport {
    let HostResult { tally, config_reads, commands, began, span, pushed, .. } = result;
    let is_empty = tally.latency.count() == 0;
    HostReport {
        latency: if is_empty { config_reads.clone() } else { tally.latency.clone() },
        root_port: sim::measure::Latency::default(),
        config_reads: config_reads.clone(),
        breakdown: Breakdown::default(),
        commands: *commands,
        total: wire::Duration::ZERO,
        bytes: tally.bytes,
        drive_bytes: tally.drive_bytes.clone(),
        verified: tally.verified,
        spurious: tally.spurious,
        mismatches: tally.mismatches,
        failures: tally.failures,
        conflicts: tally.conflicts,
        pushed: *pushed,
        began: *began,
        span: *span,
    }
}
