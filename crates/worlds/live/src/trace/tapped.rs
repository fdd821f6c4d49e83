//! A function whose TLPs are observed at its port.

use super::Tracer;
use pcie::{Function, Input, Output, Ports, Ready};
use wire::Instant;
use wire::tlp::Tlp;
use wire::trace::Tap;

/// Observes the TLPs at a port.
pub trait TlpObserver {
    /// Observes a TLP, or a run, that passes towards the root complex if `up`.
    fn observe(&mut self, up: bool, tlp: &Tlp);
}

/// Records the TLPs between a device node and its function.
impl TlpObserver for Tracer {
    fn observe(&mut self, up: bool, tlp: &Tlp) {
        self.tlp(Tap::FUNCTION, up, tlp);
    }
}

/// A function, and the observer of the TLPs between it and its port.
pub struct Tapped<A, W> {
    /// The function.
    pub inner: A,
    /// The observer.
    pub observer: W,
}

impl<A: Function, W: TlpObserver> Function for Tapped<A, W> {
    fn handle(&mut self, now: Instant, input: Input) {
        if let Input::Tlp(tlp) = &input {
            self.observer.observe(false, tlp);
        }
        self.inner.handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let output = self.inner.poll(now, ready);
        if let Output::Tlp(tlp) = &output {
            self.observer.observe(true, tlp);
        }
        output
    }

    fn ready(&self) -> Ready {
        self.inner.ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        self.inner.ports()
    }
}
