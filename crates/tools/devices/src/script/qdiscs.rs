//! Queueing disciplines of a port: classes, gates, shapers, launch times, preemption.

use super::{Lines, Options};
use crate::node::{Launch, Port};
use sim::ethernet::frame::{FCS, GAP, HEADER, MTU, PREAMBLE, TAG};
use sim::ethernet::port::{Algorithm, Class, Config, Counted, Preemption};
use tsn::QUEUES;
use tsn::credit::{Higher, Slopes, hi_credit, lo_credit};
use tsn::preemption::verification;
use tsn::taprio;
use wire::Instant;

/// Bytes on the line that the kernel does not count.
const OVERHEAD: usize = PREAMBLE + FCS + GAP;
/// Bits per byte.
const BITS: u64 = 8;

/// A port, and the lines to which its own are added.
pub(super) struct Part<'a> {
    pub port: &'a Port,
    /// The interface, as a word of the shell.
    pub device: &'a str,
    pub launches: &'a [Launch],
    pub options: &'a Options,
    pub lines: &'a mut Lines,
}

impl Part<'_> {
    /// Adds the lines of the port.
    pub fn write(mut self) {
        let (config, device) = (&self.port.config, self.device);
        self.lines.down(format!("tc qdisc del dev {device} root"));
        let express = self.preemption();
        let gated = self.gates(express);
        if !gated {
            let classes = taprio::classes(&config.queue_of_priority);
            let preemption = express.map_or_else(String::new, |mask| {
                taprio::preemption(mask, &config.queue_of_priority) + " "
            });
            self.lines.up(format!(
                "tc qdisc replace dev {device} parent root handle 100 mqprio {classes} \
                 {preemption}hw {}",
                u8::from(self.options.offload)
            ));
        }
        // A class without a priority has no frames, and beyond the last one no queue.
        let used = |(number, _): &(usize, &Class)| has_priority(config, *number);
        for (number, class) in config.classes.iter().enumerate().filter(used) {
            if class.max_sdu.is_some() && !gated {
                self.note(format_args!(
                    "max_sdu of class {number}, which tc has only with a schedule"
                ));
            }
            self.shaper(number, gated);
            self.launch_times(number);
        }
    }

    fn note(&mut self, text: impl std::fmt::Display) {
        self.lines.note(format_args!("port to {}: {text}", self.port.peer));
    }

    /// Adds the line of the MAC merge layer. Returns the express classes, if preemption is set.
    fn preemption(&mut self) -> Option<u8> {
        let Preemption { express, fragment, verify, .. } = self.port.config.preemption?;
        if !self.options.offload {
            self.note("preemption, which Linux has only with offload");
            return None;
        }
        let device = self.device;
        let verification::Config { enabled, time, .. } = verify;
        let verify = if enabled { "on" } else { "off" };
        self.lines.up(format!(
            "ethtool --set-mm {device} pmac-enabled on tx-enabled on verify-enabled {verify} \
             verify-time {} tx-min-frag-size {}",
            time.as_ns() / 1_000_000,
            fragment.min_sent()
        ));
        self.lines.down(format!("ethtool --set-mm {device} tx-enabled off verify-enabled off"));
        self.lines.down(format!("ethtool --set-mm {device} pmac-enabled off"));
        Some(express)
    }

    /// Adds the gates, and returns whether the port has some.
    fn gates(&mut self, express: Option<u8>) -> bool {
        let config = &self.port.config;
        let Some(gates) = &config.gates else { return false };
        if gates.next_list(Instant::ZERO).is_some() {
            self.note("the schedules that follow the first one (then)");
        }
        let Some(list) = gates.merged() else {
            self.note("gates, because their lists do not fit into one list");
            return false;
        };
        let line = taprio::command(
            &list,
            &taprio::Options {
                class_of_priority: config.queue_of_priority,
                max_sdu: config.classes.each_ref().map(|class| class.max_sdu.unwrap_or(0)),
                express,
                overhead: OVERHEAD + usize::from(config.security),
                ..taprio::Options::new(self.device, self.options.offload)
            },
        );
        match self.options.offload {
            true => self.lines.up(line),
            false => self.lines.gates(self.device, line),
        }
        true
    }

    fn shaper(&mut self, number: usize, gated: bool) {
        let name = match &self.port.config.classes[number].algorithm {
            Algorithm::StrictPriority | Algorithm::Own(_) => return,
            Algorithm::CreditBased(shaper) => {
                if (shaper.counted == Counted::WithGap) != gated {
                    let counted = if gated { "with" } else { "without" };
                    self.lines.remark(format_args!(
                        "Class {number}: the kernel counts frames {counted} preamble, FCS and gap."
                    ));
                }
                return self.credit(number, shaper.idle_slope);
            }
            Algorithm::Ats(_) => "ats",
            Algorithm::Ets { .. } => "ets",
        };
        self.note(format_args!("shaper {name} of class {number}"));
    }

    /// Adds the launch times of a class whose frames all have one.
    fn launch_times(&mut self, number: usize) {
        let mut own = self.launches.iter().filter(|launch| launch.class == number).peekable();
        let strict =
            matches!(self.port.config.classes[number].algorithm, Algorithm::StrictPriority);
        if own.peek().is_none() || !strict || !self.options.launch_times {
            return;
        }
        let queue = number + 1;
        for Launch { name, times: (start, interval), .. } in own {
            let (start, interval) = (start.as_ns(), interval.as_ns());
            self.lines.remark(format_args!(
                "{name}: a frame at {start} ns and every {interval} ns, by SO_TXTIME."
            ));
        }
        self.lines.up(format!(
            "tc qdisc replace dev {} parent 100:{queue} handle 10{queue} etf clockid CLOCK_TAI \
             delta \"${{ETF_DELTA:-500000}}\"{}",
            self.device,
            if self.options.offload { " offload" } else { "" }
        ));
    }

    /// Adds the line of a credit-based shaper.
    fn credit(&mut self, number: usize, idle_slope: u64) {
        let config = &self.port.config;
        let [most, least] = credits(config, number, idle_slope);
        let kilobits = |bits: u64| bits.div_ceil(1000);
        let (idle, queue) = (kilobits(idle_slope), number + 1);
        self.lines.up(format!(
            "tc qdisc replace dev {} parent 100:{queue} handle 10{queue} cbs idleslope {idle} \
             sendslope -{} hicredit {most} locredit -{least} offload {}",
            self.device,
            kilobits(config.rate.bits_per_second()).saturating_sub(idle),
            u8::from(self.options.offload)
        ));
    }
}

/// Returns hiCredit and -loCredit of a class in bytes (IEEE 802.1Q-2022, annex L), for frames with a
/// payload of `max_sdu` or 1500 bytes. A higher class without such a shaper counts as one frame.
fn credits(port: &Config, number: usize, idle_slope: u64) -> [u64; 2] {
    let rate = port.rate.bits_per_second();
    let slopes = Slopes { idle: idle_slope.min(rate), rate };
    let frame = |class: &Class| {
        let payload = class.max_sdu.unwrap_or(MTU).min(MTU);
        (PREAMBLE + HEADER + TAG + payload + FCS + GAP) as u64 * BITS
    };
    let used = |class: &usize| has_priority(port, *class);
    let lower = (0..number).filter(used).map(|class| frame(&port.classes[class]));
    let (mut interference, mut higher) = (lower.max().unwrap_or(0), Vec::new());
    for class in (number + 1..QUEUES).filter(used).map(|class| &port.classes[class]) {
        match &class.algorithm {
            Algorithm::CreditBased(shaper) => {
                higher.push(Higher { idle: shaper.idle_slope, max_frame: frame(class) });
            }
            _ => interference += frame(class),
        }
    }
    let bytes = |bits: u64| bits.div_ceil(BITS).min(i32::MAX as u64);
    let most = hi_credit(slopes, interference, &higher).map_or(i32::MAX as u64, bytes);
    [most, bytes(lo_credit(slopes, frame(&port.classes[number])).unsigned_abs())]
}

fn has_priority(port: &Config, class: usize) -> bool {
    port.queue_of_priority.iter().any(|own| usize::from(*own) == class)
}
