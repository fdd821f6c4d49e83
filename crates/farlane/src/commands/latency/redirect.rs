//! `farlane latency redirect`: two interfaces joined by XDP.

use crate::output::wrong_usage;
use crate::signals::stop_on_signals;
use latency_linux::redirect::{Attached, Mode, join};
use live::Control;
use report::{Failure, Outcome};
use rustix::event::{PollFd, PollFlags, poll};

/// Forward frames between two interfaces by XDP, without bridge and queueing disciplines of the
/// kernel
#[derive(clap::Args, Debug)]
#[command(override_usage = "farlane latency redirect [OPTIONS] <INTERFACE> <SECOND|--pass>")]
#[command(group = clap::ArgGroup::new("work").required(true).multiple(true))]
#[command(after_help = "Examples:\n  \
    farlane latency redirect in out\n  \
    farlane latency redirect eth1 eth2 --mode generic\n  \
    ip netns exec talker farlane latency redirect --pass near\n\n\
    The command runs until Ctrl-C. The kernel removes the programs when the process ends. XDP needs \
    Linux 5.9, CAP_BPF and CAP_NET_ADMIN. docs/latency.md describes further needs of veth.")]
pub struct Args {
    /// Interface of this network namespace
    #[arg(value_name = "INTERFACE")]
    a: String,
    /// Second interface
    #[arg(value_name = "SECOND", group = "work")]
    b: Option<String>,
    /// Where the XDP programs run: native (in the driver) or generic (in the kernel, with any
    /// driver)
    #[arg(long, value_name = "MODE", default_value_t)]
    mode: Mode,
    /// Let every frame pass instead of forwarding it: for the peer of a veth that receives
    /// forwarded frames
    #[arg(long, group = "work")]
    pass: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let stop = stop_on_signals()?;
    let _attached = args.attach().map_err(Failure)?;
    let (a, mode) = (&args.a, args.mode);
    match (&args.b, args.pass) {
        (Some(b), false) => eprintln!("redirecting between {a} and {b} ({mode})"),
        (Some(b), true) => eprintln!("passing on {a} and {b} ({mode})"),
        (None, _) => eprintln!("passing on {a} ({mode})"),
    }
    while stop.request() != Control::Stop {
        match poll(&mut [PollFd::new(&stop.fd(), PollFlags::IN)], None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure(error.to_string())),
        }
    }
    Ok(())
}

impl Args {
    fn attach(&self) -> Result<Vec<Attached>, String> {
        let (a, mode) = (&self.a, self.mode);
        match &self.b {
            Some(b) if a == b => {
                wrong_usage(format!("expected two interfaces: '{a}' is given twice"))
            }
            Some(b) if !self.pass => join(a, b, mode).map(Vec::from),
            b => [a].into_iter().chain(b).map(|on| Attached::pass(on, mode)).collect(),
        }
    }
}
