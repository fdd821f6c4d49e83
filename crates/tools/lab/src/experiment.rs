//! An experiment with one bridge: its steps and its runs.

use super::bridge::Bridge;
use super::cables::{Far, cables, join};
use super::ends::{addresses, gates, losses};
use super::measure::enter;
use super::place::{FAR, FAR_TAGGED, Place};
use super::reads::Reads;
use super::step::Steps;
use super::stress::{PORT, Stress};
use super::threads::{group, isolate, prioritise};
use super::window::Gates;
use latency::schedule::{Schedule, Wrong};
use linux::time::tai_offset_s;
use wire::Duration;

/// Number of frames in a run that checks gates.
pub const PROBES: u64 = 100;

/// Settings that all bridges share.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Name of the lab.
    pub place: Place,
    /// The far side of the bridge.
    pub far: Far,
    /// Gates of the bridge's port to the listener, or with a guest of the talker's port; `None` for
    /// no gates.
    pub gates: Option<Gates>,
    /// Whether gates are set before the bridge has its ports.
    pub gates_first: bool,
    /// The VLAN of the frames, and of the drive that has their priority.
    pub vlan: u16,
    /// The priority of the frames.
    pub priority: u8,
    /// Time from one frame to the next; by default the cycle of the gates, or 2 ms.
    pub interval: Option<Duration>,
    /// Time from the start of a cycle to a frame; by default the start of the window plus a fifth
    /// of its length, or 0 without gates.
    pub offset: Option<Duration>,
    /// Number of frames per run.
    pub count: u64,
    /// CPU that is reserved for the talker.
    pub isolated: Option<usize>,
    /// Real-time priority of the kernel threads that process the frames.
    pub kernel_fifo: Option<u8>,
    /// One of this many frames is dropped to test reports of losses; 0 for none.
    pub drop: u32,
    /// Further options of `farlane latency talk`, and of `listen`.
    pub options: [String; 2],
    /// Background load, if requested.
    pub stress: Option<Stress>,
    /// Whether a drive is read during the runs.
    pub drive: bool,
    /// Gate margin of the drive's nodes; by default the nodes measure it.
    pub gate_margin: Option<Duration>,
    /// Maximum time to wait for a guest.
    pub patience: Duration,
    /// Folder for all documents and samples: an [`absolute`](crate::absolute) path.
    pub keep: Option<String>,
}

/// A run with probe frames, load and reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// `gates`, `idle` or `loaded`, with the name of the reads.
    pub name: String,
    /// Whether frames are due at any time, to check that gates hold them back.
    pub looks_for_gates: bool,
    /// Whether there is load.
    pub is_loaded: bool,
    /// The reads of a drive during the run.
    pub reads: Option<Reads>,
}

/// Due times of frames, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Time from one frame to the next.
    pub interval: u64,
    /// Number of frames.
    pub count: u64,
    /// Time from the start of a cycle to the first frame.
    pub offset: u64,
}

impl Experiment {
    /// Checks that frames are due within their window.
    ///
    /// # Errors
    /// The mistake in the schedule.
    pub fn check(&self) -> Result<(), Wrong> {
        let gates = self.gates.as_ref();
        let slot = gates.map(Gates::slot);
        let base = gates.map_or(0, |gates| gates.list.base_time().as_ns());
        let (interval, offset) = (self.interval().as_ns(), self.offset().as_ns());
        let schedule = Schedule { base, interval, offset, slot };
        schedule.check().and_then(|()| schedule.check_inside())
    }

    fn interval(&self) -> Duration {
        let cycle = self.gates.as_ref().map(|gates| gates.list.cycle_time());
        self.interval.or(cycle).unwrap_or(Duration::from_ms(2))
    }

    fn offset(&self) -> Duration {
        let early = |gates: &Gates| Duration::from_ns(gates.window.opens + gates.window.length / 5);
        self.offset.or(self.gates.as_ref().map(early)).unwrap_or(Duration::ZERO)
    }

    /// Returns the steps that build the experiment.
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
        let tagged = self.drive.then_some(self.vlan);
        addresses(tagged, &self.far, place, &mut steps);
        if self.drop > 0 {
            losses(self.drop, place, &mut steps);
        }
        if let Some(cpu) = self.isolated {
            isolate(cpu, place, &mut steps);
        }
        steps
    }

    /// Returns the steps that follow when a guest runs. These steps need the guest's threads.
    pub fn late_steps(&self) -> Steps {
        let mut steps = Steps::default();
        if let Some(priority) = self.kernel_fifo {
            prioritise(priority, &self.place, &mut steps);
        }
        steps
    }

    fn gates(&self, bridge: Bridge, steps: &mut Steps) {
        let Some(Gates { list, .. }) = &self.gates else { return };
        let (talker, bridged) = (self.place.talker(), self.place.bridge());
        match self.far {
            // An interface towards a guest may have one queue, but taprio needs one per priority.
            Far::Guest { .. } => gates(list, (&talker, "near"), None, steps),
            // A macvtap device keeps priorities.
            Far::Namespace if bridge.is_on_port() => gates(list, (&bridged, "out"), None, steps),
            Far::Namespace => gates(list, (&bridged, "out"), Some("in"), steps),
        }
    }

    /// All runs.
    pub fn runs(&self) -> Vec<Run> {
        let run = |name: &str, is_loaded, reads: Option<Reads>| {
            let reading = reads.as_ref().map(|reads| format!("{name}, {}", reads.name()));
            let name = reading.unwrap_or_else(|| name.to_owned());
            Run { name, looks_for_gates: false, is_loaded, reads }
        };
        let looks = self.gates.iter();
        let looks = looks.map(|_| Run { looks_for_gates: true, ..run("gates", false, None) });
        let mut runs: Vec<Run> = looks.collect();
        let loads = [("idle", false), ("loaded", true)];
        for (name, is_loaded) in &loads[..if self.stress.is_some() { 2 } else { 1 }] {
            runs.extend(self.reads().into_iter().map(|reads| run(name, *is_loaded, reads)));
        }
        runs
    }

    /// Returns the kinds of reads, with one run each; without a drive there is one run.
    fn reads(&self) -> Vec<Option<Reads>> {
        if !self.drive {
            return vec![None];
        }
        let with = |gate: String| Some(Reads { priority: Some(self.priority), gate });
        let without = Some(Reads { priority: None, gate: String::new() });
        let gated = self.gates.iter().map(|Gates { file, .. }| {
            // On one machine taprio's CLOCK_TAI equals the nodes' CLOCK_REALTIME unless a TAI
            // offset is set.
            let clock = if tai_offset_s() == 0 { " --gate-clock realtime" } else { "" };
            let margin =
                self.gate_margin.map(|margin| format!(" --gate-margin {}ns", margin.as_ns()));
            let margin = margin.unwrap_or_default();
            with(format!(" --gate '{file}' --line-rate 10G{clock}{margin}"))
        });
        [without, with(String::new())].into_iter().chain(gated).collect()
    }

    /// Returns the commands for a guest. NICs drop frames of unknown VLANs unless they are
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

    /// Returns a talker with a few frames, to check whether a guest answers.
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

    /// Returns the command of a run's listener, which prints a JSON document.
    pub fn listen(&self, bridge: Bridge, run: &Run) -> String {
        format!(
            "ip netns exec {} farlane latency listen raw:far --reflect --insecure --clock shared \
             --idle 2s --json{}",
            self.place.listener(),
            self.end(bridge, run, "listen", &self.options[1])
        )
    }

    /// Returns the command of a run's talker, which prints a JSON document.
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

    /// Returns the command of a talker to `address`; `enter` runs it in the talker's namespace.
    pub fn talk_to(&self, enter: &str, address: &str, bridge: Bridge, run: &Run) -> String {
        let slot = match &self.gates {
            None => String::new(),
            Some(Gates { list, window, .. }) => format!(
                " --base {} --cycle {}ns --window {}ns,{}ns",
                list.base_time().as_ns(),
                list.cycle_time().as_ns(),
                window.opens,
                window.length
            ),
        };
        let Timing { interval, count, offset } = self.timing(run);
        let outside = if run.looks_for_gates { " --outside" } else { "" };
        format!(
            "{enter}farlane latency talk {address} --reflect --priority {} --vlan {} \
             --interval {interval}ns --count {count} --allow-losses {count}{slot}{outside} \
             --offset {offset}ns --json{}",
            self.priority,
            self.vlan,
            self.end(bridge, run, "talk", &self.options[0])
        )
    }

    /// Returns the due times of a run's frames.
    pub fn timing(&self, run: &Run) -> Timing {
        match &self.gates {
            Some(Gates { list, window, .. }) if run.looks_for_gates => {
                // The middle of the time without a window. A late frame is still outside of the
                // window, and a frame that a gate holds back arrives when the gate opens.
                let interval = list.cycle_time().as_ns();
                let middle = window.opens + window.length + (interval - window.length) / 2;
                Timing { interval, count: PROBES, offset: middle % interval }
            }
            _ => Timing {
                interval: self.interval().as_ns(),
                count: self.count,
                offset: self.offset().as_ns(),
            },
        }
    }

    /// Returns the last options of the talker or the listener.
    fn end(&self, bridge: Bridge, run: &Run, end: &str, options: &str) -> String {
        let label = format!("{}, {}", bridge.name(), run.name);
        let rows = self.keep.as_ref().map_or(String::new(), |folder| {
            format!(" --parquet '{folder}/{}.parquet'", file_name(bridge, run, end))
        });
        format!(" --label '{label}'{rows} {options}").trim_end().to_owned()
    }

    /// Returns the duration of a run in seconds without delays.
    pub fn seconds(&self, run: &Run) -> u64 {
        let Timing { interval, count, .. } = self.timing(run);
        interval.saturating_mul(count).div_ceil(1_000_000_000)
    }

    /// Returns the listener's address for the load.
    pub fn far(&self, is_tagged: bool) -> &'static str {
        if is_tagged { FAR_TAGGED } else { FAR }
    }
}

/// Returns the name of a run's file without its extension.
pub fn file_name(bridge: Bridge, run: &Run, part: &str) -> String {
    let words = run.name.replace(", ", "-").replace(' ', "-");
    format!("{}-{words}-{part}", bridge.name())
}
