//! `farlane host`: offers remote endpoints to VMMs.

use super::Outcome;
use crate::node::{
    NodeArgs, check_links, instance, parse_mps, print_report, raise_descriptor_limit,
};
use crate::output::{note, warning};
use crate::push_args::PushArgs;
use crate::signals::stop_on_signals;
use crate::trace_args::TraceArgs;
use live::host::{HostEvent, HostNode, MachineSettings};
use live::net::Peer;
use live::{Clock, LinkWait};
use pcie::{enumerate, root};
use report::span;
use std::io;
use std::path::{Path, PathBuf};
use wire::Duration;
use wire::trace::NodeRole;

/// Offer remote endpoints to QEMU and other vfio-user clients
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane host --connect 192.0.2.7 --insecure --vfio-user /tmp/farlane\n  \
    farlane host --connect localhost --group 2 --hot-plug --vfio-user /tmp/two\n  \
    farlane host --connect raw:eth0,02:00:5e:10:00:01 --insecure --vfio-user /tmp/farlane\n\n\
    Endpoint N is offered on DIR/N/cntrl; the QEMU options are printed on stdout,\n\
    PCI address, serial number and size of each drive on stderr.\n\
    Ctrl-C tells the nodes and ends; a second one ends at once. Counters of errors\n\
    and traffic are printed at the end, and on SIGUSR1. SIGUSR2 stops a trace, and\n\
    starts it again.")]
pub struct Args {
    /// Device or switch nodes, one a downstream port: HOST[:PORT], or
    /// raw:INTERFACE,MAC for raw Ethernet. The port is 61420 without one; a
    /// name is resolved once, at the start, and all its addresses are tried
    #[arg(long = "connect", value_name = "ADDR", required = true)]
    connect: Vec<String>,
    /// Folder for the sockets
    #[arg(long, value_name = "DIR")]
    vfio_user: PathBuf,
    /// Offer the doorbell page for mmap and poll it: clients that demand it
    /// work, at the price of a busy core
    #[arg(long)]
    mmap_doorbells: bool,
    /// Let endpoints reach each other
    #[arg(long)]
    p2p: bool,
    /// Largest read request of endpoints
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = parse_mps)]
    mrrs: u16,
    /// Guard every TLP with an end-to-end CRC: one that does not fit closes its link and is counted
    #[arg(long)]
    ecrc: bool,
    /// The group that this host belongs to; `farlane move` gives a device to another
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    group: u16,
    /// Do not insist on every node at the start: endpoints of those that come
    /// later are offered then
    #[arg(long)]
    hot_plug: bool,
    /// How long to wait for the nodes at the start, such as 500ms; a number alone is seconds
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span::seconds)]
    wait: Duration,
    #[command(flatten)]
    push: PushArgs,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    trace: TraceArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let peers = args.node.peers(&args.connect)?;
    check_links(&peers);
    let options = args.node.settings_for(peers.iter().flat_map(Peer::addresses))?;
    let switch = options.switch(&peers, args.group, args.p2p)?;
    raise_descriptor_limit();
    let stop = stop_on_signals()?;
    let mps = usize::from(options.max_payload);
    let clock = Clock::start();
    let tracer = args.trace.open(NodeRole::Host, instance(), clock)?;
    let mut links = LinkWait::new(clock.now(), args.wait);
    if args.hot_plug {
        links = links.allow_missing(|text| note(text));
    }
    let settings = MachineSettings {
        root: root::Settings { max_payload: mps, ecrc: args.ecrc, ..root::Settings::default() },
        enumeration: enumerate::Settings {
            max_payload: mps,
            max_read_request: args.mrrs.into(),
            ecrc: args.ecrc,
            ..enumerate::Settings::default()
        },
        push: args.push.settings(),
    };
    let mut node = HostNode::start(
        clock,
        options.poller()?,
        settings,
        switch.traced(tracer.clone()),
        &args.vfio_user,
        args.mmap_doorbells,
        |switch, now| {
            if stop.is_set() {
                return Err(io::Error::other("interrupted"));
            }
            links.check(now, switch)
        },
    )?;
    print_options(&node.sockets());
    for (number, summary) in node.summaries().iter().enumerate() {
        eprintln!("endpoint {number}: {summary}");
    }
    eprintln!("ready");
    let control = || {
        args.trace.switch(&tracer, &stop);
        stop.request()
    };
    let ran = node.run(stop.fd(), control, print_event);
    let traced = args.trace.close(&tracer);
    print_report(&node.report());
    ran?;
    traced
}

/// The exact options for QEMU 10.1.1 or newer.
fn print_options(sockets: &[PathBuf]) {
    println!("-machine q35,memory-backend=mem");
    println!("-object memory-backend-memfd,id=mem,size=512M,share=on");
    for socket in sockets {
        println!("-device '{}'", device_option(socket));
    }
}

fn device_option(socket: &Path) -> String {
    let path = std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned());
    serde_json::json!({
        "driver": "vfio-user-pci",
        "socket": { "type": "unix", "path": path.to_string_lossy() },
    })
    .to_string()
}

fn print_event(event: HostEvent) {
    match event {
        HostEvent::Offered(number, path, summary) => {
            println!("-device '{}'", device_option(&path));
            eprintln!("endpoint {number}: offered: {summary}");
        }
        HostEvent::Report(report) => print_report(&report),
        HostEvent::DuplicateSerial(number, other) => warning(format_args!(
            "endpoints {other} and {number} have the same serial number: a guest takes them for \
             one drive and refuses the second; start one with another --serial"
        )),
        event => eprintln!("{}", line(&event)),
    }
}

/// One line an event.
fn line(event: &HostEvent) -> String {
    match event {
        HostEvent::VmmAttached(number) => format!("endpoint {number}: VMM attached"),
        HostEvent::VmmGone(number, why) => format!("endpoint {number}: VMM gone: {why}"),
        HostEvent::LinkDown(port, cause) => format!("port {port}: link down: {cause}"),
        HostEvent::LinkUp(port) => format!("port {port}: link up"),
        HostEvent::Refused(port, why) => format!("port {port}: no link to {why}"),
        HostEvent::Endpoint(number, news) => format!("endpoint {number}: {news}"),
        HostEvent::Unusable(port, why) => format!("port {port}: {why}"),
        HostEvent::Suppressed(rest) => rest.line("such lines", &line(&rest.last)),
        HostEvent::DuplicateSerial(..) | HostEvent::Offered(..) | HostEvent::Report(_) => {
            String::new()
        }
    }
}
