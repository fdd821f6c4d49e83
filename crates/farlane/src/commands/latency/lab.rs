//! `farlane latency lab`: builds talker, bridge and listener, measures, and removes them.

use super::Terminal;
use super::options::positive;
use crate::commands::json;
use crate::gate_args::read_list;
use crate::output::{assign_stdout, wrong_usage};
use crate::progress::Progress;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::{Boards, Bridge, Experiment, Far, Gates, Place, Stress, absolute, show};
use report::target::Target;
use report::{Failure, Outcome, span};
use std::path::PathBuf;
use switch::congestion::Rate;
use wire::Duration;

/// Build talker, bridge and listener in network namespaces, measure, and remove them
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane latency lab --bridge linux,macvtap\n  \
    farlane latency lab --bridge all --gate gates.txt --stress 3 --html lab.html\n  \
    farlane latency lab --bridge xdp --gate gates.txt --dry-run\n\n\
    The lab needs root and changes only the namespaces and interfaces that it creates. It removes the \
    rest of a lab that was killed. A guest runs `farlane latency listen raw:INTERFACE --reflect \
    --insecure --repeat`. docs/latency.md explains the steps.")]
pub struct Args {
    /// Kinds of bridges, comma-separated; all selects every kind
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_value = "linux", value_parser = kind())]
    bridge: Vec<Option<Bridge>>,
    /// Install this gate control list (base-time, sched-entry and cycle-time as in tc-taprio(8)) at
    /// the bridge port towards the listener
    #[arg(long, value_name = "FILE")]
    gate: Option<PathBuf>,
    /// Install the gates before the bridge has its ports
    #[arg(long, requires = "gate")]
    gate_first: bool,
    /// VLAN of the frames, 1 to 4094
    #[arg(long, value_name = "ID", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=4094))]
    vlan: u16,
    /// Priority of the frames, 0 to 7: PCP of the tag, and gate
    #[arg(long, value_name = "PRIORITY", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=7))]
    priority: u8,
    /// Time from one frame to the next [default: the cycle of --gate, or 2ms]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    interval: Option<Duration>,
    /// Time from the start of a cycle to a frame [default: 0; with --gate, the start of the window
    /// plus a fifth of its length]
    #[arg(long, value_name = "TIME", value_parser = span::time)]
    offset: Option<Duration>,
    /// Frames per run
    #[arg(long, value_name = "COUNT", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=latency::MOST_FRAMES))]
    count: u64,
    /// Measure again with this many parallel UDP streams of iperf3, 1 to 64
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    stress: Option<u16>,
    /// Rate of each stream in bits per second
    #[arg(long, value_name = "RATE", default_value = "10M", requires = "stress")]
    stress_rate: Rate,
    /// Read an NVMe drive behind the bridge during the run: once without and once with priority,
    /// and with --gate once more with a gate of the nodes
    #[arg(long)]
    drive: bool,
    /// Minimum time from the end of a frame of --drive to the end of its window. By default the
    /// node measures the time. A number alone is in microseconds
    #[arg(long, value_name = "TIME", requires = "drive", value_parser = span::microseconds)]
    gate_margin: Option<Duration>,
    /// Reserve this CPU for the talker, by a cpuset partition of a control group
    #[arg(long, value_name = "CPU")]
    isolate: Option<usize>,
    /// Run softirq and vhost threads of the kernel as SCHED_FIFO with this priority, 1 to 99
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    kernel_fifo: Option<u8>,
    /// Drop one of this many frames, 2 to 100000, to test reports of losses
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    drop: Option<u32>,
    /// Further options of `farlane latency talk`, such as "--fifo 80 --cpu 1 --lock-memory"
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    talk: String,
    /// Further options of `farlane latency listen`
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    listen: String,
    /// Measure to a guest with this MAC address, behind INTERFACE or, with the word tap, behind a
    /// new tap device. The guest runs `farlane latency listen`; gates are at the talker
    #[arg(long, value_name = "INTERFACE,MAC", conflicts_with = "drive")]
    guest: Option<Far>,
    /// Time to wait for the guest's first answer
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = positive)]
    guest_wait: Duration,
    /// Name of the lab: its namespaces are NAME-talker, NAME-bridge and NAME-listener
    #[arg(long, value_name = "NAME", default_value = "farlane")]
    name: Place,
    /// Print the commands as a shell script and run nothing
    #[arg(long, conflicts_with_all = ["json", "html"])]
    dry_run: bool,
    /// With --dry-run and --guest tap,MAC: print the script for two boards. TALKER and BRIDGE are
    /// their network interfaces; the guest is behind the bridge
    #[arg(long, value_name = "TALKER,BRIDGE", requires_all = ["dry_run", "guest"], conflicts_with_all = ["isolate", "kernel_fifo", "drop"])]
    boards: Option<Boards>,
    /// Write every document (JSON), every frame's row (Parquet) and the plans of the simulations
    /// (TOML) into this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print one JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Write an HTML page with time series and histograms. FILE - is standard output, instead of
    /// the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
}

/// The parser of a kind of bridge, or all.
fn kind() -> impl TypedValueParser<Value = Option<Bridge>> {
    let names = [&["all"][..], &Bridge::ALL.map(Bridge::name)].concat();
    PossibleValuesParser::new(names)
        .map(|name| Bridge::ALL.into_iter().find(|bridge| bridge.name() == name))
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
    let results = lab::run(&experiment, &bridges, &stop, &mut |activity| progress.show(activity))?;
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
        let all = |kind: &Option<Bridge>| kind.map_or(Bridge::ALL.to_vec(), |bridge| vec![bridge]);
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
