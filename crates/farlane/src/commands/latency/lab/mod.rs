//! `farlane latency lab`: builds talker – bridge – listener, measures, and takes everything down.

mod boards;
mod bridge;
mod cables;
mod check;
mod child;
mod ends;
mod experiment;
mod journal;
mod measure;
mod place;
mod reads;
mod results;
mod script;
mod show;
mod site;
mod step;
mod stress;
mod threads;
mod window;

use super::machine::{self, tools};
use super::options::positive;
use crate::gate_args::read_list;
use crate::output::{assign_stdout, note, wrong_usage};
use crate::progress::Progress;
use crate::signals::Stop;
use boards::Boards;
use bridge::Bridge;
use cables::Far;
use experiment::Experiment;
use latency::schedule::{Schedule, Slot};
use live::clock::tai_offset_s;
use live::net::Mac;
use place::Place;
use reads::Reads;
use report::target::Target;
use report::{Failure, Outcome, span};
use results::Results;
use site::Site;
use std::path::PathBuf;
use stress::{Stress, Tool};
use switch::congestion::Rate;
use tsn::{GateControlList, taprio};
use window::Window;
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
    /// Measure again with N parallel UDP streams beside the frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    stress: Option<u16>,
    /// Bits a second of each stream
    #[arg(long, value_name = "RATE", default_value = "10M", requires = "stress")]
    stress_rate: Rate,
    /// The program that makes the streams; without it iperf3, netperf or the built-in one, whichever
    /// is there first
    #[arg(long, value_name = "PROGRAM", requires = "stress", value_enum)]
    stress_by: Option<Tool>,
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
    #[arg(long, value_name = "INTERFACE,MAC", value_parser = guest, conflicts_with = "drive")]
    guest: Option<Far>,
    /// How long to wait for the guest's first answer
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = positive)]
    guest_wait: Duration,
    /// The lab's name: its namespaces are NAME-talker, NAME-bridge, NAME-listener
    #[arg(long, value_name = "NAME", default_value = "farlane", value_parser = place::name)]
    name: String,
    /// Print what would be done as a shell script, and do nothing
    #[arg(long, conflicts_with_all = ["json", "html"])]
    dry_run: bool,
    /// With --dry-run: print what is to be run on two boards, with these NICs of the talker's and of
    /// the bridge's board, and in a guest behind the bridge, whose MAC address --guest tap,MAC gives
    #[arg(long, value_name = "TALKER,BRIDGE", value_parser = boards, requires_all = ["dry_run", "guest"], conflicts_with_all = ["isolate", "kernel_fifo", "drop"])]
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
    match text {
        "all" => Ok(None),
        one => clap::ValueEnum::from_str(one, false).map(Some).map_err(|_| {
            let all: Vec<String> = every().iter().map(|bridge| bridge.name()).collect();
            format!("'{one}' is none of all, {}", all.join(", "))
        }),
    }
}

/// A guest.
fn guest(text: &str) -> Result<Far, String> {
    let (interface, mac) = text.split_once(',').ok_or("a guest is INTERFACE,MAC or tap,MAC")?;
    let mac: Mac = mac.parse().map_err(|error| format!("'{mac}': {error}"))?;
    Ok(Far::Guest { interface: interface_name(interface)?, mac: mac.to_string() })
}

/// Two NICs.
fn boards(text: &str) -> Result<Boards, String> {
    let (talker, bridge) =
        text.split_once(',').ok_or("NICs are TALKER,BRIDGE, such as eth1,eth1")?;
    Ok(Boards { talker: interface_name(talker)?, bridge: interface_name(bridge)? })
}

/// The name of an interface, for a shell line.
fn interface_name(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
    // IFNAMSIZ of linux/if.h is 16, with its end.
    match (1..16).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('-') {
        true => Ok(text.to_owned()),
        false => Err(format!("'{text}' is no name of an interface that fits a shell line")),
    }
}

fn every() -> &'static [Bridge] {
    clap::ValueEnum::value_variants()
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    assign_stdout(args.json, &[("--html", args.html.as_ref())]);
    let experiment = args.experiment()?;
    let bridges = args.bridges();
    if args.dry_run {
        match &args.boards {
            Some(boards) => print!("{}", boards::script(&experiment, &bridges, boards)),
            None => print!("{}", script::script(&experiment, &bridges)),
        }
        return Ok(());
    }
    if let Some((list, _)) = &experiment.gates {
        check::keepable(list)?;
    }
    let stop = Stop::on_signals()?;
    let results = args.measure(&experiment, &bridges, &stop)?;
    if args.json {
        println!("{}", crate::commands::json(&results));
    } else {
        show::text(&results);
    }
    args.html.as_ref().map_or(Ok(()), |target| target.write(&show::page(&results)))?;
    args.verdict(&results)
}

impl Args {
    fn bridges(&self) -> Vec<Bridge> {
        let mut bridges = Vec::new();
        let all = |of: &Option<Bridge>| of.map_or(every().to_vec(), |bridge| vec![bridge]);
        for bridge in self.bridge.iter().flat_map(all) {
            if !bridges.contains(&bridge) {
                bridges.push(bridge);
            }
        }
        bridges
    }

    fn experiment(&self) -> Result<Experiment, Failure> {
        let gates = self.gate.as_deref().map(|file| -> Result<_, Failure> {
            let list = read_list(file)?;
            let window = Window::of(&list, self.priority)
                .map_err(|why| Failure(format!("--gate {}: {}", file.display(), why.0)))?;
            Ok((list, window))
        });
        let gates = gates.transpose()?;
        let cycle = gates.as_ref().map(|(list, _)| list.cycle_time());
        let early = gates.as_ref().map(|(_, of)| Duration::from_ns(of.opens + of.length / 5));
        let options = [&self.talk, &self.listen].map(|of| match of.as_str() {
            "" => String::new(),
            options => format!(" {options}"),
        });
        let interval = self.interval.or(cycle).unwrap_or(Duration::from_ms(2));
        let offset = self.offset.or(early).unwrap_or(Duration::ZERO);
        self.check(gates.as_ref(), interval, offset);
        Ok(Experiment {
            place: Place(self.name.clone()),
            far: self.guest.clone().unwrap_or(Far::Namespace),
            gates,
            gates_first: self.gate_first,
            vlan: self.vlan,
            priority: self.priority,
            interval,
            offset,
            count: self.count,
            isolated: self.isolate,
            kernel_fifo: self.kernel_fifo,
            drop: self.drop.unwrap_or(0),
            options,
            stress: self.stress.map(|streams| self.load(streams)),
            reads: self.reads()?,
            patience: self.guest_wait,
            keep: self.keep.as_ref().map_or(Ok(String::new()), |folder| absolute(folder))?,
        })
    }

    /// Ends the process where frames would be due outside their window, and where a guest lacks a
    /// server.
    fn check(
        &self,
        gates: Option<&(GateControlList, Window)>,
        interval: Duration,
        offset: Duration,
    ) {
        let slot = gates.map(|(list, Window { opens, length })| Slot {
            cycle: list.cycle_time().as_ns(),
            opens: *opens,
            length: *length,
        });
        let base = gates.map_or(0, |(list, _)| list.base_time().as_ns());
        let (interval, offset) = (interval.as_ns(), offset.as_ns());
        let schedule = Schedule { base, interval, offset, slot };
        schedule.check().and_then(|()| schedule.check_inside()).unwrap_or_else(wrong_usage);
        match self.stress_by {
            Some(Tool::Iperf3 | Tool::Netperf) if self.guest.is_some() => wrong_usage(
                "--stress-by: a guest has no server of iperf3 or netperf: built-in needs none",
            ),
            _ => {}
        }
    }

    fn load(&self, streams: u16) -> Stress {
        let installed = [("iperf3", Tool::Iperf3), ("netperf", Tool::Netperf)];
        let installed = installed.into_iter().find(|(program, _)| tools::find(program).is_ok());
        // A guest has no server that they need.
        let installed = installed.filter(|_| self.guest.is_none());
        let found = installed.map_or(Tool::BuiltIn, |(_, tool)| tool);
        Stress {
            streams,
            rate: self.stress_rate,
            size: 1400,
            tool: self.stress_by.unwrap_or(found),
        }
    }

    /// How the drive is read, one run each.
    fn reads(&self) -> Result<Vec<Reads>, Failure> {
        if !self.drive {
            return Ok(Vec::new());
        }
        let with = |gate: String| Reads { priority: Some(self.priority), gate };
        let mut reads = vec![Reads { priority: None, gate: String::new() }, with(String::new())];
        if let Some(file) = &self.gate {
            // One machine: taprio's CLOCK_TAI is the nodes' CLOCK_REALTIME if nobody told it apart.
            let clock = if tai_offset_s() == 0 { " --gate-clock realtime" } else { "" };
            let margin = self
                .gate_margin
                .map_or(String::new(), |of| format!(" --gate-margin {}ns", of.as_ns()));
            let file = absolute(file)?;
            reads.push(with(format!(" --gate '{file}' --line-rate 10G{clock}{margin}")));
        }
        Ok(reads)
    }

    fn measure(
        &self,
        experiment: &Experiment,
        bridges: &[Bridge],
        stop: &Stop,
    ) -> Result<Results, Failure> {
        let (mut site, left) = Site::open(&experiment.place, stop)?;
        if left > 0 {
            note(format_args!("took down what an earlier lab left ({left} things)"));
        }
        if let Some(folder) = &self.keep {
            std::fs::create_dir_all(folder)?;
        }
        let mut progress = Progress::new();
        let list = experiment.gates.as_ref();
        let mut results = Results {
            schema: 1,
            name: self.name.clone(),
            ended: "done".to_owned(),
            gates: list.map_or(String::new(), |(list, _)| taprio::words(list)),
            machine: machine::settings(),
            bridges: Vec::new(),
        };
        for bridge in bridges {
            let of = measure::measure(experiment, *bridge, &mut site, &mut progress);
            results.bridges.push(of);
            if stop.is_set() {
                results.ended = "interrupted".to_owned();
                break;
            }
        }
        Ok(results)
    }

    /// Fails if a bridge that was asked for by its name was refused, or one failed.
    fn verdict(&self, results: &Results) -> Outcome {
        let asked = |of: &&results::OfBridge| match of.outcome {
            results::Outcome::Refused => self.bridge.contains(&Some(of.bridge)),
            outcome => outcome == results::Outcome::Failed,
        };
        let is_whole = results.ended == "done";
        match results.bridges.iter().find(asked).filter(|_| is_whole) {
            None => Ok(()),
            Some(of) => {
                let (bridge, outcome) = (of.bridge.name(), of.outcome.says());
                Err(Failure(format!("{bridge}: {outcome}: {}", of.why)))
            }
        }
    }
}

/// A path for lines that run elsewhere.
fn absolute(path: &std::path::Path) -> Result<String, Failure> {
    let path = std::path::absolute(path)?;
    match path.to_str().filter(|text| !text.contains('\'')) {
        Some(text) => Ok(text.to_owned()),
        None => Err(Failure(format!("{}: no quotes, and UTF-8", path.display()))),
    }
}
