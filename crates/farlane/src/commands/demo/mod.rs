//! `farlane demo`: the main job on one machine, without privileges.

mod floor;
mod measure;
mod nodes;
mod verify;

use super::{Failure, Outcome};
use crate::latency::Summary;
use crate::links::{LinksUp, PATIENCE};
use crate::rig::{Rig, Settings};
use live::{Clock, NvmeDrive, Poller, Waiting};
use nodes::Node;
use std::net::SocketAddr;
use wire::Duration;

/// Show it all on this machine: topology, transactions, latencies
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  farlane demo\n  farlane demo --devices 2 --json\n  \
    farlane demo --cascade")]
pub struct Args {
    /// One JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Device nodes on the upstream port
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    devices: u8,
    /// Put a second switch behind the first
    #[arg(long)]
    cascade: bool,
    /// Largest TLP payload
    #[arg(long, value_name = "BYTES", default_value_t = 256)]
    mps: u16,
    /// Samples of each latency
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    samples: u32,
    /// Look for input this long before sleeping; 0 sleeps at once
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50)]
    spin: u64,
}

/// Bytes of each drive.
const DRIVE: u64 = 64 << 20;
/// Bytes written, read back and compared on each drive.
const VERIFIED: usize = 8 << 20;

/// Runs the command.
///
/// # Errors
/// One line for the user.
pub fn run(args: &Args) -> Outcome {
    let clock = Clock::start();
    let waiting = match args.spin {
        0 => Waiting::Block,
        us => Waiting::Spin(Duration::from_us(us)),
    };
    let n = args.samples as usize;
    let raw = floor::measure(clock, waiting, n)?;
    let direct = direct(clock, waiting, args)?;
    let devices = (0..usize::from(args.devices))
        .map(|number| Node::device(clock, waiting, args.mps, number, DRIVE))
        .collect::<Result<Vec<_>, _>>()?;
    let mut addresses: Vec<SocketAddr> = devices.iter().map(Node::address).collect();
    let mut switches = Vec::new();
    if args.cascade {
        switches.push(Node::switch(clock, waiting, args.mps, addresses.clone())?);
        addresses = switches.iter().map(Node::address).collect();
    }
    let switch = nodes::host_switch(args.mps, &addresses);
    let poller = Poller::new(waiting)?;
    let mut waiting_for = LinksUp::new(clock.now(), PATIENCE);
    let mut rig = Rig::start(clock, poller, &Settings::default(), switch, |switch| {
        waiting_for.look(clock.now(), switch)
    })?;
    let mut verified = 0;
    for drive in 0..rig.drives.len() {
        verified += verify::verify(&mut rig, drive, VERIFIED)?;
    }
    let tunnelled = measure::latencies(&mut rig, n)?;
    println!("{:#?}", rig.hierarchy);
    println!("verified {verified}");
    let show = |name: &str, s: &Summary| println!("{name} {s:?}");
    show("floor", &raw);
    for (name, l) in [("direct", &direct), ("tunnelled", &tunnelled)] {
        show(&format!("{name} config"), &l.config_read);
        show(&format!("{name} read"), &l.read_4k);
        show(&format!("{name} write"), &l.write_4k);
    }
    Ok(())
}

/// The same without switch and tunnel, nothing else.
fn direct(clock: Clock, waiting: Waiting, args: &Args) -> Result<measure::Latencies, Failure> {
    let namespace = crate::namespace::Namespace::ram(DRIVE);
    let mps = usize::from(args.mps);
    let drive = crate::node::drive(&[namespace], Some("FARLANE-DEMO-DIRECT"), "", mps)?;
    let poller = Poller::new(waiting)?;
    let mut rig: Rig<NvmeDrive> =
        Rig::start(clock, poller, &Settings::default(), drive, |_| Ok(true))?;
    measure::latencies(&mut rig, args.samples as usize)
}
