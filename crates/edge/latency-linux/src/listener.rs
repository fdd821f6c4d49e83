//! Receives a talker's frames, and reflects them if configured.

use crate::clocks::Clocks;
use crate::control::Control;
use crate::document::{Document, Faults, Tags};
use crate::hardware::HardwareStamps;
use crate::outbox::Outbox;
use crate::rows::{RowWriter, Rows, is_old};
use crate::settings::{Settings, Shift};
use crate::{Listen, Operator, Port, Received, Remote, Run, Tag};
use latency::frame::{FollowUp, Frame, Kind, Window};
use latency::{Analysis, ClockError, Input, Sample, Sequence};
use linux::time::now;
use std::collections::BTreeMap;
use std::io;
use std::time;
use wire::Duration;

/// The most answers to an End frame. Each answer has the departure stamps of one reflected frame.
const MOST_TOLD: usize = 64;
/// How long frames may still arrive after an End frame, in ns.
const LINGER: u64 = 200_000_000;

/// A listener on a socket. It receives one run after another.
pub struct Listener<'a> {
    listen: &'a Listen,
    port: Port,
    operator: &'a dyn Operator,
    /// The clock sources of the first run.
    clocks: Option<Clocks>,
    /// The settings and their results. The first run requests them.
    settings: Option<Settings<'a>>,
    /// Keeps hardware stamps enabled until the end of all runs, also after SIGINT.
    hardware: Option<HardwareStamps>,
    previous: Option<u64>,
    outbox: Outbox,
}

impl<'a> Listener<'a> {
    /// A listener on this socket.
    ///
    /// # Errors
    /// A sentence: a source of the clock error is not available.
    pub fn open(listen: &'a Listen, port: Port, operator: &'a dyn Operator) -> io::Result<Self> {
        // The threads of the sources start before this thread is pinned, so that they can use any
        // CPU.
        let clocks = Some(Clocks::start(&listen.machine)?);
        let outbox = Outbox::new(Shift(listen.machine.stamp_offset));
        let (settings, hardware, previous) = (None, None, None);
        Ok(Self { listen, port, operator, clocks, settings, hardware, previous, outbox })
    }

    /// Receives a run, and writes the rows of complete frames. `None` if, after a first run, no
    /// further run arrived within [`Listen::wait`].
    ///
    /// # Errors
    /// A sentence: no run arrived at all, or the socket failed.
    pub fn run(&mut self, rows: Option<&mut dyn Rows>) -> io::Result<Option<Run>> {
        let settings = self.prepare()?;
        let clocks = self.clocks.take().map_or_else(|| Clocks::start(&self.listen.machine), Ok)?;
        let outbox = self.outbox.next_run();
        let rows = RowWriter::new(rows.map(|rows| rows as &mut dyn Rows));
        let previous = self.previous;
        let new = Receiver::new(self.listen, &self.port, rows, settings);
        let mut receiver = Receiver { previous, outbox, ..new };
        let ended = receiver.listen(self.operator)?;
        self.outbox = receiver.outbox.next_run();
        // The absence of a run is an error only for the first one.
        if self.previous.is_some() && receiver.run.is_none() {
            return Ok(None);
        }
        self.previous = receiver.run.map(|(run, _)| run);
        let clock = clocks.finish(1, &self.listen.machine, self.port.address()?);
        Ok(Some(receiver.finish(clock, ended)))
    }

    /// Requests all settings of the machine at the first call.
    fn prepare(&mut self) -> io::Result<Settings<'a>> {
        if let Some(settings) = &self.settings {
            return Ok(settings.clone());
        }
        let (listen, mut settings) = (self.listen, Settings::new(self.operator));
        settings.marks(&listen.marks, &self.port);
        settings.machine(&listen.machine);
        self.hardware = settings.stamps(&listen.machine, &self.port)?;
        let address = self.port.address()?;
        let address = address.map_or(listen.heading.address.clone(), |at| at.to_string());
        self.operator.inform(&format!("listening on {address}"));
        self.settings = Some(settings.clone());
        Ok(settings)
    }
}

/// The reception of one run.
struct Receiver<'a> {
    options: &'a Listen,
    port: &'a Port,
    settings: Settings<'a>,
    shift: Shift,
    /// The previous run, whose last frames may still arrive.
    previous: Option<u64>,
    /// The current run and its talker.
    run: Option<(u64, Remote)>,
    /// The run's first frame, with interval, windows and size.
    about: Option<Frame>,
    samples: BTreeMap<u64, Sample>,
    outbox: Outbox,
    rows: RowWriter<'a>,
    /// Frames that arrived after the rows of later frames were written.
    overtaken: Vec<u64>,
    sequence: Sequence,
    tags: Tags,
    faults: Faults,
    /// When the last frame of the run arrived.
    last: u64,
}

impl<'a> Receiver<'a> {
    fn new(
        options: &'a Listen,
        port: &'a Port,
        rows: RowWriter<'a>,
        settings: Settings<'a>,
    ) -> Self {
        let shift = Shift(options.machine.stamp_offset);
        Self {
            options,
            port,
            settings,
            shift,
            previous: None,
            run: None,
            about: None,
            samples: BTreeMap::new(),
            outbox: Outbox::new(shift),
            rows,
            overtaken: Vec::new(),
            sequence: Sequence::default(),
            tags: Tags::default(),
            faults: Faults::default(),
            last: 0,
        }
    }

    /// Receives frames until the run ends. Returns [`Document::ended`].
    fn listen(&mut self, operator: &dyn Operator) -> io::Result<&'static str> {
        let (mut buffer, began) = ([0; 2048], now());
        let [wait, idle] = [self.options.wait, self.options.idle].map(Duration::as_ns);
        loop {
            self.port.wait(time::Duration::from_millis(20))?;
            while let Some(received) = self.port.receive(&mut buffer)? {
                let application = now();
                let at = self.port.payload_at();
                self.take(&buffer[at..at + received.bytes], &received, application);
            }
            while let Some(stamps) = self.port.sent()? {
                self.take_stamps(&stamps);
            }
            self.write_rows();
            let now = now();
            if operator.has_stopped() {
                return Ok("interrupted");
            }
            match self.run {
                None if now > began + wait && self.previous.is_some() => return Ok("silent"),
                None if now > began + wait => {
                    let strangers = self.faults.strangers;
                    return Err(io::Error::other(format!(
                        "no frame of a talker arrived at {} within {} ns; other frames: \
                         {strangers}",
                        self.options.heading.address, wait
                    )));
                }
                None => {}
                Some(_) if self.sequence.is_ended() && now > self.last + LINGER => {
                    return Ok("done");
                }
                Some(_) if now > self.last + idle => return Ok("silent"),
                Some(_) => {}
            }
        }
    }

    /// Handles a received frame.
    fn take(&mut self, bytes: &[u8], received: &Received, application: u64) {
        let frame = match Frame::decode(bytes) {
            // On loopback the listener receives its own answers.
            Ok(frame) if frame.kind == Kind::Reflected => return,
            Ok(frame) if Some(frame.run) == self.previous => return,
            Ok(frame) => frame,
            Err(why) => return self.faults.stranger(|| format!("from {}: {why}", received.from)),
        };
        if !self.is_own(&frame, received) {
            let (run, from) = (frame.run, received.from);
            return self.faults.stranger(|| format!("run {run:016x} from {from}"));
        }
        self.last = now();
        if let Some(earlier) = frame.follow_up() {
            self.follow_up(&earlier);
        }
        match frame.kind {
            Kind::Data => self.data(&frame, received, application),
            Kind::End => self.end(&frame, received),
            Kind::Probe | Kind::Reflected => {}
        }
    }

    /// Whether the frame belongs to the run. The first accepted frame begins the run.
    fn is_own(&mut self, frame: &Frame, received: &Received) -> bool {
        let own = (frame.run, received.from);
        if let Some(run) = self.run {
            return run == own;
        }
        let wanted = self.options.machine.run.is_none_or(|run| run == frame.run);
        if wanted {
            self.run = Some(own);
            self.about = Some(*frame);
            self.mark_run(received);
        }
        wanted
    }

    /// For raw Ethernet with `--reflect` and without a priority option: sets the socket's priority
    /// for reflected frames to the priority of the received tag. Without a tag, sets 0, because an
    /// earlier run of `--repeat` may have set another priority.
    fn mark_run(&mut self, received: &Received) {
        let is_raw = matches!(received.from, Remote::Ethernet(_));
        if !is_raw || !self.options.reflect || self.options.marks.priority.is_some() {
            return;
        }
        let priority = received.tag.map_or(0, |tag| tag.priority);
        let set = self.port.set_priority(priority).map_err(|error| error.to_string());
        if received.tag.is_some() {
            self.settings.add("priority of the tag", priority.to_string(), set);
        }
    }

    fn data(&mut self, frame: &Frame, received: &Received, application: u64) {
        self.tags.count(received.tag);
        if !self.sequence.take(frame.sequence) {
            return;
        }
        let stamp = |at: Option<std::num::NonZeroU64>| self.shift.stamp(at.map_or(0, u64::from));
        let mut sample = Sample {
            sequence: frame.sequence,
            scheduled: frame.scheduled,
            woken: frame.woken,
            sent: frame.sent,
            arrived_wire: stamp(received.wire),
            arrived: stamp(received.kernel),
            received: self.shift.stamp(application),
            opens: frame.window.opens,
            ..Sample::default()
        };
        if self.options.reflect {
            sample.returned = self.reflect(frame, &sample, received);
        }
        if self.rows.is_past(frame.sequence) {
            self.overtaken.push(frame.sequence);
        }
        self.samples.insert(frame.sequence, sample);
    }

    /// Writes the rows of complete frames.
    fn write_rows(&mut self) {
        let now = self.shift.apply(now());
        let last = self.samples.last_key_value().map_or(0, |(last, _)| *last);
        let is_due = |sample: &&Sample| {
            is_old(now, sample.received.map_or(0, u64::from), sample.sequence, last)
        };
        let frames = self.samples.range(self.rows.next()..).map(|(_, sample)| sample);
        self.rows.advance(frames.take_while(is_due));
    }

    /// Reflects a frame with the stamps of this end. Returns the time of sending, if the kernel
    /// accepted the frame.
    fn reflect(&mut self, frame: &Frame, sample: &Sample, to: &Received) -> latency::Stamp {
        let returned = self.shift.stamp(now());
        let here = [sample.arrived_wire, sample.arrived, sample.received, returned];
        let earlier = self.next_follow_up();
        let back = frame.reflected(here, earlier.as_ref());
        self.transmit(&back, to, Some(frame.sequence)).then_some(returned)?
    }

    /// Handles an End frame, and sends the departure stamps of the last reflected frames.
    fn end(&mut self, frame: &Frame, to: &Received) {
        self.sequence.end(frame.sequence);
        let untold = if self.options.reflect { self.outbox.untold().min(MOST_TOLD) } else { 0 };
        for _ in 0..untold {
            let earlier = self.next_follow_up();
            self.transmit(&frame.reflected([None; 4], earlier.as_ref()), to, None);
        }
    }

    fn next_follow_up(&mut self) -> Option<FollowUp> {
        let sequence = self.outbox.next_untold()?;
        Some(FollowUp { sequence, departure: self.samples.get(&sequence)?.back_departure })
    }

    /// Sends a frame to the sender of `to`, with the tag of `to`. Returns whether the kernel
    /// accepted the frame.
    fn transmit(&mut self, frame: &Frame, to: &Received, number: Option<u64>) -> bool {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        let marks = self.options.marks;
        let tag = to.tag.map(|tag| Tag { priority: marks.priority.unwrap_or(tag.priority), ..tag });
        let sent = self.outbox.send(self.port, (&bytes, to.from, tag), None, number);
        if let Err(error) = &sent {
            self.faults.refused += 1;
            self.faults.refusal = error.to_string();
        }
        sent.is_ok()
    }

    fn take_stamps(&mut self, stamps: &Control) {
        let Some((number, departure)) = self.outbox.departure(stamps) else { return };
        let Some(sample) = self.samples.get_mut(&number) else { return };
        if sample.back_departure.fill(&departure) {
            self.count_late(number);
            if departure.last().is_some() {
                self.outbox.tell(number);
            }
        }
    }

    fn follow_up(&mut self, earlier: &FollowUp) {
        if let Some(sample) = self.samples.get_mut(&earlier.sequence)
            && sample.departure.fill(&earlier.departure)
        {
            self.count_late(earlier.sequence);
        }
    }

    /// Counts a stamp that arrived after the row of its frame was written.
    fn count_late(&mut self, number: u64) {
        let has_row = self.rows.is_past(number) && !self.overtaken.contains(&number);
        self.faults.late_stamps += u64::from(has_row);
    }

    /// The results of the run.
    fn finish(mut self, clock: ClockError, ended: &str) -> Run {
        let unwritten = self.samples.range(self.rows.next()..).map(|(_, sample)| *sample);
        let overtaken = self.overtaken.iter().filter_map(|number| self.samples.get(number));
        let unwritten = unwritten.chain(overtaken.copied()).collect();
        let samples: Vec<Sample> = self.samples.into_values().collect();
        let window = self.about.map_or(Window::default(), |about| about.window);
        let interval = self.about.map_or(0, |about| u64::from(about.interval));
        self.faults.without_stamp =
            samples.iter().filter(|sample| sample.arrived.is_none()).count() as u64;
        let heading = &self.options.heading;
        let input = Input { samples: &samples, interval, window, clock, band: heading.band };
        let document = Document {
            schema: 1,
            end: "listen".to_owned(),
            label: heading.label.clone(),
            address: heading.address.clone(),
            run: format!("{:016x}", self.run.map_or(0, |(run, _)| run)),
            ended: ended.to_owned(),
            interval_ns: interval,
            cycle_ns: window.cycle.into(),
            window_ns: window.length.into(),
            size_bytes: self.about.map_or(0, |about| about.size.into()),
            settings: self.settings.all,
            counts: Some(self.sequence.counts()),
            faults: self.faults,
            tags: self.tags.list(),
            band: heading.band,
            analysis: Analysis::from_input(&input),
        };
        Run { document, unwritten, sent: 0 }
    }
}
