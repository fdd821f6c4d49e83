//! `farlane device --vfio-user-endpoint`: serves the device of another program.

use super::{Args, addresses, serve_alone};
use crate::key_args::follow;
use crate::node::{listeners, print_report, raise_descriptor_limit};
use crate::output::wrong_usage;
use crate::sandbox_args::needs_of;
use crate::service;
use crate::signals::stop_on_signals;
use live::attached::ForeignDevice;
use live::net::ReservedAddress;
use live::{Clock, DeviceNode};
use report::{Failure, Outcome};
use std::path::Path;
use tracing::info;
use wire::frame::Role;

/// Serves the device at `socket`.
pub(super) fn run(args: &Args, socket: &Path) -> Outcome {
    let addresses = addresses(args)?;
    let [own] = &addresses[..] else {
        return wrong_usage("--vfio-user-endpoint: expected one --listen");
    };
    let options = args.node.settings_for(own)?;
    // One for each interrupt vector.
    raise_descriptor_limit();
    let stop = stop_on_signals()?;
    let reserve = |address| ReservedAddress::new(address, options.links()?);
    let reserved = own.iter().map(reserve).collect::<Result<_, _>>()?;
    let clock = Clock::start();
    // The sandbox allows no further connections.
    let device = ForeignDevice::connect(clock, socket, options.max_payload.into());
    let device = device.map_err(|error| Failure(error.to_string()))?;
    let mut needs = needs_of(&args.node, &options, &args.trace, own);
    let observed = args.observe.bind("device", &options, &mut needs)?;
    // Before anything starts threads.
    let restrictions = args.sandbox.enter(&needs)?;
    let serving = observed.start("device", &options)?;
    let _watch = follow(options.credentials.as_ref(), &stop);
    let (listener, further) = listeners(reserved)?;
    info!("device of {}: {}", socket.display(), device.description());
    let node =
        DeviceNode::new(clock, options.poller()?, listener, options.tunnel(Role::Device), device)?;
    let mut node = (further.into_iter().try_fold(node, DeviceNode::listening_with)?)
        .with(|node| node.in_group(args.group).with_rate_limit(options.limit()));
    info!("sandbox: {restrictions}");
    let control = || service::request(&stop);
    let ran = serve_alone(&mut node, &args.node, &serving.board, &stop, control);
    print_report("", &node.report());
    ran
}
