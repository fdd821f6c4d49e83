//! The device node's end of a link, with the function below it.

use crate::tunnel::{self, Cause, Report, Settings, Tunnel};
use bytes::BytesMut;
use pcie::{Errors, Function, Input, Output as FunctionOutput};
use wire::Instant;
use wire::frame::{Hello, Reject};
use wire::tlp::Malformed;

/// Output of a device node's link end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this many bytes from the end of the buffer.
    Transmit(usize),
    /// The link to a host or probe is up.
    Up(Hello),
    /// The link is down and the function reset: close the connection.
    Down(Cause),
    /// No output now. Poll again after an input or at this time.
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

    /// Handles an input from the network.
    pub fn handle(&mut self, now: Instant, input: tunnel::Input) {
        self.tunnel.handle(now, input);
    }

    /// The next output; appends frames to `out`. Exchanges TLPs between tunnel
    /// and function first.
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
                // The device node serves probes on connections of their own.
                tunnel::Output::EchoReply(_)
                | tunnel::Output::Move(_)
                | tunnel::Output::Moved(_) => {}
                tunnel::Output::Timeout(at) => {
                    return Output::Timeout(earlier(at, timer));
                }
            }
        }
    }

    /// Exchanges TLPs between tunnel and function until neither has one for the
    /// other. Returns the function's timer.
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

    /// Rejects the peer whose Hello is awaited.
    pub fn reject_peer(&mut self, reason: Reject) {
        self.tunnel.reject_peer(reason);
    }

    /// The function, for input that does not come over the link.
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

    /// Error counters of the link.
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

/// Counts the error that took a link down, and the posted TLPs lost.
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
