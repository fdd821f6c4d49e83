//! `farlane demo`: host and device nodes on one machine, without privileges.

pub(super) mod print;

use super::{Failure, Outcome};
use crate::node::waiting;
use crate::progress::Progress;
use crate::push_args::PushArgs;
use crate::trace_args::TraceArgs;
use analysis::commands::Command;
use live::Clock;
use live::attached::Switch;
use live::net::Address;
use load::initiator_host::InitiatorHost;
use load::latencies::{self, Latencies};
use load::local::{self, LocalLink, Node};
use load::{floor, verify};
use nvme::initiator::{Op, Settings};
use report::latency::Summary;
use report::span;
use switch::aggregate::Policy;
use wire::Duration;
use wire::trace::NodeRole;

/// Demonstrate topology, transactions and latencies on this machine
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  farlane demo\n  farlane demo --devices 2 --json\n  \
    farlane demo --cascade\n  farlane demo --aggregation per-tlp")]
pub struct Args {
    /// Print one JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Device nodes behind the upstream port, 1 to 8
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    devices: u8,
    /// Put a second switch behind the first
    #[arg(long)]
    cascade: bool,
    /// Largest payload of a TLP (Max_Payload_Size), a power of two from 128 to 4096
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = crate::node::parse_mps)]
    mps: u16,
    /// When TLPs leave in a frame: adaptive, per-tlp or wait=TIME, above 0 up to 10ms.
    /// docs/guide/aggregation.md describes the policies
    #[arg(long, value_name = "POLICY", default_value_t = Policy::Adaptive)]
    aggregation: Policy,
    #[command(flatten)]
    push: PushArgs,
    /// Samples of each latency, 100 to 5000
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=5_000))]
    count: u32,
    /// Poll for input this long before sleeping: lower latency, higher CPU load. A number alone is
    /// in microseconds
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = span::microseconds)]
    spin: Duration,
    /// Print every TLP, not only the first and the last of equal ones
    #[arg(long)]
    unfold: bool,
    /// Device nodes and a switch node have files of their own: FILE.device0, …
    #[command(flatten)]
    trace: TraceArgs,
}

/// Bytes of each drive.
const DRIVE: u64 = 64 << 20;
/// Bytes written, read back and compared on each drive.
const VERIFIED: usize = 8 << 20;

/// The results of the demo.
struct Findings {
    floor: Summary,
    direct: Latencies,
    tunnelled: Latencies,
    read: Command,
    write: Command,
    verified: u64,
    initiator: InitiatorHost<Switch>,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let clock = Clock::start();
    let waiting = waiting(args.spin);
    let mut progress = Progress::new();
    progress.show("raw round trips");
    let (n, target) = (args.count as usize, args.trace.target());
    // The floor is measured before, between and after the other latencies, because the speed of the
    // machine drifts.
    let mut floor = floor::measure(clock, waiting, n / 3 + 1)?;
    let (max_payload, aggregation) = (args.mps, args.aggregation);
    let push = args.push.settings();
    let link = LocalLink { clock, waiting, max_payload, aggregation, push, cipher: None };
    // The setup without switch and tunnel.
    let mut initiator = local::direct(link, Settings::default(), "FARLANE-DEMO-DIRECT", DRIVE)?;
    let direct = latencies::measure(&mut initiator, n, |activity| {
        progress.show(&format!("direct: {activity}"));
    })?;
    drop(initiator);
    progress.show("device nodes");
    let devices = (0..usize::from(args.devices))
        .map(|number| {
            let trace = target.for_node(&format!("device{number}"));
            Node::device(&local::loopback(), link, number, DRIVE, trace)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut addresses: Vec<Address> = devices.iter().map(|node| node.address.clone()).collect();
    let mut switches = Vec::new();
    if args.cascade {
        let trace = target.for_node("switch");
        let switch = Node::switch(link, addresses, trace)?;
        addresses = vec![switch.address.clone()];
        switches.push(switch);
    }
    let tracer = args.trace.open(NodeRole::Host, crate::node::instance(), clock)?;
    let mut initiator = local::host(link, Settings::default(), &addresses, tracer.clone())?;
    if initiator.drives.len() != usize::from(args.devices) {
        let found = initiator.drives.len();
        return Err(Failure(format!("{found} of {} drives found", args.devices)));
    }
    progress.show("transactions");
    let (read, write) = transactions(&mut initiator)?;
    floor.merge(&floor::measure(clock, waiting, n / 3 + 1)?);
    let tunnelled = latencies::measure(&mut initiator, n, |activity| {
        progress.show(&format!("tunnelled: {activity}"));
    })?;
    initiator.stop_observing();
    floor.merge(&floor::measure(clock, waiting, n / 3 + 1)?);
    let mut verified = 0;
    for drive in 0..initiator.drives.len() {
        progress.show(&format!("writing and verifying drive {drive}"));
        verified += verify(&mut initiator, drive, VERIFIED)?;
    }
    progress.done();
    // The read completes after the last doorbell, a posted write, so the trace contains the
    // doorbell.
    latencies::config_reads(&mut initiator, 1)?;
    let traced = args.trace.close(&tracer);
    let findings = Findings {
        floor: Summary::from(&floor),
        direct,
        tunnelled,
        read,
        write,
        verified,
        initiator,
    };
    if args.json {
        print::document(&findings);
    } else {
        print::text(&findings, args);
    }
    traced
}

/// Runs one 4 KiB read and one 4 KiB write at the root port, after a warm-up.
fn transactions(initiator: &mut InitiatorHost<Switch>) -> Result<(Command, Command), Failure> {
    let buffer = initiator.buffer(latencies::BYTES as usize)?;
    let mut last = |op| {
        let events =
            initiator.observe(|initiator| latencies::commands(initiator, op, buffer, 8))?;
        let command = latencies::commands_of(events).last();
        command.ok_or_else(|| Failure("no command found at the root port".into()))
    };
    Ok((last(Op::Read)?, last(Op::Write)?))
}
