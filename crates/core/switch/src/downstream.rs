//! The device node's end of a link, with the function below it.

use crate::push_store::{Rule, Store};
use crate::tunnel::{self, Cause, Place, SavedSession, Settings, Tunnel};
use bytes::Bytes;
use pcie::endpoint::{ForeignState, Unsent};
use pcie::{Errors, Function, Input, Output as FunctionOutput, Wait};
use serde::{Deserialize, Serialize};
use wire::earliest;
use wire::tlp::{Class, Malformed, Tlp};
use wire::{Duration, Instant};

/// Output of the device end of a link. [`Downstream`] executes resets itself, so [`Output::Reset`]
/// does not occur, nor do outputs for probes.
pub use crate::tunnel::Output;

/// The state of a device's end of a link that goes on in another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLink {
    session: SavedSession,
    /// The function.
    pub function: Bytes,
    /// Messages that announce the queues whose entries are pushed.
    queues: Bytes,
}

impl SavedLink {
    /// Whether the host still waits for this end after such a time.
    pub fn is_awaited_after(&self, away: Duration) -> bool {
        self.session.is_awaited_after(away)
    }
}

/// A tunnel end with the function that it serves.
#[derive(Debug)]
pub struct Downstream<F, R> {
    /// The link.
    pub tunnel: Tunnel,
    function: F,
    /// The bytes that the host pushed for the function.
    store: Store<R>,
    /// The wait that the function returned at the last poll; `None` after an input since then.
    waits: Option<Wait>,
    /// Errors counted on the link.
    pub errors: Errors,
}

impl<F: Function, R: Rule> Downstream<F, R> {
    /// A device end without a connection. `rule` decides which pushed bytes a write of the function
    /// invalidates.
    pub fn new(settings: Settings, function: F, rule: R) -> Self {
        let store = Store::new(settings.push as usize, rule);
        let (tunnel, errors) = (Tunnel::new(settings), Errors::default());
        Self { tunnel, function, store, waits: None, errors }
    }

    /// Handles an input from the network, of the only path.
    pub fn handle(&mut self, now: Instant, input: tunnel::Input) {
        self.handle_path(now, 0, input);
    }

    /// As [`Tunnel::handle_path`].
    pub fn handle_path(&mut self, now: Instant, path: usize, input: tunnel::Input) {
        if !matches!(input, tunnel::Input::CanTransmit { .. }) {
            self.waits = None;
        }
        self.tunnel.handle_path(now, path, input);
    }

    /// The next output. Exchanges TLPs between tunnel and function first.
    pub fn poll(&mut self, now: Instant) -> Output {
        loop {
            let timer = self.exchange_if_due(now);
            let output = self.tunnel.poll(now);
            match &output {
                // The function goes on while the session is interrupted.
                Output::Transmit(..)
                | Output::PathLost(..)
                | Output::Resumed
                | Output::Joined(_)
                | Output::FailedOver(_) => return output,
                Output::Timeout(at) => return Output::Timeout(earliest([*at, timer])),
                // The device node handles probes on separate connections.
                Output::EchoReply(_) | Output::Move(_) | Output::Moved(_) => continue,
                Output::Down(cause) => {
                    count_down(&mut self.errors, cause, self.tunnel.take_posted_lost());
                }
                Output::Up(_) | Output::Reset => {}
            }
            self.tunnel.report_dropped(self.store.clear());
            self.waits = None;
            self.function.handle(now, Input::HotReset);
            if output != Output::Reset {
                return output;
            }
            self.tunnel.reset_done();
        }
    }

    /// As [`exchange`](Self::exchange), but does nothing if neither the tunnel nor the function has
    /// had an input.
    fn exchange_if_due(&mut self, now: Instant) -> Option<Instant> {
        match self.waits {
            Some(Wait { until, receiver: false }) if until.is_none_or(|at| at > now) => until,
            _ => self.exchange(now),
        }
    }

    /// Exchanges TLPs between tunnel and function until neither has a TLP for the other. Returns
    /// the time at which the function must be polled again.
    pub fn exchange(&mut self, now: Instant) -> Option<Instant> {
        if self.tunnel.is_up() && self.tunnel.lease().is_some_and(|until| now >= until) {
            self.waits = None;
            return None;
        }
        let mut down = true;
        loop {
            while down && let Some(tlp) = self.next_down() {
                self.function.handle(now, Input::Tlp(tlp));
            }
            let ready = self.tunnel.ready();
            let reads = ready.has(Class::NonPosted) && self.store.takes_reads();
            let ready = ready.with(Class::NonPosted, reads).with_runs(true);
            match self.function.poll(now, ready) {
                FunctionOutput::Tlp(tlp) => {
                    let whole = self.function.ready().takes_runs();
                    if let Some(tlp) = self.store.answer(tlp, whole) {
                        self.tunnel.push(tlp);
                    }
                    // A TLP that waited for the function may be accepted now.
                    down = self.store.has_replies() || self.tunnel.has_received();
                }
                FunctionOutput::Wait(wait) => {
                    self.waits = Some(wait);
                    return wait.until;
                }
            }
        }
    }

    /// The next TLP for the function. Answers from the store need no ordering against the tunnel:
    /// the function has already received every posted request that preceded the pushed bytes.
    fn next_down(&mut self) -> Option<Tlp> {
        loop {
            let ready = self.function.ready();
            if let Some(reply) = self.store.pop(ready) {
                return Some(reply);
            }
            let received = self.tunnel.pop(ready)?;
            if let Some(tlp) = self.store.take(received) {
                return Some(tlp);
            }
        }
    }

    /// The state now; `None` without a session that survives its connections. `function` returns the
    /// state of the function, `place` is as for [`Tunnel::save`].
    pub fn save(
        &mut self,
        function: impl FnOnce(&mut F, &Unsent) -> Bytes,
        place: &mut dyn FnMut(u64, &Bytes) -> Place,
    ) -> Option<SavedLink> {
        // Without a session too, so that the function forgets what it keeps for this.
        let function = function(&mut self.function, &self.tunnel.unsent());
        let (session, queues) = (self.tunnel.save(place)?, self.store.save());
        Some(SavedLink { session, queues, function })
    }

    /// Goes on with the link of an earlier process, which waits for a connection. The function is to
    /// be restored before.
    ///
    /// # Errors
    /// If the state is damaged.
    pub fn restore(
        &mut self,
        now: Instant,
        saved: SavedLink,
        bytes: &mut dyn FnMut(Place) -> Option<Bytes>,
    ) -> Result<(), ForeignState> {
        self.waits = None;
        self.store.restore(saved.queues)?;
        self.tunnel.restore(now, &saved.session, bytes)
    }

    /// The bytes that the host pushed for the function.
    pub fn store(&self) -> &Store<R> {
        &self.store
    }

    /// The function, for input that does not arrive over the link.
    pub fn function_mut(&mut self) -> &mut F {
        self.waits = None;
        &mut self.function
    }

    /// The function.
    pub fn function(&self) -> &F {
        &self.function
    }
}

/// Counts the error that took a link down, and the lost posted TLPs.
pub(crate) fn count_down(errors: &mut Errors, cause: &Cause, posted_lost: u64) {
    match cause {
        Cause::Tlp(Malformed::Digest) => errors.ecrc += 1,
        Cause::Tlp(_) => errors.malformed += 1,
        _ => {}
    }
    errors.dropped_link_down += posted_lost;
}
