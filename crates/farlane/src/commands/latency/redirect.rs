//! `farlane latency redirect`: two interfaces joined by XDP.

use crate::output::wrong_usage;
use crate::signals::stop_on_signals;
use latency_linux::redirect::{Attached, Mode, join};
use live::Control;
use report::{Failure, Outcome};
use rustix::event::{PollFd, PollFlags, poll};

/// Join two interfaces by XDP: what one receives, the other sends, round the kernel's bridge and
/// queueing disciplines
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
#[command(after_help = "Examples:\n  \
    farlane latency redirect in out\n  \
    farlane latency redirect eth1 eth2 --mode generic\n  \
    ip netns exec talker farlane latency redirect --pass near\n\n\
    It runs until Ctrl-C. The kernel takes the programs off when it ends, however it ends. Linux \
    5.9, CAP_BPF and CAP_NET_ADMIN are needed. docs/latency.md says what veth needs besides.")]
pub struct Args {
    /// An interface of this network namespace
    #[arg(value_name = "A")]
    a: String,
    /// The other one
    #[arg(value_name = "B", group = "what")]
    b: Option<String>,
    /// native: in the driver; generic: in the kernel, with any driver
    #[arg(long, value_name = "MODE", default_value_t)]
    mode: Mode,
    /// Redirect nothing, let every frame pass: for the peer of a veth that is redirected to
    #[arg(long, group = "what")]
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
            Some(b) if a == b => wrong_usage(format!("{a} cannot be joined with itself")),
            Some(b) if !self.pass => join(a, b, mode).map(Vec::from),
            b => [a].into_iter().chain(b).map(|on| Attached::pass(on, mode)).collect(),
        }
    }
}
