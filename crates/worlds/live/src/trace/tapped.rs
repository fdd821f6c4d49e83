//! A function whose TLPs are observed at its port.

use super::Tracer;
use pcie::{Function, Input, Output, Ports, Ready};
use wire::Instant;
use wire::tlp::Tlp;
use wire::trace::Tap;

/// Observes the TLPs at a port.
pub trait TlpObserver {
    /// A TLP passes, towards the root complex if `up`.
    fn observe(&mut self, up: bool, tlp: &Tlp);

    /// Whether it does anything with TLPs now. Then they pass one by one.
    fn is_on(&self) -> bool;
}

/// Records the TLPs between a device node and its function.
impl TlpObserver for Tracer {
    fn observe(&mut self, up: bool, tlp: &Tlp) {
        self.tlp(Tap::FUNCTION, up, tlp);
    }

    fn is_on(&self) -> bool {
        Self::is_on(self)
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
        match input {
            Input::Tlp(tlp) if self.observer.is_on() => {
                for single in tlp.singles() {
                    self.observer.observe(false, &single);
                    self.inner.handle(now, Input::Tlp(single));
                }
            }
            input => self.inner.handle(now, input),
        }
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let runs = ready.takes_runs() && !self.observer.is_on();
        let output = self.inner.poll(now, ready.with_runs(runs));
        if let Output::Tlp(tlp) = &output {
            self.observer.observe(true, tlp);
        }
        output
    }

    fn ready(&self) -> Ready {
        let ready = self.inner.ready();
        ready.with_runs(ready.takes_runs() && !self.observer.is_on())
    }

    fn ports(&self) -> Option<&dyn Ports> {
        self.inner.ports()
    }
}
