//! Sends frames on schedule, and receives the returned frames.

use crate::clocks::Clocks;
use crate::control::{Control, Step};
use crate::document::{Document, Faults, Tags};
use crate::hardware::HardwareStamps;
use crate::outbox::Outbox;
use crate::receive::{self, Event};
use crate::rows::{RowWriter, Rows, is_old};
use crate::settings::{Settings, Shift};
use crate::{Operator, Port, Remote, Run, Tag, Talk};
use latency::frame::{FollowUp, Frame, Kind};
use latency::{Analysis, ClockError, Input, Sample, Sequence, Source, exchange};
use linux::time::{now, oversleep, sleep_until, spin_until};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use wire::Duration;

/// The most events of the receiving thread that wait for the talker.
const EVENTS: usize = 1 << 16;
/// Number of wake-ups measured before a run.
const WAKE_UPS: u64 = 21;

/// Time from the start to the first frame, in ns.
const LEAD: u64 = 100_000_000;
/// The longest sleep between two checks for signals, in ns.
const NAP: u64 = 100_000_000;
/// How long stamps and frames may still arrive after the last frame, in ns.
const LINGER: u64 = 200_000_000;
/// Number of End frames, in case some are lost. Up to `MOST_ENDS` if stamps remain to be sent.
const ENDS: usize = 3;
const MOST_ENDS: usize = 1024;
/// Time from sending a probe to its launch time, in ns. The launch time may be outside of a taprio
/// window.
const PROBE: u64 = 20_000_000;
/// The most probes. The first ones may lack stamps, because the kernel starts to stamp only some
/// time after the request.
const PROBES: u32 = 5;
/// A probe that leaves within this time after sending, in ns, shows that launch times are ignored.
const EARLY: u64 = PROBE / 4;

/// A talker before its run.
pub struct Talker<'a> {
    talk: &'a Talk,
    port: Port,
    to: Remote,
    settings: Settings<'a>,
    /// Keeps hardware stamps enabled until the end of the run, also after SIGINT.
    _hardware: Option<HardwareStamps>,
    clocks: Clocks,
    operator: &'a dyn Operator,
}

impl<'a> Talker<'a> {
    /// A talker that sends over `port`.
    ///
    /// # Errors
    /// A sentence: the socket has no stamps, or a source of the clock error is not available.
    pub fn open(
        talk: &'a Talk,
        port: Port,
        to: Remote,
        operator: &'a dyn Operator,
    ) -> io::Result<Self> {
        let mut settings = Settings::new(operator);
        settings.marks(&talk.marks, &port);
        let _hardware = settings.stamps(&talk.machine, &port)?;
        let clocks = Clocks::start(&talk.machine)?;
        Ok(Self { talk, port, to, settings, _hardware, clocks, operator })
    }

    /// Sends all frames, and writes the rows of complete frames.
    ///
    /// # Errors
    /// A sentence: this machine cannot wake at this interval, or the socket failed.
    pub fn run(mut self, rows: Option<&mut dyn Rows>) -> io::Result<Run> {
        let Self { talk, port, to, operator, .. } = self;
        let done = AtomicBool::new(false);
        let (tell, events) = sync_channel(EVENTS);
        let (settings, port) = (&mut self.settings, &port);
        let rows = RowWriter::new(rows.map(|rows| rows as &mut dyn Rows));
        let (sender, ended) = std::thread::scope(|scope| {
            let done = &done;
            scope.spawn(move || receive::run(talk.machine.fifo, port, done, &tell));
            // The settings come after the spawn, because a new thread inherits CPUs and scheduling
            // class, and the receiving thread must not wait for the CPU of this thread.
            settings.machine(&talk.machine);
            let mut sender = Sender::new(talk, port, to, events, rows, operator);
            let ended = sender.run(settings);
            done.store(true, Ordering::Relaxed);
            ended.map(|ended| (sender, ended))
        })?;
        let address = match to {
            Remote::Udp(address) => Some(address),
            Remote::Ethernet(_) => None,
        };
        let clock = self.clocks.finish(-1, &talk.machine, address);
        Ok(sender.finish(self.settings, ended, clock))
    }
}

/// The transmission of one run.
struct Sender<'a> {
    talk: &'a Talk,
    port: &'a Port,
    to: Remote,
    operator: &'a dyn Operator,
    events: Receiver<Event>,
    /// The run's number.
    number: u64,
    shift: Shift,
    /// How long before their due times frames are sent; `None` without launch times.
    launch: Option<Duration>,
    /// The frames, by sequence number.
    samples: Vec<Sample>,
    outbox: Outbox,
    back: Sequence,
    /// The tags of the returned frames.
    tags: Tags,
    faults: Faults,
    buffer: Vec<u8>,
    rows: RowWriter<'a>,
    /// The number of the last probe, and its stamp by the driver in ns, if any.
    probed: (u32, Option<u64>),
}

impl<'a> Sender<'a> {
    /// A sender before its first frame.
    fn new(
        talk: &'a Talk,
        port: &'a Port,
        to: Remote,
        events: Receiver<Event>,
        rows: RowWriter<'a>,
        operator: &'a dyn Operator,
    ) -> Self {
        let shift = Shift(talk.machine.stamp_offset);
        Self {
            talk,
            port,
            to,
            operator,
            events,
            number: talk.machine.run.unwrap_or_else(linux::random_number),
            shift,
            launch: talk.launch,
            samples: Vec::new(),
            outbox: Outbox::new(shift),
            back: Sequence::default(),
            tags: Tags::default(),
            faults: Faults::default(),
            buffer: Vec::new(),
            rows,
            probed: (0, None),
        }
    }

    /// Checks the machine, and sends all frames. Returns [`Document::ended`].
    fn run(&mut self, settings: &mut Settings) -> io::Result<&'static str> {
        refuse_too_short(self.talk)?;
        self.probe(settings)?;
        self.talk()
    }

    /// If launch times are requested, checks that this machine honours them. If it does not, frames
    /// are sent when they are due.
    fn probe(&mut self, settings: &mut Settings) -> io::Result<()> {
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
            // Frames of a busy machine are late, never early. Therefore one early probe suffices.
            if !sent || self.faults.launch_dropped > 0 || least.is_some_and(|took| took < EARLY) {
                break;
            }
        }
        let granted = match (sent, least) {
            (false, _) => Err(format!("the kernel drops such frames: {}", self.faults.refusal)),
            (true, _) if self.faults.launch_dropped > 0 => {
                Err("the queueing discipline drops such frames".to_owned())
            }
            (true, None) => Err("unknown: no time stamp of the probe's departure".to_owned()),
            (true, Some(took)) if took < EARLY => Err(format!(
                "ignored: a probe due in {PROBE} ns left after {took} ns; use a queueing \
                 discipline that honours launch times, such as etf"
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

    /// Sends all frames. Returns [`Document::ended`].
    fn talk(&mut self) -> io::Result<&'static str> {
        let schedule = &self.talk.schedule;
        let first = schedule.next(now() + LEAD);
        let early = self.launch.unwrap_or(self.talk.spin).as_ns();
        let mut ended = "done";
        for number in 0..self.talk.count {
            let due = schedule.due(first + number);
            if !nap_until(due - early.min(due), self.operator) {
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
        self.linger(|sender| sender.operator.has_stopped() && ended == "done")?;
        self.end();
        if self.talk.reflect {
            let is_told = |sample: &Sample| {
                sample.returned.is_none() || sample.back_departure.last().is_some()
            };
            self.linger(|sender| sender.samples.last().is_none_or(is_told))?;
        }
        Ok(ended)
    }

    /// Receives remaining frames and stamps for [`LINGER`], or until `is_enough`.
    fn linger(&mut self, is_enough: impl Fn(&Self) -> bool) -> io::Result<()> {
        let until = now() + LINGER;
        while now() < until && !is_enough(self) {
            sleep_until(now() + LINGER / 20);
            self.take_events()?;
        }
        Ok(())
    }

    fn frame(&self, kind: Kind, sequence: u64, due: u64) -> Frame {
        let mut window = self.talk.schedule.window(due.max(self.talk.schedule.base));
        if window.cycle > 0 {
            window.opens = self.shift.apply(window.opens);
        }
        Frame {
            kind,
            size: self.talk.size,
            run: self.number,
            sequence,
            scheduled: self.shift.apply(due),
            woken: 0,
            sent: 0,
            more: [0; 4],
            window,
            interval: self.talk.schedule.interval as u32,
        }
    }

    /// Sends a frame of the run that is due now.
    fn frame_at(&mut self, number: u64, due: u64) {
        let woken = now();
        let early = self.launch.map_or(0, Duration::as_ns);
        if woken >= due - early + self.talk.schedule.interval {
            self.faults.overslept += 1;
        }
        let mut frame = self.frame(Kind::Data, number, due);
        frame.woken = self.shift.apply(woken);
        if let Some(earlier) = self.next_follow_up() {
            frame.set_follow_up(&earlier);
        }
        frame.sent = self.shift.apply(now());
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
            let why = &self.faults.refusal;
            self.operator.warn(&format!("frame {number} was not sent: {why}"));
        }
    }

    fn next_follow_up(&mut self) -> Option<FollowUp> {
        let sequence = self.outbox.next_untold()?;
        Some(FollowUp { sequence, departure: self.samples[sequence as usize].departure })
    }

    /// Sends a frame. Returns whether the kernel accepted the frame. Probes and End frames have no
    /// `number`; their refusals are not counted.
    fn transmit(&mut self, frame: &Frame, number: Option<u64>, launch: Option<u64>) -> bool {
        frame.encode(&mut self.buffer);
        let priority = self.talk.marks.priority.unwrap_or(0);
        let tag = self.talk.vlan.map(|vlan| Tag { vlan, priority });
        match self.outbox.send(self.port, (&self.buffer, self.to, tag), launch, number) {
            Ok(()) => true,
            Err(error) => {
                self.faults.refused += u64::from(number.is_some());
                self.faults.refusal = error.to_string();
                false
            }
        }
    }

    /// Sends the End frames, which have the remaining stamps.
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

    fn take_events(&mut self) -> io::Result<()> {
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Sent(stamps) => self.take_stamps(&stamps),
                Event::Back { frame, tag, wire, kernel, application }
                    if frame.run == self.number =>
                {
                    self.take_back(&frame, tag, [wire, kernel, application]);
                }
                Event::Back { .. } => self.faults.stranger(|| "a frame of another run".to_owned()),
                Event::Stranger(description) => self.faults.stranger(|| description),
                Event::Broken(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the rows of complete frames.
    fn write_rows(&mut self) {
        let now = self.shift.apply(now());
        let last = self.samples.last().map_or(0, |last| last.sequence);
        let is_due = |sample: &&Sample| is_old(now, sample.scheduled, sample.sequence, last);
        let frames = self.samples[self.rows.next() as usize..].iter();
        self.rows.advance(frames.take_while(is_due));
    }

    fn take_stamps(&mut self, stamps: &Control) {
        self.faults.unreachable += u64::from(stamps.unreachable);
        if stamps.dropped.is_some() {
            self.faults.launch_dropped += 1;
        }
        let Some((number, departure)) = self.outbox.departure(stamps) else {
            // Probes are the first frames of the socket.
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
        let is_ours = frame.size == self.talk.size;
        if is_ours && let Some(earlier) = frame.follow_up() {
            self.take_follow_up(&earlier);
        }
        // A returned End frame.
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

    /// The results of the run.
    fn finish(mut self, settings: Settings, ended: &str, mut clock: ClockError) -> Run {
        let sent = self.samples.len() as u64;
        self.back.end(sent);
        if matches!(clock.source, Source::Unknown | Source::Shared) {
            clock.series = exchange(&self.samples);
            if clock.source == Source::Unknown && !clock.series.is_empty() {
                clock.source = Source::Exchange;
            }
        }
        let unstamped = |sample: &&Sample| sample.sent > 0 && sample.departure.last().is_none();
        self.faults.without_stamp = self.samples.iter().filter(unstamped).count() as u64;
        let Talk { schedule, heading, .. } = self.talk;
        let (interval, window) = (schedule.interval, schedule.window(schedule.base));
        let input = Input { samples: &self.samples, interval, window, clock, band: heading.band };
        let document = Document {
            schema: 1,
            end: "talk".to_owned(),
            label: heading.label.clone(),
            address: heading.address.clone(),
            run: format!("{:016x}", self.number),
            ended: ended.to_owned(),
            interval_ns: interval,
            cycle_ns: window.cycle.into(),
            window_ns: window.length.into(),
            size_bytes: self.talk.size.into(),
            settings: settings.all,
            counts: self.talk.reflect.then(|| self.back.counts()),
            faults: self.faults,
            tags: self.tags.list(),
            band: heading.band,
            analysis: Analysis::from_input(&input),
        };
        let unwritten = self.samples.split_off(self.rows.next() as usize);
        Run { document, unwritten, sent }
    }
}

/// Sleeps until `at`, and checks for signals meanwhile. Returns false if the user has stopped the
/// run.
fn nap_until(at: u64, operator: &dyn Operator) -> bool {
    loop {
        if operator.has_stopped() {
            return false;
        }
        let left = at.saturating_sub(now());
        if left == 0 {
            return true;
        }
        sleep_until(if left > NAP { now() + NAP } else { at });
    }
}

/// Fails if this machine cannot wake at the interval of the schedule.
fn refuse_too_short(talk: &Talk) -> io::Result<()> {
    let (interval, spin) = (talk.schedule.interval, talk.spin.as_ns());
    if spin >= interval {
        return Ok(());
    }
    let late = oversleep(interval, WAKE_UPS);
    if late.least < interval + spin {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "an interval of {interval} ns is too short here: a sleeping thread wakes at least {} ns \
         late (at most {} ns, {WAKE_UPS} wake-ups); use {} ns or more, or --spin",
        late.least,
        late.most,
        2 * late.least
    )))
}
