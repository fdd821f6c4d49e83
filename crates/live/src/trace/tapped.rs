//! A function with a tap at its port.

use super::Tracer;
use crate::attached::{Activity, Attached, Report};
use crate::poller::Poller;
use pcie::{Function, Input, Output, Ready, Target};
use std::io;
use wire::Instant;
use wire::trace::Tap;

/// Records what passes between a function and what is above it.
pub struct Tapped<A> {
    /// The function.
    pub inner: A,
    tracer: Tracer,
}

impl<A> Tapped<A> {
    /// Records what passes `inner`.
    pub fn new(inner: A, tracer: Tracer) -> Self {
        Self { inner, tracer }
    }
}

impl<A: Function> Function for Tapped<A> {
    fn handle(&mut self, now: Instant, input: Input) {
        if let Input::Tlp(tlp) = &input {
            self.tracer.tlp(Tap::FUNCTION, false, tlp);
        }
        self.inner.handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let output = self.inner.poll(now, ready);
        if let Output::Tlp(tlp) = &output {
            self.tracer.tlp(Tap::FUNCTION, true, tlp);
        }
        output
    }

    fn ready(&self) -> Ready {
        self.inner.ready()
    }

    fn lane(&self, target: Target) -> usize {
        self.inner.lane(target)
    }

    fn lane_ready(&self, lane: usize) -> Ready {
        self.inner.lane_ready(lane)
    }
}

impl<A: Attached> Attached for Tapped<A> {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        self.inner.service(now, poller)
    }

    fn watch(&self, poller: &Poller) -> io::Result<()> {
        self.inner.watch(poller)
    }

    fn drain(&mut self) -> bool {
        self.inner.drain()
    }

    fn news(&mut self) -> Option<String> {
        self.inner.news()
    }

    fn report(&self) -> Report {
        self.inner.report()
    }

    fn close(&mut self) -> io::Result<()> {
        self.inner.close()
    }

    fn tracer(&self) -> Tracer {
        self.tracer.clone()
    }
}
