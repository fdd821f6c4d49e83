//! `--node`: one node of a plan.

use super::{Args, Failure};
use crate::node::{far_side, listening};
use crate::output::wrong_usage;
use crate::progress::Progress;
use live::Stop;
use plan::Planned;
use rig::{LiveOptions, LiveRun};
use rustix::event::{PollFd, PollFlags, poll};
use sim::transport::TransportConfig;
use sim::world::Attached;

/// Runs a host or a node. Returns the results of a host.
pub fn run(
    args: &Args,
    (name, plan): (&str, &Planned),
    options: &LiveOptions,
    (progress, stop): (&mut Progress, &Stop),
) -> Result<Option<LiveRun>, Failure> {
    check_addresses(args, plan);
    if let Some(host) = plan.hosts.iter().position(|host| host == name) {
        let drives = drives(plan).filter(|drive| drive.host == host);
        let peers = drives.map(|drive| {
            let text = address(args, plan, &drive.name).unwrap_or_else(|| {
                wrong_usage(format!("--address {}=ADDRESS is missing", drive.name))
            });
            far_side(&text, args.keys.protection())
        });
        let peers = peers.collect::<Result<Vec<_>, _>>()?;
        return rig::run_host(plan, host, peers, options, (progress, stop)).map(Some);
    }
    let station = plan.stations.iter().position(|station| station == name);
    let here: Vec<_> = drives(plan).filter(|drive| drive.station == station).collect();
    if here.is_empty() {
        let known = plan.hosts.iter().chain(&plan.stations).map(String::as_str);
        let mut known: Vec<_> = known.collect();
        known.sort_unstable();
        known.dedup();
        wrong_usage(format!("--node {name}: expected one of {}", known.join(", ")))
    }
    let mut nodes = Vec::new();
    for drive in &here {
        let text = address(args, plan, &drive.name)
            .unwrap_or_else(|| wrong_usage(format!("--address {}=ADDRESS is missing", drive.name)));
        let listen = listening(&text, args.keys.protection())?;
        let node = rig::serve_drive(plan, (drive.host, drive.at), &listen, options)?;
        eprintln!("drive {}: listening on {}", drive.name, node.address);
        nodes.push(node);
    }
    while !stop.is_set() {
        // A signal interrupts the wait.
        let _ = poll(&mut [PollFd::new(&stop.fd(), PollFlags::IN)], None);
    }
    Ok(None)
}

/// A drive behind a tunnel.
struct TunnelledDrive {
    name: String,
    host: usize,
    at: usize,
    station: Option<usize>,
}

/// The drives behind tunnels, in the order of the plan.
fn drives(plan: &Planned) -> impl Iterator<Item = TunnelledDrive> {
    let all = plan.config.hosts.iter().enumerate().flat_map(|(host, config)| {
        let ports = match &config.attached {
            Attached::Switch(switch) => &switch.ports[..],
            Attached::Direct(_) => &[],
        };
        let stations = |transport: &TransportConfig| transport.stations();
        let port = move |(at, port): (usize, &sim::world::PortConfig)| {
            (host, at, stations(&port.transport).map(|([_, station], _)| station))
        };
        ports.iter().enumerate().map(port)
    });
    let named = all.enumerate().map(|(number, (host, at, station))| {
        let name = plan.drives.get(number).cloned().unwrap_or_default();
        TunnelledDrive { name, host, at, station }
    });
    named.collect::<Vec<_>>().into_iter()
}

/// The address of a drive's node. The only drive of a plan has a default.
fn address(args: &Args, plan: &Planned, drive: &str) -> Option<String> {
    let given = args.address.iter().filter_map(|text| text.split_once('='));
    let found = given.into_iter().find(|(name, _)| *name == drive);
    let default = (plan.drives.len() == 1).then(|| "127.0.0.1".to_owned());
    found.map(|(_, address)| address.to_owned()).or(default)
}

/// Ends the process if `--address` names no drive of the plan.
fn check_addresses(args: &Args, plan: &Planned) {
    for text in &args.address {
        let name = text.split_once('=').map(|(name, _)| name);
        if !name.is_some_and(|name| plan.drives.iter().any(|drive| drive == name)) {
            let known = plan.drives.join(", ");
            wrong_usage(format!(
                "invalid value '{text}' for --address: expected DRIVE=ADDRESS, DRIVE one of {known}"
            ))
        }
    }
}
