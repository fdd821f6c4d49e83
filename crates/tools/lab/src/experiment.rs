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
use super::window::Gates;
use latency::schedule::{Schedule, Slot, Wrong};
use linux::time::tai_offset_s;
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
    /// The gates.
    pub gates: Option<Gates>,
    /// Whether gates are set before the bridge has its ports.
    pub gates_first: bool,
    /// The VLAN of the frames, and of the drive that has their priority.
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
    pub options: [String; 2],
    /// The load, if there is to be one.
    pub stress: Option<Stress>,
    /// Whether a drive is read meanwhile.
    pub drive: bool,
    /// The margin of the gate of the drive's nodes, in place of what they measure.
    pub gate_margin: Option<Duration>,
    /// How long to wait for a guest.
    pub patience: Duration,
    /// Where all documents and samples are kept: an [`absolute`](crate::absolute) path.
    pub keep: Option<String>,
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
    /// Whether frames are due within their window.
    ///
    /// # Errors
    /// What is wrong with the schedule.
    pub fn check(&self) -> Result<(), Wrong> {
        let gates = self.gates.as_ref();
        let slot = gates.map(|Gates { list, window, .. }| Slot {
            cycle: list.cycle_time().as_ns(),
            opens: window.opens,
            length: window.length,
        });
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

    /// The steps that follow once a guest runs, whose threads they are about.
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
            // What leads to a guest may have one queue, and taprio needs one for each priority.
            Far::Guest { .. } => gates(list, (&talker, "near"), None, steps),
            // A macvtap device hands priorities on.
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

    /// How a drive is read, one run each; without a drive there is one run.
    fn reads(&self) -> Vec<Option<Reads>> {
        if !self.drive {
            return vec![None];
        }
        let with = |gate: String| Some(Reads { priority: Some(self.priority), gate });
        let without = Some(Reads { priority: None, gate: String::new() });
        let gated = self.gates.iter().map(|Gates { file, .. }| {
            // One machine: taprio's CLOCK_TAI is the nodes' CLOCK_REALTIME if nobody told it apart.
            let clock = if tai_offset_s() == 0 { " --gate-clock realtime" } else { "" };
            let margin =
                self.gate_margin.map(|margin| format!(" --gate-margin {}ns", margin.as_ns()));
            let margin = margin.unwrap_or_default();
            with(format!(" --gate '{file}' --line-rate 10G{clock}{margin}"))
        });
        [without, with(String::new())].into_iter().chain(gated).collect()
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
             --idle 2s --json{}",
            self.place.listener(),
            self.end(bridge, run, "listen", &self.options[1])
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
            Some(Gates { list, window, .. }) => format!(
                " --base {} --cycle {}ns --window {}ns,{}ns",
                list.base_time().as_ns(),
                list.cycle_time().as_ns(),
                window.opens,
                window.length
            ),
        };
        let (interval, count, rest) = self.schedule(run);
        format!(
            "{enter}farlane latency talk {address} --reflect --priority {} --vlan {} \
             --interval {interval}ns --count {count} --allow-losses {count}{slot}{rest} --json{}",
            self.priority,
            self.vlan,
            self.end(bridge, run, "talk", &self.options[0])
        )
    }

    /// Interval in ns, frames, and the option that says when in a cycle they are due.
    fn schedule(&self, run: &Run) -> (u64, u64, String) {
        match (&self.gates, run.looks_for_gates) {
            (Some(Gates { list, window, .. }), true) => {
                // In the middle of the time without a window: what comes late is still outside, and
                // what is held back comes at the next beginning.
                let cycle = list.cycle_time().as_ns();
                let middle = (window.opens + window.length + (cycle - window.length) / 2) % cycle;
                (cycle, PROBES, format!(" --outside --offset {middle}ns"))
            }
            _ => {
                let offset = format!(" --offset {}ns", self.offset().as_ns());
                (self.interval().as_ns(), self.count, offset)
            }
        }
    }

    /// The end of a line of the talker or the listener.
    fn end(&self, bridge: Bridge, run: &Run, end: &str, options: &str) -> String {
        let label = format!("{}, {}", bridge.name(), run.name);
        let rows = self.keep.as_ref().map_or(String::new(), |folder| {
            format!(" --parquet '{folder}/{}.parquet'", file_name(bridge, run, end))
        });
        format!(" --label '{label}'{rows} {options}").trim_end().to_owned()
    }

    /// How many seconds a run takes if nothing is in its way.
    pub fn seconds(&self, run: &Run) -> u64 {
        let (interval, count, _) = self.schedule(run);
        interval.saturating_mul(count).div_ceil(1_000_000_000)
    }

    /// The listener's address for the load.
    pub fn far(&self, is_tagged: bool) -> &'static str {
        if is_tagged { FAR_TAGGED } else { FAR }
    }
}

/// The name of a file of a run, without its ending.
pub fn file_name(bridge: Bridge, run: &Run, part: &str) -> String {
    let words = run.name.replace(", ", "-").replace(' ', "-");
    format!("{}-{words}-{part}", bridge.name())
}
