//! A talker at work.

use super::Args;
use super::receive::Event;
use crate::commands::latency::document::{Document, Faults, Tags};
use crate::commands::latency::outbox::Outbox;
use crate::commands::latency::samples::{Rows, is_old};
use crate::commands::latency::setup::{Settings, Shift};
use crate::output::warning;
use crate::signals::Stop;
use latency::frame::{FollowUp, Frame, Kind};
use latency::schedule::Schedule;
use latency::{Analysis, ClockError, Input, Sample, Sequence, Source, exchange};
use live::latency::{Control, Port, Remote, Step, Tag, now, sleep_until, spin_until};
use report::{Failure, Outcome};
use std::sync::mpsc::Receiver;
use wire::Duration;

/// From the start to the first frame, in ns.
const LEAD: u64 = 100_000_000;
/// The longest sleep between two looks at signals, in ns.
const NAP: u64 = 100_000_000;
/// How long stamps and frames may still come after the last frame, in ns.
const LINGER: u64 = 200_000_000;
/// Ends that are sent, so that one arrives; more if they have follow-ups to carry.
const ENDS: usize = 3;
const MOST_ENDS: usize = 1024;
/// The launch time of the probe, from when it is sent, in ns. With taprio in between it would have
/// to lie in a window.
const PROBE: u64 = 20_000_000;
/// Probes, until one leaves at once. The kernel begins to stamp a moment after it was asked.
const PROBES: u32 = 5;
/// A probe that left earlier than this, from when it was sent, in ns, left at once.
const EARLY: u64 = PROBE / 4;

/// A talker at work.
pub struct Talker<'a> {
    args: &'a Args,
    schedule: Schedule,
    port: &'a Port,
    to: Remote,
    events: Receiver<Event>,
    /// The run's number.
    number: u64,
    shift: Shift,
    /// How much before they are due frames are handed over with a launch time.
    launch: Option<Duration>,
    /// By number.
    samples: Vec<Sample>,
    outbox: Outbox,
    back: Sequence,
    /// Of the frames that came back.
    tags: Tags,
    faults: Faults,
    buffer: Vec<u8>,
    rows: Rows,
    /// The number of the last probe, and when the driver had it, in ns.
    probed: (u32, Option<u64>),
}

impl<'a> Talker<'a> {
    /// A talker that has sent nothing.
    pub fn new(
        args: &'a Args,
        schedule: Schedule,
        port: &'a Port,
        to: Remote,
        events: Receiver<Event>,
        rows: Rows,
    ) -> Self {
        Self {
            args,
            schedule,
            port,
            to,
            events,
            number: args.machine.run.unwrap_or_else(live::random_number),
            shift: Shift(args.machine.stamp_offset),
            launch: args.launch,
            samples: Vec::new(),
            outbox: Outbox::new(Shift(args.machine.stamp_offset)),
            back: Sequence::default(),
            tags: Tags::default(),
            faults: Faults::default(),
            buffer: Vec::new(),
            rows,
            probed: (0, None),
        }
    }

    /// Checks what the machine can do, and sends all frames; how it ended.
    pub fn run(&mut self, settings: &mut Settings, stop: &Stop) -> Result<&'static str, Failure> {
        super::refuse_too_short(self.args)?;
        self.probe(settings)?;
        self.talk(stop)
    }

    /// Finds out whether launch times, if they are wanted, are honoured on the way out of this
    /// machine; without, frames are handed over when they are due.
    fn probe(&mut self, settings: &mut Settings) -> Outcome {
        let Some(lead) = self.launch else { return Ok(()) };
        let allowed = self.port.allow_launch_times().map_err(|error| error.to_string());
        if let Err(why) = allowed {
            self.launch = None;
            settings.add("launch times", format!("{} ns ahead", lead.as_ns()), Err(why));
            return Ok(());
        }
        let (mut sent, mut least) = (true, None::<u64>);
        for number in 0..PROBES {
            let at = now();
            self.probed = (number, None);
            let probe = self.frame(Kind::Probe, 0, at);
            sent = self.transmit(&probe, None, Some(at + PROBE));
            while now() < at + 2 * PROBE {
                sleep_until(at + 2 * PROBE);
            }
            self.take_events()?;
            let took = self.probed.1.map(|left| left.saturating_sub(at));
            least = least.into_iter().chain(took).min();
            // A busy machine is late, never early: one that left at once decides.
            if !sent || self.faults.launch_dropped > 0 || least.is_some_and(|took| took < EARLY) {
                break;
            }
        }
        let granted = match (sent, least) {
            (false, _) => Err(format!("the kernel drops such frames: {}", self.faults.refusal)),
            (true, _) if self.faults.launch_dropped > 0 => {
                Err("the queueing discipline drops such frames".to_owned())
            }
            (true, None) => Err("unknown: no stamp says when the probe left".to_owned()),
            (true, Some(took)) if took < EARLY => Err(format!(
                "ignored: a probe due in {PROBE} ns left after {took} ns; no queueing discipline \
                 on the way honours them (etf does)"
            )),
            (true, Some(_)) => Ok(()),
        };
        if granted.is_err() {
            self.launch = None;
        }
        self.faults = Faults::default();
        settings.add("launch times", format!("{} ns ahead", lead.as_ns()), granted);
        Ok(())
    }

    /// Sends all frames; how it ended.
    fn talk(&mut self, stop: &Stop) -> Result<&'static str, Failure> {
        let first = self.schedule.next(now() + LEAD);
        let early = self.launch.unwrap_or(self.args.spin).as_ns();
        let mut ended = "done";
        for number in 0..self.args.count {
            let due = self.schedule.due(first + number);
            if !nap_until(due - early.min(due), stop) {
                ended = "interrupted";
                break;
            }
            if self.launch.is_none() {
                spin_until(due);
            }
            self.frame_at(number, due);
            self.take_events()?;
            self.write_rows();
        }
        self.linger(|_| stop.is_set() && ended == "done")?;
        self.end();
        if self.args.reflect {
            let is_told = |of: &Sample| of.returned.is_none() || of.back_departure.last().is_some();
            self.linger(|talker| talker.samples.last().is_none_or(is_told))?;
        }
        Ok(ended)
    }

    /// Takes what still comes.
    fn linger(&mut self, is_enough: impl Fn(&Self) -> bool) -> Outcome {
        let until = now() + LINGER;
        while now() < until && !is_enough(self) {
            sleep_until(now() + LINGER / 20);
            self.take_events()?;
        }
        Ok(())
    }

    fn frame(&self, kind: Kind, sequence: u64, due: u64) -> Frame {
        let mut window = self.schedule.window(due.max(self.schedule.base));
        if window.cycle > 0 {
            window.opens = self.shift.of(window.opens);
        }
        Frame {
            kind,
            size: self.args.size,
            run: self.number,
            sequence,
            scheduled: self.shift.of(due),
            woken: 0,
            sent: 0,
            more: [0; 4],
            window,
            interval: self.args.interval.as_ns() as u32,
        }
    }

    /// Sends a frame of the run that is due now.
    fn frame_at(&mut self, number: u64, due: u64) {
        let woken = now();
        let early = self.launch.map_or(0, Duration::as_ns);
        if woken >= due - early + self.schedule.interval {
            self.faults.overslept += 1;
        }
        let mut frame = self.frame(Kind::Data, number, due);
        frame.woken = self.shift.of(woken);
        if let Some(earlier) = self.next_follow_up() {
            frame.set_follow_up(&earlier);
        }
        frame.sent = self.shift.of(now());
        let launch = self.launch.map(|_| due);
        let was_sent = self.transmit(&frame, Some(number), launch);
        self.samples.push(Sample {
            sequence: number,
            scheduled: frame.scheduled,
            woken: frame.woken,
            sent: if was_sent { frame.sent } else { 0 },
            opens: frame.window.opens,
            ..Sample::default()
        });
        if !was_sent && self.faults.refused == 1 {
            warning(format_args!("frame {number} was not sent: {}", self.faults.refusal));
        }
    }

    fn next_follow_up(&mut self) -> Option<FollowUp> {
        let sequence = self.outbox.next_untold()?;
        Some(FollowUp { sequence, departure: self.samples[sequence as usize].departure })
    }

    /// Sends a frame; whether the kernel took it. Those that end the run have no number and are
    /// not counted.
    fn transmit(&mut self, frame: &Frame, number: Option<u64>, launch: Option<u64>) -> bool {
        frame.encode(&mut self.buffer);
        match self.outbox.send(self.port, (&self.buffer, self.to, self.args.tag()), launch, number)
        {
            Ok(()) => true,
            Err(error) => {
                self.faults.refused += u64::from(number.is_some());
                self.faults.refusal = error.to_string();
                false
            }
        }
    }

    /// Tells the listener that this was all, with the follow-ups that are left.
    fn end(&mut self) {
        let count = self.samples.len() as u64;
        let ends = self.outbox.untold().clamp(ENDS, MOST_ENDS);
        for _ in 0..ends {
            let mut frame = self.frame(Kind::End, count, now());
            if let Some(earlier) = self.next_follow_up() {
                frame.set_follow_up(&earlier);
            }
            self.transmit(&frame, None, None);
            sleep_until(now() + 1_000_000);
        }
    }

    fn take_events(&mut self) -> Outcome {
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Sent(stamps) => self.take_stamps(&stamps),
                Event::Back { frame, tag, wire, kernel, application }
                    if frame.run == self.number =>
                {
                    self.take_back(&frame, tag, [wire, kernel, application]);
                }
                Event::Back { .. } => self.faults.stranger(|| "a frame of another run".to_owned()),
                Event::Stranger(what) => self.faults.stranger(|| what),
                Event::Broken(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes the rows of frames of which everything is known.
    fn write_rows(&mut self) {
        let now = self.shift.of(now());
        let last = self.samples.last().map_or(0, |last| last.sequence);
        let is_due = |of: &&Sample| is_old(now, of.scheduled, of.sequence, last);
        let frames = self.samples[self.rows.next() as usize..].iter();
        self.rows.advance(frames.take_while(is_due));
    }

    fn take_stamps(&mut self, stamps: &Control) {
        self.faults.unreachable += u64::from(stamps.unreachable);
        if stamps.dropped.is_some() {
            self.faults.launch_dropped += 1;
        }
        let Some((number, departure)) = self.outbox.departure(stamps) else {
            // Probes are the first frames of all.
            if stamps.step == Some((Step::Sent, self.probed.0)) {
                self.probed.1 = Some(stamps.software);
            }
            return;
        };
        if !self.samples[number as usize].departure.fill(&departure) {
            return;
        }
        self.faults.late_stamps += u64::from(self.rows.is_past(number));
        if departure.last().is_some() {
            self.outbox.tell(number);
        }
    }

    fn take_back(&mut self, frame: &Frame, tag: Option<Tag>, stamps: [u64; 3]) {
        let is_ours = frame.size == self.args.size;
        if is_ours && let Some(earlier) = frame.follow_up() {
            self.take_follow_up(&earlier);
        }
        // An end that came back.
        if is_ours && frame.sequence == self.samples.len() as u64 {
            return;
        }
        let sample = self.samples.get_mut(frame.sequence as usize);
        let Some(sample) = sample.filter(|_| is_ours) else {
            return self.faults.stranger(|| "a frame that was not sent".to_owned());
        };
        self.tags.count(tag);
        if !self.back.take(frame.sequence) {
            return;
        }
        self.faults.late_stamps += u64::from(self.rows.is_past(frame.sequence));
        [sample.arrived_wire, sample.arrived, sample.received, sample.returned] =
            frame.more.map(latency::stamp);
        [sample.back_arrived_wire, sample.back_arrived, sample.back_received] =
            stamps.map(|at| self.shift.stamp(at));
    }

    fn take_follow_up(&mut self, earlier: &FollowUp) {
        if let Some(sample) = self.samples.get_mut(earlier.sequence as usize)
            && sample.back_departure.fill(&earlier.departure)
        {
            self.faults.late_stamps += u64::from(self.rows.is_past(earlier.sequence));
        }
    }

    /// Frames of the run so far, those included that the kernel did not take.
    pub fn sent(&self) -> u64 {
        self.samples.len() as u64
    }

    /// What was measured, and the frames that have no row.
    pub fn document(
        mut self,
        settings: Settings,
        ended: &str,
        mut clock: ClockError,
    ) -> (Document, Rows, Vec<Sample>) {
        self.back.end(self.samples.len() as u64);
        if matches!(clock.source, Source::Unknown | Source::Shared) {
            clock.series = exchange(&self.samples);
            if clock.source == Source::Unknown && !clock.series.is_empty() {
                clock.source = Source::Exchange;
            }
        }
        let unstamped = |of: &&Sample| of.sent > 0 && of.departure.last().is_none();
        self.faults.without_stamp = self.samples.iter().filter(unstamped).count() as u64;
        let window = self.schedule.window(self.schedule.base);
        let output = &self.args.output;
        let input = Input {
            samples: &self.samples,
            interval: self.schedule.interval,
            window,
            clock,
            band: output.band,
        };
        let document = Document {
            schema: 1,
            end: "talk".to_owned(),
            label: output.label.clone(),
            address: self.args.address.clone(),
            run: format!("{:016x}", self.number),
            ended: ended.to_owned(),
            interval_ns: self.schedule.interval,
            cycle_ns: window.cycle.into(),
            window_ns: window.length.into(),
            size_bytes: self.args.size.into(),
            settings: settings.0,
            counts: self.args.reflect.then(|| self.back.counts()),
            faults: self.faults,
            tags: self.tags.list(),
            band: output.band,
            analysis: Analysis::of(&input),
        };
        let unwritten = self.samples.split_off(self.rows.next() as usize);
        (document, self.rows, unwritten)
    }
}

/// Sleeps until then, with looks at signals; whether the time has come.
fn nap_until(at: u64, stop: &Stop) -> bool {
    loop {
        if stop.is_set() {
            return false;
        }
        let left = at.saturating_sub(now());
        if left == 0 {
            return true;
        }
        sleep_until(if left > NAP { now() + NAP } else { at });
    }
}
