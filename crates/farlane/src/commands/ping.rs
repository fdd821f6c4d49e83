//! `farlane ping`: the raw round trip of a link, and of a configuration read.

use super::{Failure, Outcome};
use crate::analyse::latency::{Latency, Summary};
use crate::node::{NodeArgs, instance};
use bytes::Bytes;
use live::Clock;
use live::net::{Connection, resolve_local};
use switch::tunnel::{Cause, Input, Output, Settings, Tunnel};
use wire::frame::{Reject, Role};
use wire::tlp::{ConfigKind, ConfigRequest, Packet, Tlp};
use wire::{Bdf, Duration, Instant, Tag};

/// Measure the round trip to a node: of the link, and of a configuration read
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  farlane ping 127.0.0.1:4420 --count 1000 --json\n\n\
    For the configuration read it takes the host's place for a moment; while a\n\
    host is attached only the link is measured, and stderr says so.")]
pub struct Args {
    /// The node
    #[arg(value_name = "ADDR")]
    address: String,
    /// Round trips of each kind
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

/// How long any answer may take.
const PATIENCE: Duration = Duration::from_ms(2_000);

/// Runs the command.
///
/// # Errors
/// One line for the user.
pub fn run(args: &Args) -> Outcome {
    let mut end = End::connect(args, Role::Probe)?;
    let echo = end.measure(args.count, End::echo)?;
    end.tunnel.goodbye();
    end.turn()?;
    drop(end);
    // The probe carries no TLPs: a configuration read takes the host's place.
    let config_read = match End::connect(args, Role::Host) {
        Ok(mut end) => {
            let summary = end.measure(args.count, End::config_read)?;
            end.tunnel.goodbye();
            end.turn()?;
            Ok(summary)
        }
        Err(failure) => Err(failure),
    };
    if args.json {
        let document = serde_json::json!({
            "schema": 1,
            "link": echo,
            "config_read": config_read.as_ref().ok(),
        });
        println!("{document:#}");
    } else {
        println!(
            "{:<20} {:>8} {:>12} {:>12} {:>12}",
            "round trip", "n", "p50 us", "p99 us", "max us"
        );
        line("link", &echo);
        if let Ok(summary) = &config_read {
            line("configuration read", summary);
        }
    }
    if let Err(failure) = config_read {
        eprintln!("no configuration read: {failure}");
    }
    Ok(())
}

fn line(name: &str, s: &Summary) {
    let us = |ns: u64| format!("{:.3}", ns as f64 / 1000.0);
    println!(
        "{name:<20} {:>8} {:>12} {:>12} {:>12}",
        s.n,
        us(s.p50_ns),
        us(s.p99_ns),
        us(s.max_ns)
    );
}

/// A link end without anything behind it.
struct End {
    clock: Clock,
    poller: live::Poller,
    connection: Connection,
    tunnel: Tunnel,
    answered: Option<Instant>,
    name: String,
}

impl End {
    fn connect(args: &Args, role: Role) -> Result<Self, Failure> {
        let name = args.address.clone();
        let address = resolve_local(&args.address, args.node.insecure)?;
        let clock = Clock::start();
        let mut poller = args.node.poller()?;
        let connection = Connection::connect(address)?;
        poller.add(&connection, true)?;
        let named = |error: std::io::Error| Failure(format!("{name}: {error}"));
        while !connection.established().map_err(named)? {
            if clock.now() > Instant::ZERO + PATIENCE {
                return Err(Failure(format!("{name}: no answer")));
            }
            poller.wait(&clock, Some(clock.now() + Duration::from_ms(100)))?;
        }
        poller.modify(&connection, false)?;
        let settings = Settings { max_payload: args.node.mps, ..Settings::new(role, instance()) };
        let mut tunnel = Tunnel::new(settings);
        tunnel.handle(clock.now(), Input::Connected);
        let mut end = Self { clock, poller, connection, tunnel, answered: None, name };
        while !end.tunnel.is_up() {
            end.turn()?;
        }
        Ok(end)
    }

    /// Moves what can be moved, then waits.
    fn turn(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        let failed = |name: &str, why: String| Failure(format!("{name}: {why}"));
        let mut moved = false;
        let mut closed = false;
        while let Some(bytes) =
            self.connection.receive().map_err(|error| failed(&self.name, error.to_string()))?
        {
            if bytes.is_empty() {
                closed = true;
                break;
            }
            moved = true;
            self.tunnel.handle(now, Input::Received(bytes));
        }
        if self.tunnel.pop(pcie::Ready::ALL).is_some() {
            self.answered = Some(self.clock.now());
        }
        let timer = loop {
            let bytes = self.connection.room();
            self.tunnel.handle(now, Input::CanTransmit { bytes });
            match self.tunnel.poll(now) {
                Output::Transmit(bytes) => {
                    moved = true;
                    self.connection.send(bytes.into())?;
                }
                Output::EchoReply(_) => self.answered = Some(self.clock.now()),
                Output::Down(Cause::Rejected(Reject::Busy)) => {
                    return Err(failed(&self.name, "another host uses this device".into()));
                }
                Output::Down(cause) => return Err(failed(&self.name, cause.to_string())),
                Output::Up(_) | Output::Reset => moved = true,
                Output::Timeout(at) => break at,
            }
        };
        if closed {
            return Err(failed(&self.name, "the node closed the connection".into()));
        }
        if moved {
            self.poller.busy(now);
        } else {
            self.poller.wait(&self.clock, timer)?;
        }
        Ok(())
    }

    fn echo(&mut self, number: u32) {
        self.tunnel.echo(u64::from(number));
    }

    fn config_read(&mut self, number: u32) {
        let request = ConfigRequest {
            kind: ConfigKind::Type0,
            requester: Bdf::default(),
            tag: Tag::truncate(number as u16),
            target: Bdf::new(1, 0, 0),
            register: 0,
            first_be: 0xf,
        };
        self.tunnel.push(Tlp::new(Packet::ConfigRead(request), Bytes::new()));
    }

    fn measure(&mut self, count: u32, ask: fn(&mut Self, u32)) -> Result<Summary, Failure> {
        let warm_up = count / 10 + 1;
        let mut times = Latency::new();
        for number in 0..warm_up + count {
            self.answered = None;
            let start = self.clock.now();
            ask(self, number);
            let answered = loop {
                if let Some(at) = self.answered {
                    break at;
                }
                if self.clock.now() > start + PATIENCE {
                    return Err(Failure(format!("{}: no answer", self.name)));
                }
                self.turn()?;
            };
            if number >= warm_up {
                times.record(answered - start);
            }
        }
        Ok(times.summary())
    }
}
