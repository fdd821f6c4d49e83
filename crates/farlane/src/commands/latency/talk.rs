//! `farlane latency talk`: sends frames on schedule.

use super::document::{Document, Faults};
use super::options::{MachineArgs, Output, positive, window};
use super::setup::{Settings, Shift};
use super::{deliver, options};
use crate::signals::Stop;
use latency::frame::{self, FollowUp, Frame, Kind};
use latency::schedule::{Schedule, Slot};
use latency::{Analysis, ClockError, ClockPoint, Input, Sample, Sequence, Source, exchange};
use live::latency::{
    Control, Port, Remote, Step, Tag, now, oversleep, prioritise, sleep_until, spin_until,
};
use live::net::{Address, Interface, Peer};
use report::{Failure, Outcome, span};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time;
use wire::Duration;

/// Send frames on schedule
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane latency talk localhost --interval 1ms --count 10000 --reflect\n  \
    farlane latency talk raw:eth1,02:00:5e:10:00:01 --vlan 5 --priority 3 --cycle 500us \
    --window 200us,100us --offset 220us --fifo 80 --cpu 3\n\n\
    docs/latency.md says what each figure means. Ctrl-C ends the run with its report.")]
pub struct Args {
    /// The listener: HOST[:PORT] for UDP, or raw:INTERFACE,MAC for Ethernet frames
    #[arg(value_name = "ADDR")]
    address: String,
    /// From one frame to the next, 4s at most
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = positive)]
    interval: Duration,
    /// Frames to send
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=latency::MOST_FRAMES))]
    count: u64,
    /// The beginning of a cycle, as base-time of taprio: ns of CLOCK_TAI
    #[arg(long, value_name = "NS", default_value_t = 0)]
    base: u64,
    /// From the beginning of a cycle to a frame
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::time)]
    offset: Duration,
    /// From one window of the gates to the next
    #[arg(long, value_name = "TIME", value_parser = positive, requires = "window")]
    cycle: Option<Duration>,
    /// The window of these frames in each cycle
    #[arg(long, value_name = "START,LENGTH", value_parser = window, requires = "cycle")]
    window: Option<(u64, u64)>,
    /// Bytes of a payload
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u16).range(frame::LEAST as i64..=frame::MOST as i64))]
    size: u16,
    /// Expect every frame back: the listener runs with --reflect
    #[arg(long)]
    reflect: bool,
    /// Priority of the frames, 0 to 7: SO_PRIORITY, and PCP of their VLAN tag
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=7))]
    priority: Option<u8>,
    /// Give Ethernet frames a tag of this VLAN; 0 is a tag of the priority alone
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(0..=4094))]
    vlan: Option<u16>,
    /// DSCP of UDP over IPv4, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,
    /// Wake this much before a frame is due, and read the clock until then
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::microseconds)]
    spin: Duration,
    /// Hand frames over this much before they are due, with a launch time (SO_TXTIME)
    #[arg(long, value_name = "TIME", value_parser = positive, conflicts_with = "spin")]
    launch: Option<Duration>,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    output: Output,
}

/// From the start to the first frame, in ns.
const LEAD: u64 = 100_000_000;
/// The longest sleep between two looks at signals, in ns.
const NAP: u64 = 100_000_000;
/// How long stamps and frames may still come after the last frame, in ns.
const LINGER: u64 = 200_000_000;
/// Ends that are sent, so that one arrives; more if they have follow-ups to carry.
const ENDS: usize = 3;
const MOST_ENDS: usize = 64;
/// Events that wait for the talker.
const EVENTS: usize = 1 << 16;
/// The launch time of the probe, from when it is sent, in ns. With taprio in between it would have
/// to lie in a window.
const PROBE: u64 = 20_000_000;

/// What the receiving thread tells.
enum Event {
    Sent(Control),
    Back { frame: Frame, kernel: u64, application: u64 },
    Stranger(String),
    Broken(std::io::Error),
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    args.output.assign()?;
    let schedule = args.schedule()?;
    let stop = Stop::on_signals()?;
    let mut settings = Settings::default();
    let (port, to) = args.port(&mut settings)?;
    let hardware = settings.stamps(&args.machine, &port)?;
    let follower = args.machine.follower()?;
    let done = AtomicBool::new(false);
    let (tell, events) = sync_channel(EVENTS);
    let mut talker = Talker::new(args, schedule, &port, to, events);
    talker.hardware = hardware;
    let ended = std::thread::scope(|scope| {
        let (port, done) = (&port, &done);
        scope.spawn(move || receive(args, port, done, &tell));
        // From here on: a thread begins with the CPUs and the class of the one that starts it, and
        // the receiving one must not wait for this one's CPU.
        settings.machine(&args.machine);
        let ended = talker.run(&mut settings, &stop);
        done.store(true, Ordering::Relaxed);
        ended
    })?;
    let said = follower.map(|follower| follower.finish(-1));
    let (document, samples) = talker.document(settings, ended, said);
    deliver(&document, &samples, &args.output)
}

impl Args {
    fn schedule(&self) -> Result<Schedule, Failure> {
        let slot = self.cycle.zip(self.window).map(|(cycle, (opens, length))| Slot {
            cycle: cycle.as_ns(),
            opens,
            length,
        });
        let schedule = Schedule {
            base: self.base,
            interval: self.interval.as_ns(),
            offset: self.offset.as_ns(),
            slot,
        };
        schedule.check().map_err(|wrong| Failure(wrong.to_string()))?;
        if self.base > now() + NAP * 36_000 {
            return Err(Failure("--base is more than an hour ahead: it is ns of CLOCK_TAI".into()));
        }
        Ok(schedule)
    }

    fn port(&self, settings: &mut Settings) -> Result<(Port, Remote), Failure> {
        let peer = Peer::find(&self.address, true)?;
        let (port, to) = match peer.address(0) {
            Address::Tcp(to) => {
                if self.vlan.is_some() {
                    return Err(Failure("--vlan is of Ethernet frames: raw:INTERFACE,MAC".into()));
                }
                let any: IpAddr = match to {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                (Port::udp((any, 0).into())?, Remote::Udp(*to))
            }
            Address::Raw(station) => {
                let tag = self.vlan.map(|vlan| Tag { vlan, priority: self.priority.unwrap_or(0) });
                let interface = Interface::find(&station.interface)?;
                let port = Port::ethernet(&interface, frame::ETHERTYPE, tag)?;
                (port, Remote::Ethernet(station.mac))
            }
            Address::Scripted(_) => return Err(Failure("a script has no latency".into())),
        };
        if let Some(dscp) = self.dscp {
            let set = port.set_dscp(dscp).map_err(|error| error.to_string());
            settings.add("DSCP", dscp.to_string(), set);
        }
        if let Some(priority) = self.priority {
            let set = port.set_priority(priority).map_err(|error| error.to_string());
            settings.add("priority", priority.to_string(), set);
        }
        Ok((port, to))
    }
}

/// Fails if this machine cannot wake as often as asked.
fn refuse_too_short(args: &Args) -> Outcome {
    let (interval, spin) = (args.interval.as_ns(), args.spin.as_ns());
    if spin >= interval {
        return Ok(());
    }
    let late = oversleep(interval);
    if late.median < interval + spin {
        return Ok(());
    }
    Err(Failure(format!(
        "an interval of {interval} ns is too short here: a thread that sleeps wakes {} ns late \
         (median of 21 times, {} ns at most); take {} ns or more, or --spin",
        late.median,
        late.most,
        2 * late.median
    )))
}

/// Receives everything until it is told to end.
fn receive(args: &Args, port: &Port, done: &AtomicBool, tell: &SyncSender<Event>) {
    if let Some(priority) = args.machine.fifo {
        // The talker says so if it is refused.
        let _ = prioritise(priority);
    }
    let mut buffer = [0; 2048];
    while !done.load(Ordering::Relaxed) {
        if let Err(error) = receive_all(port, &mut buffer, tell) {
            let _ = tell.send(Event::Broken(error));
            return;
        }
    }
}

fn receive_all(port: &Port, buffer: &mut [u8], tell: &SyncSender<Event>) -> std::io::Result<()> {
    // The talker that no longer listens has ended.
    port.wait(time::Duration::from_millis(20))?;
    while let Some(received) = port.receive(buffer)? {
        let application = now();
        let at = port.payload_at();
        let event = match Frame::decode(&buffer[at..at + received.bytes]) {
            Ok(frame) if frame.kind == Kind::Reflected => {
                let kernel = received.kernel.map_or(0, u64::from);
                Event::Back { frame, kernel, application }
            }
            // On loopback frames come back to whoever sent them.
            Ok(_) => continue,
            Err(why) => Event::Stranger(format!("from {}: {why}", received.from)),
        };
        let _ = tell.send(event);
    }
    while let Some(sent) = port.sent()? {
        let _ = tell.send(Event::Sent(sent));
    }
    Ok(())
}

/// A talker at work.
struct Talker<'a> {
    args: &'a Args,
    schedule: Schedule,
    port: &'a Port,
    to: Remote,
    events: Receiver<Event>,
    /// The run's number.
    number: u64,
    shift: Shift,
    /// The hardware stamps.
    hardware: bool,
    /// How much before they are due frames are handed over with a launch time.
    launch: Option<Duration>,
    /// By number.
    samples: Vec<Sample>,
    /// Of each frame that the socket sent, in order: its number, if it was one of the run.
    sent: Vec<Option<u64>>,
    /// Frames whose stamps the listener does not know.
    follow_ups: VecDeque<u64>,
    back: Sequence,
    faults: Faults,
    buffer: Vec<u8>,
    /// When the driver had the probe, in ns.
    probed: Option<u64>,
}

impl<'a> Talker<'a> {
    fn new(
        args: &'a Args,
        schedule: Schedule,
        port: &'a Port,
        to: Remote,
        events: Receiver<Event>,
    ) -> Self {
        Self {
            args,
            schedule,
            port,
            to,
            events,
            number: args.machine.run.unwrap_or_else(live::random_number),
            shift: Shift(args.machine.stamp_offset),
            hardware: false,
            launch: args.launch,
            samples: Vec::new(),
            sent: Vec::new(),
            follow_ups: VecDeque::new(),
            back: Sequence::default(),
            faults: Faults::default(),
            buffer: Vec::new(),
            probed: None,
        }
    }

    /// Checks what the machine can do, and sends all frames; how it ended.
    fn run(&mut self, settings: &mut Settings, stop: &Stop) -> Result<&'static str, Failure> {
        refuse_too_short(self.args)?;
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
        let at = now();
        let probe = self.frame(Kind::Probe, 0, at);
        let sent = self.transmit(&probe, None, Some(at + PROBE));
        while now() < at + 2 * PROBE {
            sleep_until(at + 2 * PROBE);
        }
        self.take_events()?;
        let granted = match (sent, self.probed) {
            (false, _) => Err(format!("the kernel drops such frames: {}", self.faults.refusal)),
            (true, _) if self.faults.launch_dropped > 0 => {
                Err("the queueing discipline drops such frames".to_owned())
            }
            (true, None) => Err("unknown: no stamp says when the probe left".to_owned()),
            (true, Some(left)) if left < at + PROBE / 4 => Err(format!(
                "ignored: a probe due in {PROBE} ns left after {} ns; no queueing discipline on \
                 the way honours them (etf does)",
                left.saturating_sub(at)
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
        }
        let linger = now() + LINGER;
        while now() < linger && !(stop.is_set() && ended == "done") {
            sleep_until(now() + LINGER / 20);
            self.take_events()?;
        }
        self.end();
        Ok(ended)
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
            eprintln!("frame {number} was not sent: {}", self.faults.refusal);
        }
    }

    fn next_follow_up(&mut self) -> Option<FollowUp> {
        let sequence = self.follow_ups.pop_front()?;
        let Sample { queued, driver, wire, .. } = self.samples[sequence as usize];
        Some(FollowUp { sequence, queued, driver, wire })
    }

    /// Sends a frame; whether the kernel took it.
    fn transmit(&mut self, frame: &Frame, number: Option<u64>, launch: Option<u64>) -> bool {
        frame.encode(&mut self.buffer);
        match self.port.send(&self.buffer, self.to, launch) {
            Ok(()) => {
                self.sent.push(number);
                true
            }
            Err(error) => {
                self.faults.refused += 1;
                self.faults.refusal = error.to_string();
                false
            }
        }
    }

    /// Tells the listener that this was all, with the follow-ups that are left.
    fn end(&mut self) {
        let count = self.samples.len() as u64;
        let ends = self.follow_ups.len().clamp(ENDS, MOST_ENDS);
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
                Event::Back { frame, kernel, application } if frame.run == self.number => {
                    self.take_back(&frame, kernel, application);
                }
                Event::Back { .. } => self.faults.stranger(|| "a frame of another run".to_owned()),
                Event::Stranger(what) => self.faults.stranger(|| what),
                Event::Broken(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn take_stamps(&mut self, stamps: &Control) {
        if stamps.dropped.is_some() {
            self.faults.launch_dropped += 1;
        }
        let Some((step, id)) = stamps.step else { return };
        let Some(Some(number)) = self.sent.get(id as usize).copied() else {
            // The first frame of all is the probe, if there is one.
            if step == Step::Sent && id == 0 {
                self.probed = Some(stamps.software);
            }
            return;
        };
        let sample = &mut self.samples[number as usize];
        let software = self.shift.stamp(stamps.software);
        match step {
            Step::Queued => sample.queued = sample.queued.or(software),
            Step::Sent => {
                sample.driver = sample.driver.or(software);
                sample.wire = sample.wire.or(self.shift.stamp(stamps.hardware));
                if !self.hardware || stamps.hardware > 0 {
                    self.follow_ups.push_back(number);
                }
            }
        }
    }

    fn take_back(&mut self, frame: &Frame, kernel: u64, application: u64) {
        let shift = self.shift;
        let is_ours = usize::from(frame.size) == usize::from(self.args.size);
        let sample = self.samples.get_mut(frame.sequence as usize);
        let Some(sample) = sample.filter(|_| is_ours) else {
            return self.faults.stranger(|| "a frame that was not sent".to_owned());
        };
        if !self.back.take(frame.sequence) {
            return;
        }
        let [wire, arrived, received, returned] = frame.more.map(latency::stamp);
        sample.arrived_wire = wire;
        sample.arrived = arrived;
        sample.received = received;
        sample.returned = returned;
        sample.back_arrived = shift.stamp(kernel);
        sample.back_received = shift.stamp(application);
    }

    fn document(
        mut self,
        settings: Settings,
        ended: &str,
        said: Option<Vec<ClockPoint>>,
    ) -> (Document, Vec<Sample>) {
        self.back.end(self.samples.len() as u64);
        let address = match self.to {
            Remote::Udp(address) => Some(address),
            Remote::Ethernet(_) => None,
        };
        let series = said.unwrap_or_else(|| exchange(&self.samples));
        let source = match self.args.machine.source(address) {
            Source::Unknown if !series.is_empty() => Source::Exchange,
            source => source,
        };
        self.faults.without_stamp =
            self.samples.iter().filter(|sample| sample.driver.is_none()).count() as u64;
        let window = self.schedule.window(self.schedule.base);
        let output: &options::Output = &self.args.output;
        let input = Input {
            samples: &self.samples,
            interval: self.schedule.interval,
            window,
            clock: ClockError { source, series },
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
            tags: Vec::new(),
            band: output.band,
            analysis: Analysis::of(&input),
        };
        (document, self.samples)
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
