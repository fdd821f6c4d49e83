//! A root complex with one function directly below its root port.

use crate::endpoint::{Endpoint, EndpointConfig};
use crate::function::{Function, Input, Output, Ports, Ready};
use crate::memory::Ram;
use crate::root::{self, HostOutput, RootComplex, Settings};
use crate::software::{Bus, Request, Task};
use bytes::Bytes;
use wire::{Duration, Instant};

pub struct Testbed<F> {
    pub root: RootComplex,
    pub function: F,
    /// Host memory that answers reads and takes writes.
    pub ram: Option<Ram>,
    pub bus: Bus,
    pub now: Instant,
    /// Other outputs of the root complex.
    pub outputs: Vec<root::Output>,
    /// Whether packets to the function are dropped.
    pub dead: bool,
}

/// An endpoint with a BAR 0 of 16 KiB and 4 vectors.
pub fn endpoint(max_payload: usize, read_request: usize, reads_in_flight: usize) -> EndpointConfig {
    EndpointConfig {
        serial: 42,
        bar0_size: 0x4000,
        vectors: 4,
        max_payload,
        read_request,
        reads_in_flight,
        ..EndpointConfig::new(0x1234, 0x5678, [5, 0x80, 0])
    }
}

impl<F: Function> Testbed<F> {
    pub fn new(settings: Settings, function: F, ram: Option<Ram>) -> Self {
        Self {
            root: RootComplex::new(settings),
            function,
            ram,
            bus: Bus::new(),
            now: Instant::ZERO,
            outputs: Vec::new(),
            dead: false,
        }
    }

    /// Moves packets until no packet can move.
    pub fn settle(&mut self) {
        loop {
            let mut moved = false;
            while let Some((id, request)) = self.bus.next_request() {
                if let Request::Sleep(_) = request {
                    self.now += Duration::from_us(10);
                }
                self.root.handle(self.now, root::Input::Request(id, request), &Ready::ALL);
            }
            loop {
                match self.root.poll(self.now, &Ready::ALL) {
                    root::Output::Wait(_) => break,
                    root::Output::Downstream(Input::Tlp(tlp)) if self.dead => drop(tlp),
                    root::Output::Downstream(input @ Input::Tlp(_)) => {
                        self.function.handle(self.now, input)
                    }
                    output => self.host(output),
                }
                moved = true;
            }
            while let Output::Tlp(tlp) = self.function.poll(self.now, Ready::ALL) {
                self.root.handle(self.now, root::Input::Tlp(tlp), &Ready::ALL);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    fn host(&mut self, output: root::Output) {
        match (output, &mut self.ram) {
            (root::Output::Host(HostOutput::Answer(id, value)), _) => {
                self.bus.answer(id, value.unwrap_or(u64::MAX));
            }
            (
                root::Output::Host(HostOutput::HostRead { token, address, length, .. }),
                Some(ram),
            ) => {
                let data = ram.get(address, length).map(Bytes::copy_from_slice);
                self.root.handle(self.now, root::Input::HostData(token, data), &Ready::ALL);
            }
            (root::Output::Host(HostOutput::HostWrite { address, data, .. }), Some(ram)) => {
                ram.get_mut(address, data.len()).unwrap().copy_from_slice(&data);
            }
            (output, _) => self.outputs.push(output),
        }
    }

    /// Runs host software to its end.
    pub fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> T {
        let mut task = Task::new(&self.bus.clone(), software);
        for _ in 0..10_000 {
            if let Some(value) = task.poll(self.now) {
                self.settle();
                return value;
            }
            self.settle();
        }
        panic!("software does not end");
    }
}

/// A transparent function around the endpoint.
impl Function for Endpoint {
    fn handle(&mut self, now: Instant, input: Input) {
        self.handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.poll(now, ready)
    }

    fn ready(&self) -> Ready {
        self.ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}
