//! `farlane latency stress`: parallel UDP streams, and the sink that counts them.

use super::options::{payload, positive};
use crate::node::{far_side, listening};
use crate::output::wrong_usage;
use crate::signals::Stop;
use clap::ArgGroup;
use latency::frame::{Frame, Kind, Window};
use latency_linux::{Port, Remote};
use live::Clock;
use live::net::Address;
use report::{Failure, Outcome};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time;
use switch::congestion::{Rate, RateLimit};
use wire::{Duration, Instant};

/// Load a network with parallel UDP streams, or receive them and count
#[derive(clap::Args, Debug)]
#[command(group = ArgGroup::new("end").required(true).multiple(true))]
#[command(after_help = "Examples:\n  \
    farlane latency stress --sink 10.0.0.2:7000 --insecure\n  \
    farlane latency stress 10.0.0.2:7000 --streams 8 --rate 10M --size 1400 --duration 60s\n\n\
    Both end after --duration, and on Ctrl-C, with their report.")]
pub struct Args {
    /// The sink, or with --sink where to receive: HOST[:PORT]
    #[arg(value_name = "ADDR")]
    address: String,
    /// Receive, and count what is lost
    #[arg(long, group = "end", conflicts_with_all = ["streams", "rate", "size", "priority"])]
    sink: bool,
    /// With --sink: receive from others than loopback
    #[arg(long, conflicts_with = "rate")]
    insecure: bool,
    /// Streams, each with a socket of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    streams: u16,
    /// Bits of payload a second of each stream, such as 10M or 1G
    #[arg(long, value_name = "RATE", group = "end")]
    rate: Option<Rate>,
    /// Bytes of a payload
    #[arg(long, value_name = "BYTES", default_value_t = 1400, value_parser = payload)]
    size: u16,
    /// Priority of the datagrams, 0 to 7 (SO_PRIORITY)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=7))]
    priority: Option<u8>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = positive)]
    duration: Option<Duration>,
    /// One JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
}

/// The longest wait between two looks at signals.
const NAP: Duration = Duration::from_ms(20);
/// What timers were late is made up for within this time.
const LATE: Duration = Duration::from_ms(10);
/// Datagrams that say how many were sent, so that one arrives.
const ENDS: usize = 3;
/// Streams that a sink counts at most: those of strangers must not fill its memory.
const MOST_STREAMS: usize = 4096;

/// The document of `--json`.
#[derive(Clone, Debug, Serialize)]
struct Document {
    schema: u64,
    /// `stress` or `sink`.
    end: &'static str,
    address: String,
    /// `done` or `interrupted`.
    ended: &'static str,
    streams: Vec<Stream>,
    /// Datagrams that are of no stream, at the sink.
    strangers: u64,
    /// Bytes of payload.
    bytes: u64,
    /// At the sink from the first datagram to the last one.
    seconds: f64,
    /// Of payload.
    payload_bits_per_s: f64,
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Stream {
    /// The sender's socket.
    from: String,
    /// Datagrams; at the sink as far as it knows.
    sent: u64,
    /// Datagrams that the kernel did not take.
    refused: u64,
    /// Datagrams that came; `None` at the sender.
    received: Option<u64>,
    /// Those that did not; a copy hides a loss.
    lost: Option<u64>,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let stop = Stop::on_signals()?;
    let document = match args.sink {
        true => Sink::new(args)?.run(args, &stop)?,
        false => send(args, &stop)?,
    };
    match args.json {
        true => println!("{}", crate::commands::json(&document)),
        false => document.print(),
    }
    Ok(())
}

impl Args {
    /// Whether it is over, and why.
    fn ended(&self, elapsed: Duration, stop: &Stop) -> Option<&'static str> {
        let done = self.duration.is_some_and(|duration| elapsed >= duration);
        stop.is_set().then_some("interrupted").or_else(|| done.then_some("done"))
    }

    /// The limit of all streams together.
    fn limit(&self, each: Rate) -> RateLimit {
        let bits_per_second = each.bits_per_second.saturating_mul(self.streams.into());
        let rate = Rate { bits_per_second, burst: 1 };
        let late = LATE.as_ps() / rate.duration(self.size.into()).as_ps().max(1);
        let burst = u32::try_from(late).unwrap_or(u32::MAX).max(1);
        RateLimit::new(Rate { burst, ..rate }, self.size.into())
    }

    /// What moved `bytes` within `span`.
    fn document(&self, ended: &'static str, bytes: u64, span: Duration) -> Document {
        let seconds = span.as_ns() as f64 / 1e9;
        Document {
            schema: 1,
            end: if self.sink { "sink" } else { "stress" },
            address: self.address.clone(),
            ended,
            streams: Vec::new(),
            strangers: 0,
            bytes,
            seconds,
            payload_bits_per_s: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
        }
    }

    fn no_udp<T>(&self) -> T {
        wrong_usage(format!("'{}': streams are of UDP, HOST[:PORT]", self.address))
    }
}

impl Document {
    fn print(&self) {
        let (verb, streams) = (if self.end == "sink" { "received" } else { "sent" }, &self.streams);
        println!(
            "{verb} {} bytes in {} streams within {:.3} s, {:.3} Mb/s",
            self.bytes,
            streams.len(),
            self.seconds,
            self.payload_bits_per_s / 1e6
        );
        for Stream { from, sent, refused, received, lost } in streams {
            match received.zip(*lost) {
                Some((received, lost)) => println!("  {from}: {received} of {sent}, lost {lost}"),
                None => println!("  {from}: {sent}, the kernel refused {refused}"),
            }
        }
        if self.strangers > 0 {
            println!("  datagrams of no stream: {}", self.strangers);
        }
    }
}

/// A frame of a stream: of the fields only its number counts.
fn datagram(kind: Kind, size: u16, run: u64, sequence: u64) -> Frame {
    let window = Window::default();
    Frame {
        kind,
        size,
        run,
        sequence,
        scheduled: 0,
        woken: 0,
        sent: 0,
        more: [0; 4],
        window,
        interval: 0,
    }
}

/// Sends until it is over.
fn send(args: &Args, stop: &Stop) -> Result<Document, Failure> {
    let Address::Tcp(to) = *far_side(&args.address, true)?.address(0) else {
        return Err(args.no_udp());
    };
    let ports = (0..args.streams).map(|_| open(args, to)).collect::<Result<Vec<_>, _>>()?;
    let (size, to, run) = (u64::from(args.size), Remote::Udp(to), live::random_number());
    let (clock, mut buffer) = (Clock::start(), Vec::new());
    let mut limit = args.limit(args.rate.expect("clap requires it"));
    let mut streams = vec![Stream::default(); ports.len()];
    let mut turn = (0..ports.len()).cycle();
    let ended = loop {
        let now = clock.now();
        if let Some(ended) = args.ended(now.since(Instant::ZERO), stop) {
            break ended;
        }
        if !limit.may_send(now) {
            let pause = limit.not_before().since(now).min(NAP);
            std::thread::sleep(time::Duration::from_nanos(pause.as_ns() + 1));
            continue;
        }
        limit.sent(now, size);
        let of = turn.next().expect("one stream at least");
        datagram(Kind::Data, args.size, run, streams[of].sent).encode(&mut buffer);
        match ports[of].send(&buffer, to, None, None) {
            Ok(()) => streams[of].sent += 1,
            Err(_) => streams[of].refused += 1,
        }
    };
    let span = clock.now().since(Instant::ZERO);
    for (stream, port) in streams.iter_mut().zip(&ports) {
        stream.from = port.address()?.map_or(String::new(), |address| address.to_string());
        datagram(Kind::End, args.size, run, stream.sent).encode(&mut buffer);
        (0..ENDS).for_each(|_| drop(port.send(&buffer, to, None, None)));
    }
    let bytes = streams.iter().map(|stream| stream.sent * size).sum();
    Ok(Document { streams, ..args.document(ended, bytes, span) })
}

/// The socket of a stream.
fn open(args: &Args, to: SocketAddr) -> Result<Port, Failure> {
    let port = Port::udp_towards(to)?;
    if let Some(priority) = args.priority {
        port.set_priority(priority)
            .map_err(|error| Failure(format!("--priority {priority} refused: {error}")))?;
    }
    Ok(port)
}

/// What a sink has heard.
struct Sink {
    port: Port,
    /// By sender and run.
    streams: BTreeMap<(SocketAddr, u64), Stream>,
    strangers: u64,
    bytes: u64,
    /// When the first and the last datagram came.
    span: Option<(Instant, Instant)>,
}

impl Sink {
    fn new(args: &Args) -> Result<Self, Failure> {
        let Address::Tcp(address) = listening(&args.address, args.insecure)? else {
            return Err(args.no_udp());
        };
        let port = Port::udp(address)?;
        eprintln!("listening on {}", port.address()?.unwrap_or(address));
        Ok(Self { port, streams: BTreeMap::new(), strangers: 0, bytes: 0, span: None })
    }

    /// Receives until it is over, and then what waits.
    fn run(mut self, args: &Args, stop: &Stop) -> Result<Document, Failure> {
        let (clock, mut buffer) = (Clock::start(), [0; 2048]);
        let ended = loop {
            let ended = args.ended(clock.now().since(Instant::ZERO), stop);
            self.port.wait(time::Duration::from_nanos(NAP.as_ns()))?;
            // So many in a turn: streams that never pause must not keep it from its end.
            for _ in 0..4096 {
                let Some(received) = self.port.receive(&mut buffer)? else { break };
                self.take(&buffer[..received.bytes], received.from, clock.now());
            }
            if let Some(ended) = ended {
                break ended;
            }
        };
        let span = self.span.map_or(Duration::ZERO, |(first, last)| last.since(first));
        let streams = self.streams.into_iter().map(|((from, _), stream)| Stream {
            from: from.to_string(),
            lost: stream.received.map(|received| stream.sent.saturating_sub(received)),
            ..stream
        });
        let (streams, strangers) = (streams.collect(), self.strangers);
        Ok(Document { streams, strangers, ..args.document(ended, self.bytes, span) })
    }

    fn take(&mut self, bytes: &[u8], from: Remote, now: Instant) {
        let (Ok(frame), Remote::Udp(from)) = (Frame::decode(bytes), from) else {
            self.strangers += 1;
            return;
        };
        let key = (from, frame.run);
        if self.streams.len() >= MOST_STREAMS && !self.streams.contains_key(&key) {
            self.strangers += 1;
            return;
        }
        let stream = self.streams.entry(key).or_default();
        let received = stream.received.get_or_insert(0);
        if frame.kind != Kind::Data {
            stream.sent = stream.sent.max(frame.sequence);
            return;
        }
        *received += 1;
        stream.sent = stream.sent.max(frame.sequence.saturating_add(1));
        self.bytes += bytes.len() as u64;
        self.span = Some((self.span.map_or(now, |(first, _)| first), now));
    }
}
