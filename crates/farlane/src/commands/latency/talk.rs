//! `farlane latency talk`: sends frames on schedule.

use super::options::{MachineArgs, MarkArgs, ResultArgs, payload, positive, window};
use super::{Terminal, deliver};
use crate::node::far_side;
use crate::output::wrong_usage;
use latency::frame::ETHERTYPE;
use latency::schedule::{Schedule, Slot, Wrong};
use latency_linux::{Port, Remote, Rows, Run, Talk, Talker};
use linux::Interface;
use linux::time::now;
use live::net::{Address, Protection};
use report::{Failure, Outcome, span};
use wire::Duration;

/// Send frames on schedule to a listener
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane latency talk localhost --interval 1ms --count 10000 --reflect\n  \
    farlane latency talk raw:eth1,02:00:5e:10:00:01 --vlan 5 --priority 3 --cycle 500us \
    --window 200us,100us --offset 220us --fifo 80 --cpu 3\n\n\
    docs/latency.md explains the figures. Ctrl-C ends the run with its report.")]
pub struct Args {
    /// Listener: HOST[:PORT] for UDP, or raw:INTERFACE,MAC for Ethernet frames
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Time from one frame to the next, above 0 up to 4s
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = positive)]
    interval: Duration,
    /// Frames to send, 1 to 10000000
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=latency::MOST_FRAMES))]
    count: u64,
    /// Start of a cycle, in nanoseconds of CLOCK_TAI, at most an hour ahead, as base-time of
    /// tc-taprio(8)
    #[arg(long, value_name = "NS", default_value_t = 0)]
    base: u64,
    /// Time from --base to a frame; the others are due every --interval before and after it
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::time)]
    offset: Duration,
    /// Length of a cycle: time from the start of a window to the start of the next; requires
    /// --window
    #[arg(long, value_name = "TIME", value_parser = positive, requires = "window")]
    cycle: Option<Duration>,
    /// Window of these frames in each cycle, such as 200us,100us
    #[arg(long, value_name = "START,LENGTH", value_parser = window, requires = "cycle")]
    window: Option<(u64, u64)>,
    /// Allow frames that are due outside of their windows, such as to test a gate on the way. The
    /// report counts late frames
    #[arg(long, requires = "window")]
    outside: bool,
    /// Payload of a frame, 104 to 1452
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = payload)]
    size: u16,
    /// Expect every frame back; the listener needs --reflect
    #[arg(long)]
    reflect: bool,
    /// Exit with status 0 if at most this many frames are lost. By default the status is 1 if all
    /// are lost or if the network reports that nobody listens
    #[arg(long, value_name = "COUNT")]
    allow_losses: Option<u64>,
    /// VLAN tag of Ethernet frames; 0 is a tag with only a priority
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(0..=4094))]
    vlan: Option<u16>,
    #[command(flatten)]
    marks: MarkArgs,
    /// Wake up this long before a frame is due and poll the clock. A number alone is in
    /// microseconds
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::microseconds)]
    spin: Duration,
    /// Pass frames to the kernel this long before they are due, with a launch time (SO_TXTIME)
    #[arg(long, value_name = "TIME", value_parser = positive, conflicts_with = "spin")]
    launch: Option<Duration>,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    output: ResultArgs,
}

/// Limit of `--base` ahead of now, in ns: an hour.
const AHEAD: u64 = 3_600_000_000_000;

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    args.output.assign();
    let talk = Talk {
        schedule: args.schedule()?,
        count: args.count,
        size: args.size,
        reflect: args.reflect,
        vlan: args.vlan,
        spin: args.spin,
        launch: args.launch,
        marks: args.marks.marks(),
        machine: args.machine.machine(),
        heading: args.output.heading(&args.address),
    };
    let stop = Terminal::new()?;
    let (port, to) = args.port()?;
    let talker = Talker::open(&talk, port, to, &stop)?;
    let mut files = args.output.files()?;
    let run = talker.run(files.as_mut().map(|files| files as &mut dyn Rows))?;
    deliver(&run, files, &args.output)?;
    verdict(args, &run)
}

/// Fails if more frames are lost than `--allow-losses` allows. Without `--reflect` the talker counts
/// only losses that the kernel or the network reports.
fn verdict(args: &Args, Run { document, sent, .. }: &Run) -> Outcome {
    let faults = &document.faults;
    let (lost, how, listener) = match &document.counts {
        Some(counts) => (counts.lost, "come back from", "listen --reflect"),
        None => (faults.refused + faults.unreachable, "reach", "listen"),
    };
    // One answer is enough: the kernel limits the rate of ICMP (icmp(7), `icmp_ratelimit`).
    let most = match (&document.counts, faults.unreachable) {
        (None, 1..) => 0,
        _ => sent.saturating_sub(1),
    };
    if lost <= args.allow_losses.unwrap_or(most) {
        return Ok(());
    }
    let why = match (faults.unreachable, faults.refused) {
        (1.., _) => ": nobody listens there".to_owned(),
        (0, 1..) => format!(": {}", faults.refusal),
        (0, 0) => String::new(),
    };
    Err(Failure(format!(
        "{lost} of {sent} frames did not {how} {}{why}; start `farlane latency {listener}` \
         there first, or allow losses with --allow-losses",
        args.address
    )))
}

impl Args {
    fn schedule(&self) -> Result<Schedule, Failure> {
        let slot = self.cycle.zip(self.window).map(|(cycle, (opens, length))| Slot {
            cycle: cycle.as_ns(),
            opens,
            length,
        });
        let schedule = Schedule {
            base: self.base,
            interval: self.interval.as_ns(),
            offset: self.offset.as_ns(),
            slot,
        };
        let inside = |()| if self.outside { Ok(()) } else { schedule.check_inside() };
        let checked = schedule.check().and_then(inside);
        checked.unwrap_or_else(|wrong| match wrong {
            Wrong::Outside { .. } => wrong_usage(format!("{wrong}; allow it with --outside")),
            wrong => wrong_usage(wrong),
        });
        if self.base > now() + AHEAD {
            let base = self.base;
            wrong_usage(format!("--base {base}: expected ns of CLOCK_TAI, at most one hour ahead"))
        }
        Ok(schedule)
    }

    fn port(&self) -> Result<(Port, Remote), Failure> {
        let peer = far_side(&self.address, Protection::Insecure)?;
        Ok(match peer.address(0) {
            Address::Tcp(to) => {
                if self.vlan.is_some() {
                    wrong_usage(
                        "--vlan applies only to Ethernet frames; give the listener as raw:INTERFACE,MAC",
                    )
                }
                let port = Port::udp_towards(*to)?;
                port.report_unreachable()?;
                (port, Remote::Udp(*to))
            }
            Address::Raw(station) => {
                let interface = Interface::find(&station.interface)?;
                (Port::ethernet(&interface, ETHERTYPE)?, Remote::Ethernet(station.mac))
            }
            Address::Other(_) => {
                return Err(Failure(format!(
                    "{}: time stamps need UDP or raw Ethernet",
                    self.address
                )));
            }
        })
    }
}
