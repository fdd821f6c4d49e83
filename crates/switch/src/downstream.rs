//! The device node's end of a link, with the function below it.

use crate::tunnel::{self, Cause, Settings, Tunnel};
use crate::upstream::next_timer;
use bytes::BytesMut;
use pcie::{Errors, Function, Input, Output as FunctionOutput};
use wire::Instant;
use wire::tlp::Malformed;

/// Output of a device node's link end: no resets, which it carries out, and no answers.
pub use crate::tunnel::Output;

/// A tunnel end with the function that it serves.
#[derive(Debug)]
pub struct Downstream<F> {
    /// The link.
    pub tunnel: Tunnel,
    function: F,
    /// Errors counted on the link.
    pub errors: Errors,
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

    /// The next output; appends frames to `out`. Exchanges TLPs between tunnel and function first.
    pub fn poll(&mut self, now: Instant, out: &mut BytesMut) -> Output {
        loop {
            let timer = self.exchange(now);
            let output = self.tunnel.poll(now, out);
            match &output {
                Output::Transmit(_) => return output,
                Output::Timeout(at) => return Output::Timeout(next_timer([*at, timer])),
                // The device node serves probes on connections of their own.
                Output::EchoReply(_) | Output::Move(_) | Output::Moved(_) => continue,
                Output::Down(cause) => {
                    count_down(&mut self.errors, cause, self.tunnel.take_posted_lost());
                }
                Output::Up(_) | Output::Reset => {}
            }
            self.function.handle(now, Input::HotReset);
            if output != Output::Reset {
                return output;
            }
            self.tunnel.reset_done();
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

    /// The function, for input that does not come over the link.
    pub fn function_mut(&mut self) -> &mut F {
        &mut self.function
    }

    /// The function.
    pub fn function(&self) -> &F {
        &self.function
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
