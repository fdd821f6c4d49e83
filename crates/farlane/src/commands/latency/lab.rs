//! `farlane latency lab`: builds talker – bridge – listener, measures, and takes everything down.

use super::Terminal;
use super::options::positive;
use crate::commands::json;
use crate::gate_args::read_list;
use crate::output::{assign_stdout, wrong_usage};
use crate::progress::Progress;
use lab::{Boards, Bridge, Experiment, Far, Gates, Place, Stress, absolute, show};
use report::target::Target;
use report::{Failure, Outcome, span};
use std::path::PathBuf;
use switch::congestion::Rate;
use wire::Duration;

/// Build talker, bridge and listener in namespaces, measure, and take everything down
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane latency lab --bridge linux,macvtap\n  \
    farlane latency lab --bridge all --gate gates.txt --stress 3 --html lab.html\n  \
    farlane latency lab --bridge xdp --gate gates.txt --dry-run\n\n\
    It has to run as root, and touches only what it makes. What a lab left that was killed, the next \
    one takes down. docs/latency.md leads through it.")]
pub struct Args {
    /// The bridges; all stands for every kind
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_value = "linux", value_parser = kind)]
    bridge: Vec<Option<Bridge>>,
    /// Put the gate control list in FILE (base-time, sched-entry, cycle-time as tc-taprio(8)) at the
    /// bridge's port towards the listener
    #[arg(long, value_name = "FILE")]
    gate: Option<PathBuf>,
    /// Set the gates before the bridge has its ports
    #[arg(long, requires = "gate")]
    gate_first: bool,
    /// The VLAN of the frames
    #[arg(long, value_name = "ID", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=4094))]
    vlan: u16,
    /// Priority of the frames, 0 to 7: PCP of their tag, and their gate
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=7))]
    priority: u8,
    /// From one frame to the next; the cycle of --gate, or 2ms
    #[arg(long, value_name = "TIME", value_parser = positive)]
    interval: Option<Duration>,
    /// From the beginning of a cycle to a frame; a fifth of the window of --gate behind its
    /// beginning, or 0
    #[arg(long, value_name = "TIME", value_parser = span::time)]
    offset: Option<Duration>,
    /// Frames of a run
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=latency::MOST_FRAMES))]
    count: u64,
    /// Measure again with N parallel UDP streams of iperf3 beside the frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    stress: Option<u16>,
    /// Bits a second of each stream
    #[arg(long, value_name = "RATE", default_value = "10M", requires = "stress")]
    stress_rate: Rate,
    /// Read an NVMe drive behind the bridge meanwhile: without and with priority, and with --gate
    /// also gated by the nodes
    #[arg(long)]
    drive: bool,
    /// How long before a window's end a frame of a node of --drive has to end, in place of what the
    /// node measures
    #[arg(long, value_name = "TIME", requires = "drive", value_parser = span::microseconds)]
    gate_margin: Option<Duration>,
    /// Take this CPU from everything but the talker, by a cpuset partition of a control group
    #[arg(long, value_name = "CPU")]
    isolate: Option<usize>,
    /// Run the kernel's threads of softirqs and vhost as SCHED_FIFO of this priority, 1 to 99
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    kernel_fifo: Option<u8>,
    /// Drop one of so many frames on purpose
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    drop: Option<u32>,
    /// Further options of `farlane latency talk`, such as "--fifo 80 --cpu 1 --lock-memory"
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    talk: String,
    /// Further options of `farlane latency listen`
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    listen: String,
    /// Lead to a guest, which runs `farlane latency listen raw:INTERFACE --reflect --insecure
    /// --repeat`: behind an interface of this machine, or behind a tap device of the lab, with its
    /// MAC address, such as tap,52:54:00:12:34:56. The gates stand at the talker then
    #[arg(long, value_name = "INTERFACE,MAC", conflicts_with = "drive")]
    guest: Option<Far>,
    /// How long to wait for the guest's first answer
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = positive)]
    guest_wait: Duration,
    /// The lab's name: its namespaces are NAME-talker, NAME-bridge, NAME-listener
    #[arg(long, value_name = "NAME", default_value = "farlane")]
    name: Place,
    /// Print what would be done as a shell script, and do nothing
    #[arg(long, conflicts_with_all = ["json", "html"])]
    dry_run: bool,
    /// With --dry-run: print what is to be run on two boards, with these NICs of the talker's and of
    /// the bridge's board, and in a guest behind the bridge, whose MAC address --guest tap,MAC gives
    #[arg(long, value_name = "TALKER,BRIDGE", requires_all = ["dry_run", "guest"], conflicts_with_all = ["isolate", "kernel_fifo", "drop"])]
    boards: Option<Boards>,
    /// Keep every document (JSON) and every frame's row (Parquet) in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// One JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Also write a self-contained page with time series and histograms; with - to standard output,
    /// in place of the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
}

/// A kind of bridge, or all.
fn kind(text: &str) -> Result<Option<Bridge>, String> {
    if text == "all" {
        return Ok(None);
    }
    let found = Bridge::ALL.into_iter().find(|bridge| bridge.name() == text);
    let all = Bridge::ALL.map(Bridge::name).join(", ");
    found.map(Some).ok_or_else(|| format!("'{text}' is none of all, {all}"))
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    assign_stdout(args.json, &[("--html", args.html.as_ref())]);
    let experiment = args.experiment()?;
    experiment.check().unwrap_or_else(wrong_usage);
    let bridges = args.bridges();
    if args.dry_run {
        match &args.boards {
            Some(boards) => print!("{}", lab::boards::script(&experiment, &bridges, boards)),
            None => print!("{}", lab::script::script(&experiment, &bridges)),
        }
        return Ok(());
    }
    let stop = Terminal::new()?;
    let mut progress = Progress::new();
    let results = lab::run(&experiment, &bridges, &stop, &mut |what| progress.show(what))?;
    progress.done();
    if args.json {
        println!("{}", json(&results));
    } else {
        print!("{}", show::text(&results));
    }
    args.html.as_ref().map_or(Ok(()), |target| target.write(&show::page(&results)))?;
    let named: Vec<Bridge> = args.bridge.iter().copied().flatten().collect();
    results.failure(&named).map_or(Ok(()), |why| Err(Failure(why)))
}

impl Args {
    fn bridges(&self) -> Vec<Bridge> {
        let mut bridges = Vec::new();
        let all = |of: &Option<Bridge>| of.map_or(Bridge::ALL.to_vec(), |bridge| vec![bridge]);
        for bridge in self.bridge.iter().flat_map(all) {
            if !bridges.contains(&bridge) {
                bridges.push(bridge);
            }
        }
        bridges
    }

    fn experiment(&self) -> Result<Experiment, Failure> {
        let gates =
            self.gate.as_ref().map(|file| Gates::new(file, read_list(file)?, self.priority));
        let stress = |streams| Stress { streams, rate: self.stress_rate.bits_per_second };
        Ok(Experiment {
            place: self.name.clone(),
            far: self.guest.clone().unwrap_or(Far::Namespace),
            gates: gates.transpose()?,
            gates_first: self.gate_first,
            vlan: self.vlan,
            priority: self.priority,
            interval: self.interval,
            offset: self.offset,
            count: self.count,
            isolated: self.isolate,
            kernel_fifo: self.kernel_fifo,
            drop: self.drop.unwrap_or(0),
            options: [self.talk.clone(), self.listen.clone()],
            stress: self.stress.map(stress),
            drive: self.drive,
            gate_margin: self.gate_margin,
            patience: self.guest_wait,
            keep: self.keep.as_deref().map(absolute).transpose()?,
        })
    }
}
