//! `--node`: one node of a plan.

use super::{Args, Failure};
use crate::node::{far_side, listening};
use crate::output::wrong_usage;
use crate::progress::Progress;
use live::Stop;
use live::net::Peer;
use plan::{Planned, PlannedLink};
use rig::{LiveOptions, LiveRun};
use rustix::event::{PollFd, PollFlags, poll};

/// Runs a host or a node. Returns the results of a host.
pub fn run(
    args: &Args,
    (name, plan): (&str, &Planned),
    options: &LiveOptions,
    (progress, stop): (&mut Progress, &Stop),
) -> Result<Option<LiveRun>, Failure> {
    check_addresses(args, plan);
    let peers = |below: &dyn Fn(&PlannedLink<'_>) -> bool| {
        let links = plan.tunnel_links().filter(|link| below(link));
        let peers =
            links.map(|link| far_side(&address(args, plan, link.name), args.keys.protection()));
        peers.collect::<Result<Vec<Peer>, _>>()
    };
    if let Some(host) = plan.hosts.iter().position(|host| host == name) {
        let peers = peers(&|link| (link.host, link.link.above) == (host, None))?;
        return rig::run_host(plan, host, peers, options, (progress, stop)).map(Some);
    }
    let station = plan.stations.iter().position(|station| station == name);
    let far = |link: &PlannedLink<'_>| link.link.transport.stations().map(|([_, far], _)| far);
    let here: Vec<_> = plan.tunnel_links().filter(|link| far(link) == station).collect();
    if here.is_empty() {
        let known = plan.hosts.iter().chain(&plan.stations).map(String::as_str);
        let mut known: Vec<_> = known.collect();
        known.sort_unstable();
        known.dedup();
        wrong_usage(format!("--node {name}: expected one of {}", known.join(", ")))
    }
    // Every mistake is found before a node listens.
    let addresses = here.iter().map(|link| {
        let below = peers(&|below| (below.host, below.link.above) == (link.host, Some(link.at)))?;
        Ok((listening(&address(args, plan, link.name), args.keys.protection())?, below))
    });
    let addresses = addresses.collect::<Result<Vec<_>, Failure>>()?;
    let mut nodes = Vec::new();
    for (link, (listen, below)) in here.iter().zip(addresses) {
        let node = rig::serve_link(plan, link, below, &listen, options)?;
        let kind = if link.link.drive.is_some() { "drive" } else { "switch node" };
        eprintln!("{kind} {}: listening on {}", link.name, node.address);
        nodes.push(node);
    }
    while !stop.is_set() {
        // A signal interrupts the wait.
        let _ = poll(&mut [PollFd::new(&stop.fd(), PollFlags::IN)], None);
    }
    Ok(None)
}

/// The address of a drive's or switch node's node. The only link of a plan has a default. A missing
/// address ends the process.
fn address(args: &Args, plan: &Planned, name: &str) -> String {
    let given = args.address.iter().filter_map(|text| text.split_once('='));
    let found =
        given.into_iter().find(|(of, _)| *of == name).map(|(_, address)| address.to_owned());
    let default = (plan.links.len() == 1).then(|| "127.0.0.1".to_owned());
    found.or(default).unwrap_or_else(|| wrong_usage(format!("--address {name}=ADDRESS is missing")))
}

/// Ends the process if `--address` names nothing of the plan.
fn check_addresses(args: &Args, plan: &Planned) {
    for text in &args.address {
        let name = text.split_once('=').map(|(name, _)| name);
        if !name.is_some_and(|name| plan.links.iter().any(|link| link == name)) {
            let known = plan.links.join(", ");
            wrong_usage(format!(
                "invalid value '{text}' for --address: expected NAME=ADDRESS, NAME one of {known}"
            ))
        }
    }
}
