//! An experiment with one bridge: how it is built, and what is run in it.

use super::bridge::Bridge;
use super::cables::{Far, cables, join};
use super::ends::{addresses, gates, losses};
use super::measure::enter;
use super::place::{FAR, FAR_TAGGED, Place};
use super::reads::Reads;
use super::step::Steps;
use super::stress::{PORT, Stress};
use super::threads::{group, isolate, prioritise};
use super::window::Window;
use latency::schedule::{Schedule, Slot, Wrong};
use linux::time::tai_offset_s;
use report::Failure;
use std::path::{Path, PathBuf};
use tsn::GateControlList;
use wire::Duration;

/// Frames of a run that looks for gates.
pub const PROBES: u64 = 100;

/// What all bridges have in common.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Names.
    pub place: Place,
    /// Where the bridge leads.
    pub far: Far,
    /// The gates, and in them the window of the frames.
    pub gates: Option<(GateControlList, Window)>,
    /// Whether gates are set before the bridge has its ports.
    pub gates_first: bool,
    /// The VLAN of the frames, and of the drive that has their priority.
    pub vlan: u16,
    /// The priority of the frames.
    pub priority: u8,
    /// From one frame to the next.
    pub interval: Duration,
    /// From the beginning of a cycle to a frame.
    pub offset: Duration,
    /// Frames of a run.
    pub count: u64,
    /// The CPU that the talker has for itself.
    pub isolated: Option<usize>,
    /// The priority of the kernel's threads that frames wait for.
    pub kernel_fifo: Option<u8>,
    /// Every so many frames one is dropped on purpose; 0: none.
    pub drop: u32,
    /// Further options of `farlane latency talk`, and of `listen`.
    pub options: [String; 2],
    /// The load, if there is to be one.
    pub stress: Option<Stress>,
    /// How a drive is read, one run each.
    pub reads: Vec<Reads>,
    /// How long to wait for a guest.
    pub patience: Duration,
    /// Where all documents and samples are kept; empty for nowhere.
    pub keep: String,
}

/// What an experiment is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The lab's name.
    pub place: Place,
    /// Where the bridge leads.
    pub far: Far,
    /// The gates, and the file that they come from.
    pub gates: Option<(PathBuf, GateControlList)>,
    /// Whether gates are set before the bridge has its ports.
    pub gates_first: bool,
    /// The VLAN of the frames.
    pub vlan: u16,
    /// The priority of the frames.
    pub priority: u8,
    /// From one frame to the next; without it the cycle of the gates, or 2 ms.
    pub interval: Option<Duration>,
    /// From the beginning of a cycle to a frame; without it a fifth of the window behind its
    /// beginning, or 0.
    pub offset: Option<Duration>,
    /// Frames of a run.
    pub count: u64,
    /// The CPU that the talker has for itself.
    pub isolated: Option<usize>,
    /// The priority of the kernel's threads that frames wait for.
    pub kernel_fifo: Option<u8>,
    /// Every so many frames one is dropped on purpose; 0: none.
    pub drop: u32,
    /// Further options of `farlane latency talk`, and of `listen`.
    pub ends: [String; 2],
    /// The load, if there is to be one.
    pub stress: Option<Stress>,
    /// Whether a drive is read meanwhile.
    pub drive: bool,
    /// The margin of the gate of the drive's nodes, in place of what they measure.
    pub gate_margin: Option<Duration>,
    /// How long to wait for a guest.
    pub patience: Duration,
    /// Where all documents and samples are kept.
    pub keep: Option<PathBuf>,
}

/// A run: probe frames, and what else goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// `gates`, or `idle` or `loaded`, with the reads.
    pub name: String,
    /// Whether frames are due at any time, to see whether gates hold them back.
    pub looks_for_gates: bool,
    /// Whether there is load.
    pub is_loaded: bool,
    /// How a drive is read meanwhile.
    pub reads: Option<Reads>,
}

impl Experiment {
    /// The experiment that is asked for.
    ///
    /// # Errors
    /// A sentence: the gates have no window for the frames, or a path does not fit a shell line.
    pub fn new(options: Options) -> Result<Self, Failure> {
        let reads = options.reads()?;
        let gates = options.gates.map(|(file, list)| {
            let window = Window::of(&list, options.priority)
                .map_err(|why| Failure(format!("--gate {}: {}", file.display(), why.0)))?;
            Ok::<_, Failure>((list, window))
        });
        let gates = gates.transpose()?;
        let cycle = gates.as_ref().map(|(list, _)| list.cycle_time());
        let early = gates.as_ref().map(|(_, of)| Duration::from_ns(of.opens + of.length / 5));
        let keep = options.keep.map_or(Ok(String::new()), |folder| absolute(&folder))?;
        Ok(Self {
            place: options.place,
            far: options.far,
            gates,
            gates_first: options.gates_first,
            vlan: options.vlan,
            priority: options.priority,
            interval: options.interval.or(cycle).unwrap_or(Duration::from_ms(2)),
            offset: options.offset.or(early).unwrap_or(Duration::ZERO),
            count: options.count,
            isolated: options.isolated,
            kernel_fifo: options.kernel_fifo,
            drop: options.drop,
            options: options.ends.map(|of| if of.is_empty() { of } else { format!(" {of}") }),
            stress: options.stress,
            reads,
            patience: options.patience,
            keep,
        })
    }

    /// Whether frames are due within their window.
    ///
    /// # Errors
    /// What is wrong with the schedule.
    pub fn check(&self) -> Result<(), Wrong> {
        let gates = self.gates.as_ref();
        let slot = gates.map(|(list, Window { opens, length })| Slot {
            cycle: list.cycle_time().as_ns(),
            opens: *opens,
            length: *length,
        });
        let base = gates.map_or(0, |(list, _)| list.base_time().as_ns());
        let (interval, offset) = (self.interval.as_ns(), self.offset.as_ns());
        let schedule = Schedule { base, interval, offset, slot };
        schedule.check().and_then(|()| schedule.check_inside())
    }

    /// The steps that build everything.
    pub fn steps(&self, bridge: Bridge) -> Steps {
        let (place, mut steps) = (&self.place, Steps::default());
        cables(bridge, &self.far, place, &mut steps);
        if self.gates_first {
            self.gates(bridge, &mut steps);
        }
        join(bridge, &self.far, place, &mut steps);
        if !self.gates_first {
            self.gates(bridge, &mut steps);
        }
        let tagged = self.reads.iter().any(Reads::is_tagged).then_some(self.vlan);
        addresses(tagged, &self.far, place, &mut steps);
        if self.drop > 0 {
            losses(self.drop, place, &mut steps);
        }
        if let Some(cpu) = self.isolated {
            isolate(cpu, place, &mut steps);
        }
        steps
    }

    /// The steps that follow once a guest runs, whose threads they are about.
    pub fn late_steps(&self) -> Steps {
        let mut steps = Steps::default();
        if let Some(priority) = self.kernel_fifo {
            prioritise(priority, &self.place, &mut steps);
        }
        steps
    }

    fn gates(&self, bridge: Bridge, steps: &mut Steps) {
        let Some((list, _)) = &self.gates else { return };
        let (talker, bridged) = (self.place.talker(), self.place.bridge());
        match self.far {
            // What leads to a guest may have one queue, and taprio needs one for each priority.
            Far::Guest { .. } => gates(list, (&talker, "near"), None, steps),
            // A macvtap device hands priorities on.
            Far::Namespace if bridge.is_on_port() => gates(list, (&bridged, "out"), None, steps),
            Far::Namespace => gates(list, (&bridged, "out"), Some("in"), steps),
        }
    }

    /// All runs.
    pub fn runs(&self) -> Vec<Run> {
        let run = |name: &str, is_loaded| Run {
            name: name.to_owned(),
            looks_for_gates: false,
            is_loaded,
            reads: None,
        };
        let looks = self.gates.iter().map(|_| Run { looks_for_gates: true, ..run("gates", false) });
        let loads = [("idle", false), ("loaded", true)];
        let loads = loads.into_iter().filter(|(_, loaded)| !loaded || self.stress.is_some());
        let each = loads.flat_map(|(name, loaded)| match self.reads.is_empty() {
            true => vec![run(name, loaded)],
            false => self
                .reads
                .iter()
                .map(|reads| Run {
                    reads: Some(reads.clone()),
                    ..run(&format!("{name}, {}", reads.name()), loaded)
                })
                .collect(),
        });
        looks.chain(each).collect()
    }

    /// What a guest runs. NICs drop frames of VLANs that nobody asked for, unless they are
    /// promiscuous (VIRTIO_NET_F_CTRL_VLAN in Virtio 1.2, 5.1.6.5.3).
    pub fn in_guest(&self) -> String {
        let server = match self.stress {
            Some(_) => format!("ip address add {FAR}/24 dev eth0; iperf3 -s -p {PORT} -D; "),
            None => String::new(),
        };
        format!(
            "ip link set eth0 up promisc on; {server}\
             farlane latency listen raw:eth0 --reflect --insecure --repeat"
        )
    }

    /// A few frames, to see whether a guest answers.
    pub fn call(&self) -> String {
        format!(
            "ip netns exec {} farlane latency talk raw:near,{} --reflect --priority {} --vlan {} \
             --interval 50ms --count 10 --allow-losses 10 --json",
            self.place.talker(),
            self.far.mac(),
            self.priority,
            self.vlan
        )
    }

    /// The listener of a run, which prints a document.
    pub fn listen(&self, bridge: Bridge, run: &Run) -> String {
        format!(
            "ip netns exec {} farlane latency listen raw:far --reflect --insecure --clock shared \
             --idle 2s --json{}{}",
            self.place.listener(),
            self.label(bridge, run, "listen"),
            self.options[1]
        )
    }

    /// The talker of a run, which prints a document.
    pub fn talk(&self, bridge: Bridge, run: &Run) -> String {
        let enter = match self.isolated {
            None => enter(&self.place),
            Some(cpu) => format!(
                "sh -c 'echo $$ >{}/cgroup.procs && exec \"$@\"' sh taskset -c {cpu} {}",
                group(&self.place),
                enter(&self.place)
            ),
        };
        let clock = if self.far == Far::Namespace { " --clock shared" } else { "" };
        self.talk_to(&enter, &format!("raw:near,{}{clock}", self.far.mac()), bridge, run)
    }

    /// The same, to `address`, behind what leads to the talker's namespace.
    pub fn talk_to(&self, enter: &str, address: &str, bridge: Bridge, run: &Run) -> String {
        let slot = match &self.gates {
            None => String::new(),
            Some((list, Window { opens, length })) => format!(
                " --base {} --cycle {}ns --window {opens}ns,{length}ns",
                list.base_time().as_ns(),
                list.cycle_time().as_ns()
            ),
        };
        let (interval, count, rest) = self.schedule(run);
        format!(
            "{enter}farlane latency talk {address} --reflect --priority {} --vlan {} \
             --interval {interval}ns --count {count} --allow-losses {count}{slot}{rest} --json{}{}",
            self.priority,
            self.vlan,
            self.label(bridge, run, "talk"),
            self.options[0]
        )
    }

    /// Interval in ns, frames, and the option that says when in a cycle they are due.
    fn schedule(&self, run: &Run) -> (u64, u64, String) {
        match (&self.gates, run.looks_for_gates) {
            (Some((list, window)), true) => {
                // In the middle of the time without a window: what comes late is still outside, and
                // what is held back comes at the next beginning.
                let cycle = list.cycle_time().as_ns();
                let middle = (window.opens + window.length + (cycle - window.length) / 2) % cycle;
                (cycle, PROBES, format!(" --outside --offset {middle}ns"))
            }
            _ => {
                let offset = format!(" --offset {}ns", self.offset.as_ns());
                (self.interval.as_ns(), self.count, offset)
            }
        }
    }

    fn label(&self, bridge: Bridge, run: &Run, end: &str) -> String {
        let label = format!("{}, {}", bridge.name(), run.name);
        let rows = match self.keep.as_str() {
            "" => String::new(),
            folder => format!(" --parquet '{folder}/{}.parquet'", file_name(bridge, run, end)),
        };
        format!(" --label '{label}'{rows}")
    }

    /// How many seconds a run takes if nothing is in its way.
    pub fn seconds(&self, run: &Run) -> u64 {
        let (interval, count, _) = self.schedule(run);
        interval.saturating_mul(count).div_ceil(1_000_000_000)
    }

    /// The listener's address for what goes beside the frames.
    pub fn far(&self, is_tagged: bool) -> &'static str {
        if is_tagged { FAR_TAGGED } else { FAR }
    }
}

impl Options {
    /// How the drive is read, one run each.
    fn reads(&self) -> Result<Vec<Reads>, Failure> {
        if !self.drive {
            return Ok(Vec::new());
        }
        let with = |gate: String| Reads { priority: Some(self.priority), gate };
        let mut reads = vec![Reads { priority: None, gate: String::new() }, with(String::new())];
        if let Some((file, _)) = &self.gates {
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
}

/// A path for lines that run elsewhere.
fn absolute(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path)?;
    match path.to_str().filter(|text| !text.contains('\'')) {
        Some(text) => Ok(text.to_owned()),
        None => Err(Failure(format!("{}: no quotes, and UTF-8", path.display()))),
    }
}

/// The name of a file of a run, without its ending.
pub fn file_name(bridge: Bridge, run: &Run, what: &str) -> String {
    let words = run.name.replace(", ", "-").replace(' ', "-");
    format!("{}-{words}-{what}", bridge.name())
}
