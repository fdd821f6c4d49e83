//! A link end without a device behind it, for commands that talk to a node.

use crate::node::{NodeArgs, far_side, instance};
use live::Clock;
use live::net::{Address, Carrier};
use report::{Failure, Outcome};
use std::io;
use std::sync::Arc;
use switch::tunnel::{Cause, Input, Output, Settings, Tunnel};
use wire::earliest;
use wire::frame::{Moved, Reject, Role};
use wire::{Duration, Instant};

/// Time to wait for any answer. A command that asks once waits longer than a link does: the node, or
/// its machine, may be busy.
const TIMEOUT: Duration = Duration::from_ms(5_000);

/// A link end without a device behind it.
pub struct LinkEnd {
    /// The clock of the tunnel.
    pub clock: Clock,
    poller: live::Poller,
    connection: Carrier,
    /// The tunnel to the node.
    pub tunnel: Tunnel,
    /// Time of the latest echo reply or TLP.
    pub last_answer: Option<Instant>,
    moved: Option<Moved>,
    name: String,
}

impl LinkEnd {
    /// Connects to the node at `address`, `HOST[:PORT]` or raw Ethernet, and exchanges Hellos. The
    /// error names the node.
    pub fn connect(address: &str, args: &NodeArgs, role: Role) -> Result<Self, Failure> {
        let peer = far_side(address, args.keys.protection())?;
        let clock = Clock::start();
        let mut poller = args.ungated().poller()?;
        let mut attempt = 0;
        let connection = loop {
            let address = peer.address(attempt);
            match connect(address, peer.key_name(), args, clock, &mut poller) {
                Ok(connection) => break connection,
                Err(_) if attempt + 1 < peer.addresses().len() => attempt += 1,
                Err(error) => return Err(Failure(format!("{}: {error}", peer.named(attempt)))),
            }
        };
        let name = peer.named(attempt);
        let mut fitting = args.ungated();
        fitting.fit([peer.address(attempt)])?;
        let max_payload = fitting.max_payload;
        let settings =
            Settings { max_payload, loss_limit: TIMEOUT, ..Settings::new(role, instance()) };
        let mut tunnel = Tunnel::new(settings);
        tunnel.handle(clock.now(), Input::Connected);
        let (last_answer, moved) = (None, None);
        let mut end = Self { clock, poller, connection, tunnel, last_answer, moved, name };
        while !end.tunnel.is_up() {
            end.turn()?;
        }
        Ok(end)
    }

    /// Sends and receives without blocking, then waits for input.
    /// Fails if the node closed the link; the error names the node.
    pub fn turn(&mut self) -> Outcome {
        let now = self.clock.now();
        let failed = |name: &str, why: String| Failure(format!("{name}: {why}"));
        let flushed = self.connection.flush(now);
        flushed.map_err(|error| failed(&self.name, error.to_string()))?;
        let (tunnel, mut moved) = (&mut self.tunnel, false);
        let closed = self.connection.receive(now, |bytes| {
            moved = true;
            tunnel.handle(now, Input::Received(bytes));
        });
        if closed && let Some(why) = self.connection.take_failure() {
            return Err(failed(&self.name, why));
        }
        if closed && !self.tunnel.is_up() {
            self.tunnel.handle(now, Input::Disconnected);
        }
        if self.tunnel.pop(pcie::Ready::ALL).is_some() {
            self.last_answer = Some(self.clock.now());
        }
        let timer = loop {
            let bytes = self.connection.room(now);
            self.tunnel.handle(now, Input::CanTransmit { bytes });
            match self.tunnel.poll(now) {
                Output::Transmit(_, bytes) => {
                    moved = true;
                    let sent = self.connection.send(now, bytes);
                    sent.map_err(|error| failed(&self.name, error.to_string()))?;
                }
                Output::EchoReply(_) => self.last_answer = Some(self.clock.now()),
                Output::Down(Cause::Rejected(Reject::Busy)) => {
                    return Err(failed(&self.name, "another host uses this device".into()));
                }
                Output::Down(cause) => return Err(failed(&self.name, cause.to_string())),
                Output::Moved(answer) => {
                    moved = true;
                    self.moved = Some(answer);
                }
                Output::Up(_)
                | Output::Reset
                | Output::Move(_)
                | Output::PathLost(..)
                | Output::Resumed
                | Output::Joined(_)
                | Output::FailedOver(_) => moved = true,
                Output::Timeout(at) => break at,
            }
        };
        if closed {
            return Err(failed(&self.name, "the node closed the connection".into()));
        }
        if moved {
            self.poller.busy(now);
        } else {
            let timer = earliest([timer, self.connection.timer()]);
            self.poller.wait(&self.clock, timer)?;
        }
        Ok(())
    }

    /// Waits for the next echo reply or TLP.
    /// Fails as [`turn`](Self::turn), or after [`TIMEOUT`].
    pub fn answer(&mut self) -> Result<Instant, Failure> {
        self.last_answer = None;
        self.wait_for(|end| end.last_answer)
    }

    /// Requests that the node joins another group of hosts; returns the answer.
    /// Fails as [`turn`](Self::turn), or after [`TIMEOUT`].
    pub fn move_to(&mut self, group: u16) -> Result<Moved, Failure> {
        self.tunnel.move_to(group);
        self.wait_for(|end| end.moved.take())
    }

    /// Sends Goodbye. Fails as [`turn`](Self::turn).
    pub fn close(mut self) -> Outcome {
        self.tunnel.goodbye();
        self.turn()
    }

    fn wait_for<T>(&mut self, mut came: impl FnMut(&mut Self) -> Option<T>) -> Result<T, Failure> {
        let start = self.clock.now();
        loop {
            if let Some(answer) = came(self) {
                return Ok(answer);
            }
            if self.clock.now() > start + TIMEOUT {
                return Err(Failure(format!("{}: no answer within {TIMEOUT}", self.name)));
            }
            self.turn()?;
        }
    }
}

/// An established connection to `address`.
fn connect(
    address: &Address,
    key_name: Option<&Arc<str>>,
    args: &NodeArgs,
    clock: Clock,
    poller: &mut live::Poller,
) -> io::Result<Carrier> {
    let start = clock.now();
    let settings = args.settings().map_err(|failure| io::Error::other(failure.to_string()))?;
    let mut settings = settings.links()?;
    settings.raw.give_up = TIMEOUT;
    let mut connection = Carrier::connect(start, address, key_name, &settings)?;
    poller.add(&connection, connection.connects_when_writable())?;
    while !connection.established(clock.now())? {
        if clock.now() > start + TIMEOUT {
            return Err(io::Error::other(format!("no answer within {TIMEOUT}")));
        }
        let soon = Some(clock.now() + Duration::from_ms(100));
        poller.wait(&clock, earliest([soon, connection.timer()]))?;
    }
    poller.modify(&connection, false)?;
    Ok(connection)
}
