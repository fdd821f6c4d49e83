//! The host's side: software as coroutines, memory, interrupts.

use super::{Fabric, Happened, RAM};
use bytes::Bytes;
use pcie::enumerate::{self, Hierarchy, Node};
use pcie::root::{self, ReadToken};
use pcie::software::{Request, RequestId, Task};
use wire::{Duration, Instant};

/// In the names of requests of the other bus.
const OTHER: RequestId = 1 << 63;

/// What the host waits for.
#[derive(Default)]
pub struct Host {
    sleepers: Vec<(Instant, RequestId)>,
    reads: Vec<(Instant, ReadToken, Option<Bytes>)>,
}

impl Host {
    pub fn next(&self, stuck: bool) -> Option<Instant> {
        let sleepers = self.sleepers.iter().map(|(at, _)| *at);
        let reads = self.reads.iter().map(|(at, ..)| *at).filter(|_| !stuck);
        sleepers.chain(reads).min()
    }
}

impl Fabric {
    /// Starts what software asked for; wakes who has slept enough.
    pub(super) fn host_requests(&mut self) -> bool {
        let mut moved = false;
        for (bus, name) in [(&self.bus, 0), (&self.other, OTHER)] {
            while let Some((id, request)) = bus.next_taken(|it| self.root.takes(it, &self.top)) {
                match request {
                    Request::Sleep(span) => self.host.sleepers.push((self.now + span, id)),
                    _ => self.root.handle(self.now, root::Input::Request(id | name, request)),
                }
                moved = true;
            }
        }
        for (_, id) in self.host.sleepers.extract_if(.., |(at, _)| *at <= self.now) {
            self.bus.answer(id, 0);
            moved = true;
        }
        moved
    }

    /// Answers reads of host memory that are due.
    pub(super) fn host_memory(&mut self) -> bool {
        if self.stuck_memory {
            return false;
        }
        let due: Vec<_> = self.host.reads.extract_if(.., |(at, ..)| *at <= self.now).collect();
        let moved = !due.is_empty();
        for (_, token, data) in due {
            self.root.handle(self.now, root::Input::HostData(token, data));
        }
        moved
    }

    pub(super) fn host_output(&mut self, output: root::Output) {
        match output {
            root::Output::Answer(id, value) => {
                let bus = if id & OTHER == 0 { &self.bus } else { &self.other };
                bus.answer(id & !OTHER, value.unwrap_or(u64::MAX));
            }
            root::Output::HostRead { requester, .. } if self.unanswered == Some(requester) => {}
            root::Output::HostRead { token, address, length, .. } => {
                let data = self.ram.get(address, length).map(Bytes::copy_from_slice);
                if data.is_none() {
                    self.happened.push(Happened::Refused(address));
                }
                let late = if self.slow_memory { self.rng.below(20_000) } else { 0 };
                let at = self.now + Duration::from_ns(late);
                self.host.reads.push((at, token, data));
            }
            root::Output::HostWrite { address, data, .. } => {
                match self.ram.get_mut(address, data.len()) {
                    Some(place) => place.copy_from_slice(&data),
                    None => self.happened.push(Happened::Refused(address)),
                }
                self.happened.push(Happened::Written(address, data));
            }
            root::Output::Interrupt { requester, data } => {
                self.happened.push(Happened::Interrupt(requester, data));
            }
            root::Output::Wire { wire, level } => self.happened.push(Happened::Wire(wire, level)),
            root::Output::Tlp(_) | root::Output::HotReset | root::Output::Timeout(_) => {
                unreachable!("handled before")
            }
        }
    }

    /// Runs software to its end.
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

    /// Lets an endpoint master the bus and signal vector 0 with `data`.
    pub fn enable(&mut self, node: &Node, data: u32) {
        let (bus, node) = (self.bus.clone(), node.clone());
        self.run(async move {
            enumerate::enable_bus_master(&bus, node.bdf, true).await;
            enumerate::write_msix_entry(&bus, &node, 0, data, false);
            enumerate::set_msix(&bus, &node, true).await;
        });
    }

    /// Reads one register of a memory window; all ones if nobody answers.
    pub fn read(&mut self, address: u64, size: u8) -> u64 {
        let bus = self.bus.clone();
        self.run(async move { bus.read(address, size).await })
    }

    /// Reads configuration space; all ones if nobody answers.
    pub fn config(&mut self, target: wire::Bdf, offset: u16, size: u8) -> u32 {
        let bus = self.bus.clone();
        self.run(async move { bus.config_read(target, offset, size).await })
    }

    pub fn set_config(&mut self, target: wire::Bdf, offset: u16, size: u8, value: u32) {
        let bus = self.bus.clone();
        self.run(async move { bus.config_write(target, offset, size, value).await });
    }

    /// Copies by the DMA test function with its BAR at `bar`.
    pub fn copy(&mut self, bar: u64, from: u64, to: u64, length: u32) -> Result<(), Option<u8>> {
        let bus = self.bus.clone();
        self.run(async move { pcie::dma_test::driver::copy(&bus, bar, from, to, length).await })
            .map_err(|failed| failed.0)
    }

    /// Host memory at an offset.
    pub fn memory(&mut self, offset: usize, length: usize) -> &mut [u8] {
        self.ram.get_mut(RAM + offset as u64, length).expect("inside host memory")
    }

    /// How many of `happened` fit.
    pub fn count(&self, fits: impl Fn(&Happened) -> bool) -> usize {
        self.happened.iter().filter(|happened| fits(happened)).count()
    }
}
