//! `farlane latency listen`: takes a talker's frames, and sends them back if it is asked to.

use super::clocks::Clocks;
use super::deliver;
use super::document::{Document, Faults, Tags};
use super::options::{MachineArgs, MarkArgs, Output, positive};
use super::outbox::Outbox;
use super::samples::{Rows, is_old};
use super::setup::{Settings, Shift};
use crate::node::listening;
use crate::signals::Stop;
use latency::frame::{self, FollowUp, Frame, Kind, Window};
use latency::{Analysis, ClockError, Input, Sample, Sequence};
use live::latency::{Control, Port, Received, Remote, Tag, now};
use live::net::{Address, Interface};
use report::{Failure, Outcome};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::time;
use wire::Duration;

/// Receive a talker's frames
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane latency listen localhost --reflect\n  \
    farlane latency listen raw:eth1 --clock shared --json\n\n\
    It takes the first run that it hears, or that of --run; frames of others are counted. It ends \
    with the run, and on Ctrl-C, with its report.")]
pub struct Args {
    /// Where: HOST[:PORT] for UDP, or raw:INTERFACE for Ethernet frames
    #[arg(value_name = "ADDR")]
    address: String,
    /// Send every frame of the run back, from the application
    #[arg(long)]
    reflect: bool,
    /// Let --reflect answer others than loopback
    #[arg(long)]
    insecure: bool,
    /// Take one run after the other, and print what came of each, until Ctrl-C or --wait without a
    /// run
    #[arg(long, conflicts_with_all = ["clock", "csv", "parquet", "html"])]
    repeat: bool,
    /// How long to wait for the first frame
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive)]
    wait: Duration,
    /// End when the talker was silent for so long
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive)]
    idle: Duration,
    #[command(flatten)]
    marks: MarkArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    output: Output,
}

/// Answers to an end at most, each of which tells when a frame left.
const MOST_TOLD: usize = 64;
/// How long a frame may still come after the talker said that it ended, in ns.
const LINGER: u64 = 200_000_000;

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    args.output.assign();
    args.machine.check();
    let stop = Stop::on_signals()?;
    let (port, local) = port(args)?;
    // Their threads are to have any CPU.
    let clocks = Clocks::start(&args.machine)?;
    let rows = Rows::create(&args.output)?;
    let mut settings = Settings::default();
    settings.marks(&args.marks, &port);
    settings.machine(&args.machine);
    // Until the end of the run, also after SIGINT.
    let _hardware = settings.stamps(&args.machine, &port)?;
    match port.address()? {
        Some(address) => eprintln!("listening on {address}"),
        None => eprintln!("listening on {}", args.address),
    }
    let mut of_run = Some((clocks, rows));
    let mut previous = None;
    let mut outbox = Outbox::new(Shift(args.machine.stamp_offset));
    loop {
        let (clocks, rows) = match of_run.take() {
            Some(first) => first,
            None => (Clocks::start(&args.machine)?, Rows::create(&args.output)?),
        };
        let mut listener =
            Listener { previous, outbox, ..Listener::new(args, &port, rows, settings.clone()) };
        let ended = listener.listen(&stop)?;
        // One without a run says so, unless there were others.
        if previous.is_some() && listener.run.is_none() {
            return Ok(());
        }
        previous = listener.run.map(|(run, _)| run);
        outbox = listener.outbox.next_run();
        let clock = clocks.finish(1, &args.machine, local);
        let (document, rows, unwritten) = listener.document(clock, ended);
        deliver(&document, rows, &unwritten, &args.output)?;
        std::io::stdout().flush()?;
        if !args.repeat || stop.is_set() {
            return Ok(());
        }
    }
}

/// The socket, and the address of UDP.
fn port(args: &Args) -> Result<(Port, Option<SocketAddr>), Failure> {
    // Receiving alone needs no permission: nothing leaves this machine.
    let allowed = args.insecure || !args.reflect;
    Ok(match listening(&args.address, allowed)? {
        Address::Tcp(address) => (Port::udp(address)?, Some(address)),
        Address::Raw(station) => {
            let interface = Interface::find(&station.interface)?;
            (Port::ethernet(&interface, frame::ETHERTYPE)?, None)
        }
        Address::Scripted(_) => return Err(Failure("a script has no latency".into())),
    })
}

/// A listener at work.
struct Listener<'a> {
    args: &'a Args,
    port: &'a Port,
    settings: Settings,
    shift: Shift,
    /// The run before, whose last frames may still come.
    previous: Option<u64>,
    /// The run that is measured, and who talks.
    run: Option<(u64, Remote)>,
    /// What the run's first frame said: interval, windows, size.
    about: Option<Frame>,
    samples: BTreeMap<u64, Sample>,
    outbox: Outbox,
    rows: Rows,
    /// Frames that came after the rows of later ones were written.
    overtaken: Vec<u64>,
    sequence: Sequence,
    tags: Tags,
    faults: Faults,
    /// When the last frame of the run came.
    last: u64,
}

impl<'a> Listener<'a> {
    fn new(args: &'a Args, port: &'a Port, rows: Rows, settings: Settings) -> Self {
        Self {
            args,
            port,
            settings,
            shift: Shift(args.machine.stamp_offset),
            previous: None,
            run: None,
            about: None,
            samples: BTreeMap::new(),
            outbox: Outbox::new(Shift(args.machine.stamp_offset)),
            rows,
            overtaken: Vec::new(),
            sequence: Sequence::default(),
            tags: Tags::default(),
            faults: Faults::default(),
            last: 0,
        }
    }

    /// Takes frames until the run ends; how it ended.
    fn listen(&mut self, stop: &Stop) -> Result<&'static str, Failure> {
        let (mut buffer, began) = ([0; 2048], now());
        let [wait, idle] = [self.args.wait, self.args.idle].map(Duration::as_ns);
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
            if stop.is_set() {
                return Ok("interrupted");
            }
            match self.run {
                None if now > began + wait && self.previous.is_some() => return Ok("silent"),
                None if now > began + wait => {
                    let strangers = self.faults.strangers;
                    return Err(Failure(format!(
                        "no frame of a talker came to {} within {} ns; frames of strangers: \
                         {strangers}",
                        self.args.address, wait
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

    /// Takes what came.
    fn take(&mut self, bytes: &[u8], received: &Received, application: u64) {
        let frame = match Frame::decode(bytes) {
            // On loopback its own answers come back to it.
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

    /// Whether the frame belongs to the run; the first one begins it.
    fn is_own(&mut self, frame: &Frame, received: &Received) -> bool {
        let own = (frame.run, received.from);
        if let Some(run) = self.run {
            return run == own;
        }
        let wanted = self.args.machine.run.is_none_or(|run| run == frame.run);
        if wanted {
            self.run = Some(own);
            self.about = Some(*frame);
            self.mark_run(received);
        }
        wanted
    }

    /// Queueing disciplines on the way back see the priority of the run's tag, or none: another run
    /// of `--repeat` may have had one.
    fn mark_run(&mut self, received: &Received) {
        let is_raw = matches!(received.from, Remote::Ethernet(_));
        if !is_raw || !self.args.reflect || self.args.marks.priority.is_some() {
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
        if self.args.reflect {
            sample.returned = self.reflect(frame, &sample, received);
        }
        if self.rows.is_past(frame.sequence) {
            self.overtaken.push(frame.sequence);
        }
        self.samples.insert(frame.sequence, sample);
    }

    /// Writes the rows of frames of which everything is known.
    fn write_rows(&mut self) {
        let now = self.shift.of(now());
        let last = self.samples.last_key_value().map_or(0, |(last, _)| *last);
        let is_due =
            |of: &&Sample| is_old(now, of.received.map_or(0, u64::from), of.sequence, last);
        let frames = self.samples.range(self.rows.next()..).map(|(_, of)| of);
        self.rows.advance(frames.take_while(is_due));
    }

    /// Sends a frame back, with this end's stamps; when, if the kernel took it.
    fn reflect(&mut self, frame: &Frame, sample: &Sample, to: &Received) -> latency::Stamp {
        let returned = self.shift.stamp(now());
        let here = [sample.arrived_wire, sample.arrived, sample.received, returned];
        let earlier = self.next_follow_up();
        let back = frame.reflected(here, earlier.as_ref());
        self.transmit(&back, to, Some(frame.sequence)).then_some(returned)?
    }

    /// The talker sent all; it is told when the last frames left here.
    fn end(&mut self, frame: &Frame, to: &Received) {
        self.sequence.end(frame.sequence);
        let untold = if self.args.reflect { self.outbox.untold().min(MOST_TOLD) } else { 0 };
        for _ in 0..untold {
            let earlier = self.next_follow_up();
            self.transmit(&frame.reflected([None; 4], earlier.as_ref()), to, None);
        }
    }

    fn next_follow_up(&mut self) -> Option<FollowUp> {
        let sequence = self.outbox.next_untold()?;
        Some(FollowUp { sequence, departure: self.samples.get(&sequence)?.back_departure })
    }

    /// Sends a frame to who sent that one, with its tag; whether the kernel took it.
    fn transmit(&mut self, frame: &Frame, to: &Received, number: Option<u64>) -> bool {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        let marks = self.args.marks;
        let tag = to.tag.map(|of| Tag { priority: marks.priority.unwrap_or(of.priority), ..of });
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

    /// A stamp of this frame came, which its row may not have.
    fn count_late(&mut self, number: u64) {
        let has_row = self.rows.is_past(number) && !self.overtaken.contains(&number);
        self.faults.late_stamps += u64::from(has_row);
    }

    /// What was measured, and the frames that have no row.
    fn document(mut self, clock: ClockError, ended: &str) -> (Document, Rows, Vec<Sample>) {
        let unwritten = self.samples.range(self.rows.next()..).map(|(_, of)| *of);
        let overtaken = self.overtaken.iter().filter_map(|number| self.samples.get(number));
        let unwritten = unwritten.chain(overtaken.copied()).collect();
        let samples: Vec<Sample> = self.samples.into_values().collect();
        let window = self.about.map_or(Window::default(), |about| about.window);
        let interval = self.about.map_or(0, |about| u64::from(about.interval));
        self.faults.without_stamp =
            samples.iter().filter(|sample| sample.arrived.is_none()).count() as u64;
        let output = &self.args.output;
        let input = Input { samples: &samples, interval, window, clock, band: output.band };
        let document = Document {
            schema: 1,
            end: "listen".to_owned(),
            label: output.label.clone(),
            address: self.args.address.clone(),
            run: format!("{:016x}", self.run.map_or(0, |(run, _)| run)),
            ended: ended.to_owned(),
            interval_ns: interval,
            cycle_ns: window.cycle.into(),
            window_ns: window.length.into(),
            size_bytes: self.about.map_or(0, |about| about.size.into()),
            settings: self.settings.0,
            counts: Some(self.sequence.counts()),
            faults: self.faults,
            tags: self.tags.list(),
            band: output.band,
            analysis: Analysis::of(&input),
        };
        (document, self.rows, unwritten)
    }
}
