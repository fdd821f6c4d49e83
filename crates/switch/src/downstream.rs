//! The device node's end of a link, and the function below it.

use crate::tunnel::{self, Cause, Report, Settings, Tunnel};
use bytes::BytesMut;
use pcie::{Errors, Function, Input, Output as FunctionOutput};
use wire::Instant;
use wire::frame::{Hello, Reject};
use wire::tlp::Malformed;

/// What the device node's end wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// So many bytes at the end of the buffer are for the network.
    Transmit(usize),
    /// A host, or a probe, is there.
    Up(Hello),
    /// Close the connection; the function has been reset.
    Down(Cause),
    /// Nothing more now; call again after an input or at this time.
    Timeout(Option<Instant>),
}

/// A tunnel end with the function that it serves.
#[derive(Debug)]
pub struct Downstream<F> {
    tunnel: Tunnel,
    function: F,
    errors: Errors,
}

impl<F: Function> Downstream<F> {
    /// An end without a connection.
    pub fn new(settings: Settings, function: F) -> Self {
        Self { tunnel: Tunnel::new(settings), function, errors: Errors::default() }
    }

    /// Takes what the network brings.
    pub fn handle(&mut self, now: Instant, input: tunnel::Input) {
        self.tunnel.handle(now, input);
    }

    /// The next thing for the network, frames behind what is in `out`; moves
    /// TLPs on the way.
    pub fn poll(&mut self, now: Instant, out: &mut BytesMut) -> Output {
        loop {
            let timer = self.exchange(now);
            match self.tunnel.poll(now, out) {
                tunnel::Output::Transmit(length) => return Output::Transmit(length),
                tunnel::Output::Up(hello) => {
                    self.function.handle(now, Input::HotReset);
                    return Output::Up(hello);
                }
                tunnel::Output::Down(cause) => {
                    count_down(&mut self.errors, &cause, self.tunnel.take_posted_lost());
                    self.function.handle(now, Input::HotReset);
                    return Output::Down(cause);
                }
                tunnel::Output::Reset => {
                    self.function.handle(now, Input::HotReset);
                    self.tunnel.reset_done();
                }
                // A probe that moves devices is served beside the host, and
                // nobody but a probe asks.
                tunnel::Output::EchoReply(_)
                | tunnel::Output::Move(_)
                | tunnel::Output::Moved(_) => {}
                tunnel::Output::Timeout(at) => {
                    return Output::Timeout(earlier(at, timer));
                }
            }
        }
    }

    /// TLPs both ways until nothing moves, as [`poll`](Self::poll) does it
    /// first; yields the function's timer.
    pub fn exchange(&mut self, now: Instant) -> Option<Instant> {
        loop {
            while let Some(tlp) = self.tunnel.pop(self.function.ready()) {
                self.function.handle(now, Input::Tlp(tlp));
            }
            match self.function.poll(now, self.tunnel.ready()) {
                FunctionOutput::Tlp(tlp) => self.tunnel.push(tlp),
                FunctionOutput::Wait(wait) => return wait.until,
            }
        }
    }

    /// Refuses the peer that is greeting now.
    pub fn reject_peer(&mut self, reason: Reject) {
        self.tunnel.reject_peer(reason);
    }

    /// The function, for the input that does not come over the link.
    pub fn function_mut(&mut self) -> &mut F {
        &mut self.function
    }

    /// The function.
    pub fn function(&self) -> &F {
        &self.function
    }

    /// The tunnel's end.
    pub fn tunnel(&self) -> &Tunnel {
        &self.tunnel
    }

    /// What went wrong on the link so far.
    pub fn errors(&self) -> &Errors {
        &self.errors
    }

    /// As [`Tunnel::report_frames`].
    pub fn report_frames(&mut self, on: bool) {
        self.tunnel.report_frames(on);
    }

    /// As [`Tunnel::poll_report`].
    pub fn poll_report(&mut self) -> Option<Report> {
        self.tunnel.poll_report()
    }

    /// Tells the host that this end closes on purpose.
    pub fn goodbye(&mut self) {
        self.tunnel.goodbye();
    }
}

/// Counts why a link went down, and what was lost with it.
pub(crate) fn count_down(errors: &mut Errors, cause: &Cause, posted_lost: u64) {
    match cause {
        Cause::Tlp(Malformed::Digest) => errors.ecrc += 1,
        Cause::Tlp(_) => errors.malformed += 1,
        _ => {}
    }
    errors.dropped_link_down += posted_lost;
}

/// The earlier of two timers.
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
