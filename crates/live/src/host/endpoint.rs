//! One endpoint offered to a VMM: what the VMM does becomes requests of host
//! software, in order, and the endpoint's DMA and interrupts reach the guest.

use super::Fetched;
use crate::vfio_user::{
    Action, Bar, BarKind, BindError, DmaError, DmaId, DmaRead, DmaWrite, EndpointInfo, Server,
    SharedRange, Token,
};
use bytes::Bytes;
use pcie::enumerate::{self, Node, Settings};
use pcie::root::ReadToken;
use pcie::software::{Bus, Task};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use wire::Instant;

/// What a piece of host software brings for the VMM.
type Reply = Option<(Token, Vec<u8>)>;

/// DMA that the client could not take yet.
enum Deferred {
    Read { token: ReadToken, address: u64, length: usize },
    Write { address: u64, data: Bytes },
    Interrupt(u16),
}

/// Actions and bus requests that wait before the client has to.
const MOST_ACTIONS: usize = 64;
/// Register reads in flight.
const MOST_READS: usize = 32;
/// Bytes of deferred writes above which the device has to wait.
const MOST_DEFERRED: usize = 16 << 20;

/// See the module.
pub struct Endpoint {
    /// The downstream port it is below.
    pub port: usize,
    /// The function.
    pub node: Node,
    /// The wire of the root port that carries its interrupts, 0 for INTA.
    pub wire: u8,
    server: Server,
    bus: Bus,
    settings: Settings,
    present: bool,
    msix: bool,
    running: Vec<Task<Reply>>,
    /// What runs are reads.
    reading: bool,
    backlog: VecDeque<Action>,
    reads: BTreeMap<u64, ReadToken>,
    deferred: VecDeque<Deferred>,
    deferred_bytes: usize,
    /// Host reads to answer: (token, bytes).
    pub answers: Vec<(ReadToken, Option<Bytes>)>,
    faults: u64,
}

/// What has to be known of an endpoint before it is offered.
///
/// # Errors
/// None: what does not answer reads all ones.
pub async fn describe(bus: Bus, node: Node, doorbells: bool) -> EndpointInfo {
    let mut config = Box::new([0; 4096]);
    for (at, place) in config.chunks_exact_mut(4).enumerate() {
        let value = bus.config_read(node.bdf, at as u16 * 4, 4).await;
        place.copy_from_slice(&value.to_le_bytes());
    }
    let mut bars = [None; 6];
    let device = node.device();
    for bar in device.into_iter().flat_map(|device| &device.bars) {
        let kind = if bar.wide { BarKind::Memory64 } else { BarKind::Memory32 };
        let prefetchable = bar.prefetchable;
        bars[usize::from(bar.index)] = Some(Bar { size: bar.size, kind, prefetchable });
    }
    // NVM Express keeps its doorbells from 1000h of BAR 0 (NVMe 1.4, section
    // 3.1); the page holds 512 queue pairs, of which 65 are polled.
    let shared =
        doorbells.then_some(SharedRange { bar: 0, offset: 0x1000, length: 0x1000, polled: 65 * 8 });
    EndpointInfo { config, bars, shared }
}

impl Endpoint {
    /// Offers `node` on `directory/number/cntrl`.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn offer(
        directory: &Path,
        number: usize,
        port: usize,
        node: Node,
        info: EndpointInfo,
        bus: Bus,
        settings: Settings,
    ) -> Result<Self, BindError> {
        Ok(Self {
            port,
            node,
            wire: 0,
            server: Server::bind(directory, number, info)?,
            bus,
            settings,
            present: true,
            msix: false,
            running: Vec::new(),
            reading: false,
            backlog: VecDeque::new(),
            reads: BTreeMap::new(),
            deferred: VecDeque::new(),
            deferred_bytes: 0,
            answers: Vec::new(),
            faults: 0,
        })
    }

    /// What it is, for people.
    pub fn summary(&self) -> super::Summary {
        super::Summary::new(&self.node, &self.server.info().config)
    }

    /// The server, to wait on and to look at.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The server.
    pub fn server_mut(&mut self) -> &mut Server {
        &mut self.server
    }

    /// DMA of the device that found no memory.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// Takes what the VMM wants and does what can be done. Yields whether
    /// anything happened.
    pub fn service(&mut self, now: Instant) -> bool {
        self.server.service(now);
        self.server.poll_doorbells();
        let mut moved = false;
        loop {
            let mut again = false;
            while let Some((id, result)) = self.server.poll_dma(now) {
                again = true;
                self.dma_done(id, result);
            }
            // A client that asks faster than the far side answers waits in
            // its socket.
            while self.backlog.len() < MOST_ACTIONS
                && let Some(action) = self.server.poll(now)
            {
                again = true;
                self.sort(action);
            }
            again |= self.work(now);
            moved |= again;
            if !again {
                return moved;
            }
        }
    }

    /// DMA that has ended is dealt with at once: an access never waits for
    /// it, nor it for an access.
    fn sort(&mut self, action: Action) {
        match action {
            Action::DmaDone { id, result } => self.dma_done(id, result),
            action => self.backlog.push_back(action),
        }
    }

    fn dma_done(&mut self, id: DmaId, result: Result<Bytes, DmaError>) {
        if let Some(token) = self.reads.remove(&id) {
            self.faults += u64::from(result.is_err());
            self.answers.push((token, result.ok()));
        }
    }

    /// Runs what is running, and starts what is next: reads side by side,
    /// everything else alone, so that the order is the VMM's.
    fn work(&mut self, now: Instant) -> bool {
        let mut moved = self.retry(now);
        loop {
            let mut running = std::mem::take(&mut self.running);
            running.retain_mut(|task| match task.poll(now) {
                None => true,
                Some(reply) => {
                    moved = true;
                    if let Some((token, data)) = reply {
                        self.server.reply(now, token, Ok(&data));
                    }
                    false
                }
            });
            self.running = running;
            if !self.may_start() {
                return moved;
            }
            let Some(action) = self.backlog.pop_front() else { return moved };
            moved = true;
            self.reading = is_read(&action);
            self.start(action);
        }
    }

    fn may_start(&self) -> bool {
        let beside = self.reading
            && self.running.len() < MOST_READS
            && self.backlog.front().is_some_and(is_read);
        (self.running.is_empty() || beside) && self.bus.queued() < MOST_ACTIONS
    }

    fn start(&mut self, action: Action) {
        let (bus, node) = (self.bus.clone(), self.node.clone());
        match action {
            Action::ClientReady | Action::DmaDone { .. } => {}
            Action::ConfigRead { token, offset, size } => self.begin(async move {
                let value = bus.config_read(node.bdf, offset, size).await;
                Some((token, value.to_le_bytes()[..usize::from(size)].to_vec()))
            }),
            Action::ConfigWrite { token, offset, size, value } => self.begin(async move {
                bus.config_write(node.bdf, offset, size, value).await;
                Some((token, Vec::new()))
            }),
            Action::BarRead { token, bar, offset, length } => {
                let address = node.bar(bar).map_or(0, |bar| bar.address) + offset;
                self.begin(async move { Some((token, read(&bus, address, length).await)) });
            }
            Action::BarWrite { bar, offset, data } => {
                if let Some(bar) = node.bar(bar) {
                    write(&bus, bar.address + offset, &data);
                }
            }
            Action::MsixEnable(enable) => {
                self.msix = enable;
                self.begin(async move {
                    set_msix(&bus, &node, enable).await;
                    None
                });
            }
            Action::Reset { token, .. } => self.reset(token),
            Action::ClientGone { token } => {
                // The device still waits for what nobody will answer now.
                let pending = std::mem::take(&mut self.reads).into_values();
                let deferred = self.deferred.drain(..).filter_map(|deferred| match deferred {
                    Deferred::Read { token, .. } => Some(token),
                    Deferred::Write { .. } | Deferred::Interrupt(_) => None,
                });
                self.answers.extend(pending.chain(deferred).map(|token| (token, None)));
                self.deferred_bytes = 0;
                self.reset(token);
            }
        }
    }

    fn begin(&mut self, software: impl Future<Output = Reply> + 'static) {
        self.running.push(Task::new(&self.bus, software));
    }

    fn reset(&mut self, token: Token) {
        self.msix = false;
        if !self.present {
            self.begin(async move { Some((token, Vec::new())) });
            return;
        }
        let (bus, node, settings) = (self.bus.clone(), self.node.clone(), self.settings.clone());
        self.begin(async move {
            function_level_reset(&bus, &node, &settings).await;
            Some((token, Vec::new()))
        });
    }

    /// The link went down: everything reads all ones from now on.
    pub fn lost(&mut self, now: Instant) {
        self.present = false;
        self.server.set_present(now, false);
    }

    /// The endpoint is back, enumerated anew as `node`.
    ///
    /// # Errors
    /// If it is another device than the VMM was shown: what differs. It stays
    /// away then, for a driver that merely resets what it knows would take its
    /// blocks for those of the device before.
    pub fn found(&mut self, now: Instant, node: Node) -> Result<(), String> {
        if let Some(difference) = difference(&self.node, &node) {
            return Err(difference);
        }
        self.node = node;
        self.present = true;
        if self.msix {
            self.backlog.push_front(Action::MsixEnable(true));
        }
        self.server.set_present(now, true);
        Ok(())
    }

    /// Whether the device may write more.
    pub fn takes_writes(&self) -> bool {
        self.deferred_bytes < MOST_DEFERRED
    }

    /// The device reads guest memory.
    pub fn dma_read(
        &mut self,
        now: Instant,
        address: u64,
        length: usize,
        token: &ReadToken,
    ) -> Fetched {
        if self.deferred.is_empty() {
            match self.server.dma_read(now, address, length) {
                DmaRead::Done(data) => return Fetched::Now(Some(data)),
                DmaRead::Pending(id) => {
                    self.reads.insert(id, token.clone());
                    return Fetched::Later;
                }
                DmaRead::Failed(error) => return self.fault(error),
                DmaRead::Full => {}
            }
        }
        self.deferred.push_back(Deferred::Read { token: token.clone(), address, length });
        Fetched::Later
    }

    fn fault(&mut self, _error: DmaError) -> Fetched {
        self.faults += 1;
        Fetched::Now(None)
    }

    /// The device writes guest memory.
    pub fn dma_write(&mut self, now: Instant, address: u64, data: &[u8]) {
        if self.deferred.is_empty() {
            match self.server.dma_write(now, address, data) {
                DmaWrite::Done | DmaWrite::Pending(_) => return,
                DmaWrite::Failed(_) => {
                    self.faults += 1;
                    return;
                }
                DmaWrite::Full => {}
            }
        }
        self.deferred_bytes += data.len();
        self.deferred.push_back(Deferred::Write { address, data: Bytes::copy_from_slice(data) });
    }

    /// The device signals a vector.
    pub fn interrupt(&mut self, vector: u16) {
        if self.deferred.is_empty() {
            self.server.signal(vector);
        } else {
            self.deferred.push_back(Deferred::Interrupt(vector));
        }
    }

    /// Tries what was deferred again, in order.
    fn retry(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(next) = self.deferred.pop_front() {
            let full = match &next {
                Deferred::Interrupt(vector) => {
                    self.server.signal(*vector);
                    false
                }
                Deferred::Write { address, data } => {
                    let full = self.server.dma_write(now, *address, data) == DmaWrite::Full;
                    if !full {
                        self.deferred_bytes -= data.len();
                    }
                    full
                }
                Deferred::Read { token, address, length } => {
                    match self.server.dma_read(now, *address, *length) {
                        DmaRead::Done(data) => self.answers.push((token.clone(), Some(data))),
                        DmaRead::Pending(id) => {
                            self.reads.insert(id, token.clone());
                        }
                        DmaRead::Failed(_) => {
                            self.faults += 1;
                            self.answers.push((token.clone(), None));
                        }
                        DmaRead::Full => {}
                    }
                    !self.reads.values().any(|known| known == token)
                        && !self.answers.iter().any(|(known, _)| known == token)
                }
            };
            if full {
                self.deferred.push_front(next);
                return moved;
            }
            moved = true;
        }
        moved
    }
}

/// How a device differs from the one that was there before, if it does. The
/// serial number tells devices of one kind apart, as Linux does for hot-plug
/// slots (`pciehp_device_replaced`).
fn difference(before: &Node, after: &Node) -> Option<String> {
    let shape = |node: &Node| node.device().map(|device| (device.bars.clone(), device.msix));
    let serial = |node: &Node| match node.device().and_then(|device| device.serial) {
        Some(number) => format!("serial number {number:016x}"),
        None => "no serial number".to_owned(),
    };
    if before.id != after.id {
        let [old, new] = [before, after].map(|node| format!("{:04x}:{:04x}", node.id.0, node.id.1));
        return Some(format!("{new} instead of {old}"));
    }
    if shape(before) != shape(after) {
        return Some("other BARs or interrupts".to_owned());
    }
    let (old, new) = (serial(before), serial(after));
    (old != new).then(|| format!("{new} instead of {old}"))
}

fn is_read(action: &Action) -> bool {
    matches!(action, Action::ConfigRead { .. } | Action::BarRead { .. })
}

/// Naturally aligned pieces of at most 8 bytes: (address, offset, size).
fn aligned(address: u64, length: usize) -> impl Iterator<Item = (u64, usize, u8)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let left = length - done;
        if left == 0 {
            return None;
        }
        let at = address + done as u64;
        let size = [8usize, 4, 2, 1]
            .into_iter()
            .find(|size| *size <= left && at.is_multiple_of(*size as u64))
            .expect("one byte always fits");
        let piece = (at, done, size as u8);
        done += size;
        Some(piece)
    })
}

async fn read(bus: &Bus, address: u64, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length);
    for (at, _, size) in aligned(address, length) {
        let value = bus.read(at, size).await;
        out.extend_from_slice(&value.to_le_bytes()[..usize::from(size)]);
    }
    out
}

fn write(bus: &Bus, address: u64, data: &[u8]) {
    for (at, offset, size) in aligned(address, data.len()) {
        let mut value = [0; 8];
        value[..usize::from(size)].copy_from_slice(&data[offset..offset + usize::from(size)]);
        bus.write(at, size, u64::from_le_bytes(value));
    }
}

/// Every vector signals its own number; the VMM masks on its side.
async fn set_msix(bus: &Bus, node: &Node, enable: bool) {
    let vectors = node.device().and_then(|device| device.msix).map_or(0, |msix| msix.vectors);
    if enable {
        for vector in 0..vectors {
            enumerate::write_msix_entry(bus, node, vector, u32::from(vector), false);
        }
    }
    enumerate::set_msix(bus, node, enable).await;
}

/// Resets a function and gives it back what the enumeration had set
/// (PCIe Base 4.0, section 6.6.2).
async fn function_level_reset(bus: &Bus, node: &Node, settings: &Settings) {
    if let Some(pcie) = node.pcie {
        bus.config_write(node.bdf, pcie + 8, 2, 1 << 15).await;
    }
    enumerate::program(bus, node, settings).await;
}
