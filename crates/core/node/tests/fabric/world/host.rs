//! The host: software as coroutines, memory, interrupts.

use super::{Fabric, Happened, RAM};
use bytes::Bytes;
use node::host::{Input, Output};
use pcie::Bus;
use pcie::enumerate::{self, Hierarchy, Node};
use pcie::root::{HostOutput, ReadToken};
use pcie::software::Task;
use wire::tlp::Tlp;
use wire::{Duration, Instant};

/// Reads of host memory with their answers, and when the answers are due.
pub type Reads = Vec<(Instant, ReadToken, Option<Bytes>)>;

/// The address of an endpoint's BAR 0.
pub fn bar(node: &Node) -> u64 {
    node.bar(0).unwrap().address
}

impl Fabric {
    /// When host memory answers the next read.
    pub(super) fn memory_timer(&self) -> Option<Instant> {
        self.reads.iter().map(|(at, ..)| *at).filter(|_| !self.stuck_memory).min()
    }

    /// Starts requests of software, and wakes software whose sleep is over.
    pub(super) fn host_requests(&mut self) -> bool {
        let mut moved = self.buses.wake(self.now);
        while let Some((id, request)) =
            self.buses.next_request(self.now, |request| self.host.accepts(request))
        {
            self.host.handle(self.now, Input::Request(id, request));
            moved = true;
        }
        moved
    }

    /// Answers reads of host memory that are due.
    pub(super) fn host_memory(&mut self) -> bool {
        if self.stuck_memory {
            return false;
        }
        let due: Vec<_> = self.reads.extract_if(.., |(at, ..)| *at <= self.now).collect();
        let moved = !due.is_empty();
        for (_, token, data) in due {
            self.host.handle(self.now, Input::HostData(token, data));
        }
        moved
    }

    pub(super) fn host_output(&mut self, output: Output) {
        match output {
            Output::Host(HostOutput::Answer(id, value)) => self.buses.answer(id, value),
            Output::Host(HostOutput::HostRead { requester, .. })
                if self.unanswered == Some(requester) => {}
            Output::Host(HostOutput::HostRead { token, requester, address, length })
                if self.is_seated(requester) =>
            {
                let data = self.seat_reads(requester, (address, length), &token);
                self.reads.push((self.now, token, data));
            }
            Output::Host(HostOutput::HostRead { token, address, length, .. }) => {
                let data = self.ram.get(address, length).map(Bytes::copy_from_slice);
                if data.is_none() {
                    self.happened.push(Happened::Refused(address));
                }
                let late = if self.slow_memory { self.rng.below(20_000) } else { 0 };
                let at = self.now + Duration::from_ns(late);
                self.reads.push((at, token, data));
            }
            Output::Host(HostOutput::HostWrite { requester, address, data })
                if self.is_seated(requester) =>
            {
                self.seat_writes(requester, address, &data);
            }
            Output::Host(HostOutput::HostWrite { address, data, .. }) => {
                match self.ram.get_mut(address, data.len()) {
                    Some(place) => place.copy_from_slice(&data),
                    None => self.happened.push(Happened::Refused(address)),
                }
                self.happened.push(Happened::Written(address, data));
            }
            Output::Host(HostOutput::Interrupt { requester, data })
                if self.is_seated(requester) =>
            {
                self.seat_signals(requester, data as u16);
            }
            Output::Host(HostOutput::Interrupt { requester, data }) => {
                self.happened.push(Happened::Interrupt(requester, data));
            }
            Output::Host(HostOutput::Intx { wire, level }) => {
                self.happened.push(Happened::Wire(wire, level))
            }
            Output::Wait(_) => unreachable!("the caller's"),
        }
    }

    /// Runs software until it finishes.
    ///
    /// Panics after ten virtual seconds.
    pub fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> T {
        let mut task = Task::new(&self.bus.clone(), software);
        let limit = self.now + Duration::from_ms(10_000);
        loop {
            if let Some(value) = task.poll(self.now) {
                self.settle();
                return value;
            }
            // Time passes only when nothing is left to do at this instant.
            if !self.settle() {
                assert!(self.step(limit), "software does not end");
            }
        }
    }

    /// Lets time pass.
    pub fn pass(&mut self, span: Duration) {
        let limit = self.now + span;
        while self.step(limit) {}
    }

    /// Enumerates everything.
    pub fn enumerate(&mut self) -> Hierarchy {
        self.enumerate_with(enumerate::Settings::default())
    }

    pub fn enumerate_with(&mut self, settings: enumerate::Settings) -> Hierarchy {
        let bus = self.bus.clone();
        self.run(enumerate::enumerate(bus, settings)).expect("enough of everything")
    }

    /// Enumerates. Returns the endpoints.
    pub fn endpoints(&mut self) -> Vec<Node> {
        self.enumerate().endpoints().into_iter().cloned().collect()
    }

    /// Enumerates below a port whose link came up.
    pub fn enumerate_below(
        &mut self,
        port: &Node,
        settings: enumerate::Settings,
        payload: usize,
    ) -> Result<Vec<Node>, enumerate::Error> {
        let (bus, port) = (self.bus.clone(), port.clone());
        self.run(async move { enumerate::enumerate_below(bus, port, settings, payload).await })
    }

    /// Programs the BARs of a function that was reset.
    pub fn program(&mut self, node: &Node) {
        let (bus, node) = (self.bus.clone(), node.clone());
        self.run(async move {
            enumerate::program(&bus, &node, &enumerate::Settings::default()).await;
        });
    }

    /// Enumerates, enables every endpoint, and clears the record of events. Returns the endpoints.
    pub fn ready(&mut self) -> Vec<Node> {
        let nodes = self.endpoints();
        nodes.iter().for_each(|node| self.enable(node, 1));
        self.happened.clear();
        nodes
    }

    /// Enables an endpoint's bus mastering, and vector 0 with `data`.
    pub fn enable(&mut self, node: &Node, data: u32) {
        let (bus, node) = (self.bus.clone(), node.clone());
        self.run(async move {
            enumerate::enable(&bus, &node, [(0, data)]).await;
        });
    }

    /// Reads one register of a memory window; all ones without an answer.
    pub fn read(&mut self, address: u64, size: u8) -> u64 {
        let bus = self.bus.clone();
        self.run(async move { bus.read(address, size).await })
    }

    /// Starts a register read of 4 bytes, which is not answered at once.
    pub fn start_read(&self, bus: &Bus, address: u64) -> Task<u64> {
        let reader = bus.clone();
        let mut task = Task::new(bus, async move { reader.read(address, 4).await });
        assert_eq!(task.poll(self.now), None);
        task
    }

    /// Sends a packet from the script on node `node`; a millisecond passes.
    pub fn send(&mut self, node: usize, tlp: Tlp) {
        self.script(node).send.push_back(tlp);
        self.pass(Duration::from_ms(1));
    }

    /// Reads configuration space; all ones without an answer.
    pub fn config(&mut self, target: wire::Bdf, offset: u16, size: u8) -> u32 {
        let bus = self.bus.clone();
        self.run(async move { bus.config_read(target, offset, size).await })
    }

    pub fn set_config(&mut self, target: wire::Bdf, offset: u16, size: u8, value: u32) {
        let bus = self.bus.clone();
        self.run(async move { bus.config_write(target, offset, size, value).await });
    }

    /// Copies with the DMA test function whose BAR is at `bar`.
    pub fn copy(&mut self, bar: u64, from: u64, to: u64, length: u32) -> Result<(), Option<u8>> {
        let bus = self.bus.clone();
        self.run(async move { pcie::dma_test::driver::copy(&bus, bar, from, to, length).await })
            .map_err(|failed| failed.0)
    }

    /// Host memory at an offset.
    pub fn memory(&mut self, offset: usize, length: usize) -> &mut [u8] {
        self.ram.get_mut(RAM + offset as u64, length).expect("inside host memory")
    }

    /// Number of events in `happened` that match.
    pub fn count(&self, fits: impl Fn(&Happened) -> bool) -> usize {
        self.happened.iter().filter(|happened| fits(happened)).count()
    }
}
