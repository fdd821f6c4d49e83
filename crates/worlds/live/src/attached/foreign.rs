//! The device of another program (vfio-user) as the function of a node.
//!
//! The device shares no memory with the node: register accesses, DMA and resets are messages, and the
//! node is the device's only way to host memory, while the host lets it be bus master. Nothing here
//! waits for the device. A device that violates the protocol, or does not reply within
//! [`REPLY_LIMIT`](vfio_user::client::REPLY_LIMIT), ends the node.

mod accesses;
mod signals;

use super::Attached;
use crate::clock::Clock;
use crate::poller::{Activity, Poller};
use crate::status::{LinkStatus, Status, counts};
use accesses::{Accesses, Answered};
use pcie::config::{command, register};
use pcie::endpoint::{DmaError, Endpoint, EndpointConfig, Event, Foreign, ForeignEvent};
use pcie::{Function, Input, Output, Ports, Ready};
use rustix::io::Errno;
use signals::Signals;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::rc::Rc;
use vfio_user::client::{Device, DmaRequest, Error};
use wire::tlp::Class;
use wire::vfio_user::region_index;
use wire::{Duration, Instant};

/// The most bytes of DMA writes that wait for the link. At this number no more DMA is taken.
const MAX_BACKLOG: usize = 1 << 20;
/// The most register accesses without a reply. At this number the function takes no more requests.
const MAX_ACCESSES: usize = 64;
/// The most times that the socket is read in one turn.
const MAX_ROUNDS: usize = 16;
/// When to try again to write to a full socket.
const RETRY: Duration = Duration::from_us(100);
/// Vendor ID, device ID and class of an endpoint before its device is known.
const UNKNOWN: EndpointConfig = EndpointConfig::new(0, 0, [0; 3]);

/// The device of another program.
pub struct ForeignDevice {
    endpoint: Endpoint,
    device: Device,
    accesses: Accesses,
    signals: Signals,
    /// DMA reads under way.
    reads: BTreeMap<u64, DmaRequest>,
    next_read: u64,
    /// A DMA command for which there was no room.
    waiting: Option<DmaRequest>,
    /// What ends the function.
    failure: Option<Error>,
}

impl ForeignDevice {
    /// The device that the program at `socket` offers, after a reset. `max_payload` is that of the
    /// node in bytes.
    ///
    /// # Errors
    /// If the program offers no PCI device that can be shown: one line with the socket.
    pub fn connect(clock: Clock, socket: &Path, max_payload: usize) -> Result<Self, Error> {
        let now = Rc::new(move || clock.now());
        let mut device = Device::connect_without_memory(socket, now)?;
        let mut image = [0; 256];
        for (word, at) in image.chunks_exact_mut(4).zip((0..).step_by(4)) {
            let value = device.read(region_index::CONFIG, at, 4)? as u32;
            word.copy_from_slice(&value.to_le_bytes());
        }
        let foreign = Foreign::new(image, device.bar_sizes());
        let foreign = foreign.map_err(|why| device.channel().error(why.to_string()))?;
        let serial = nvme::device_serial(&socket.display().to_string(), 1);
        let settings = EndpointConfig { serial, max_payload, foreign: Some(foreign), ..UNKNOWN };
        let mut found = Self {
            endpoint: Endpoint::new(settings),
            device,
            accesses: Accesses::default(),
            signals: Signals::default(),
            reads: BTreeMap::new(),
            next_read: 0,
            waiting: None,
            failure: None,
        };
        found.signals.has_pin = image[usize::from(register::INTERRUPT_PIN)] != 0;
        Ok(found)
    }

    /// IDs and class of the device, in a sentence.
    pub fn description(&self) -> String {
        let [vendor, device] = self.endpoint.ids();
        format!("[{vendor:04x}:{device:04x}], {} MSI-X vectors", self.device.vectors)
    }

    /// Passes events of the endpoint on to the device.
    fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            if let Err(error) = self.take_event(event) {
                self.failure.get_or_insert(error);
            }
        }
    }

    fn take_event(&mut self, event: Event) -> Result<(), Error> {
        let Self { device, accesses, .. } = self;
        match event {
            Event::Read { bar, offset, length, token } => {
                accesses.read(device, (bar.into(), offset), length, Answered::Register(token))?;
                self.accessed()
            }
            Event::Write { bar, offset, data } => {
                accesses.write(device, (bar.into(), offset), &data)?;
                self.accessed()
            }
            Event::Foreign(ForeignEvent::ConfigRead { offset, token }) => {
                let place = (region_index::CONFIG, offset.into());
                accesses.read(device, place, 4, Answered::Config(token))
            }
            Event::Foreign(ForeignEvent::ConfigWrite { offset, data }) => {
                accesses.write(device, (region_index::CONFIG, offset.into()), &data)
            }
            Event::Foreign(ForeignEvent::Configured) => self.configured(),
            Event::ReadDone { id, result } => {
                let Some(request) = self.reads.remove(&id) else { return Ok(()) };
                let result = result.as_deref().map_err(errno);
                device.channel().answer_dma(request, result);
                Ok(())
            }
            Event::Reset(_) => self.reset(),
        }
    }

    /// The host has accessed a BAR: it may have handled INTx, which the device asserts again if not.
    fn accessed(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.signals.asserted) {
            return Ok(());
        }
        self.endpoint.set_intx(false);
        let id = self.device.request_unmask()?;
        // A device that does not mask INTx may refuse it.
        self.accesses.ignore(id);
        Ok(())
    }

    /// The command register or the control word of MSI-X may have changed.
    fn configured(&mut self) -> Result<(), Error> {
        let command = self.endpoint.command();
        let place = (region_index::CONFIG, register::COMMAND.into());
        self.accesses.write(&mut self.device, place, &command.to_le_bytes())?;
        self.signals.wanted = match self.endpoint.msix_enabled() {
            true => signals::Kind::Msix,
            false if command & command::INTX_DISABLE == 0 => signals::Kind::Intx,
            false => signals::Kind::None,
        };
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Error> {
        let reads = std::mem::take(&mut self.reads).into_values();
        for request in reads.chain(self.waiting.take()) {
            self.device.channel().answer_dma(request, Err(Errno::FAULT));
        }
        self.accesses.forget();
        self.signals.reset();
        match self.device.request_reset()? {
            Some(id) => self.accesses.expect_reset(id),
            // Without a reset, the device is at least no bus master.
            None => {
                let place = (region_index::CONFIG, register::COMMAND.into());
                self.accesses.write(&mut self.device, place, &[0, 0])?;
            }
        }
        Ok(())
    }

    /// Carries out DMA commands of the device. Returns whether there was any.
    fn take_dma(&mut self) -> bool {
        let mut any = false;
        loop {
            let next = self.waiting.take().or_else(|| self.device.channel().next_dma());
            let Some(request) = next else { break };
            if self.endpoint.posted_backlog() >= MAX_BACKLOG {
                self.waiting = Some(request);
                break;
            }
            any = true;
            let access = request.access;
            // What the device sent before its reset is not carried out after it.
            if !self.endpoint.is_bus_master() || self.accesses.is_resetting() {
                self.device.channel().answer_dma(request, Err(Errno::PERM));
            } else if let Some(data) = request.data.clone() {
                let wraps = access.address.checked_add(access.count).is_none();
                self.endpoint.dma_write(access.address, data);
                let result = if wraps { Err(Errno::FAULT) } else { Ok(&[][..]) };
                self.device.channel().answer_dma(request, result);
            } else {
                let id = self.next_read;
                self.next_read += 1;
                self.reads.insert(id, request);
                self.endpoint.dma_read(id, access.address, access.count as usize);
            }
        }
        any
    }

    /// Handles messages and signals of the device.
    fn talk(&mut self, poller: &Poller) -> Result<bool, Error> {
        poller.take_ready(self.device.socket());
        let mut moved = self.signals.collect(poller);
        for _ in 0..MAX_ROUNDS {
            let received = self.device.channel().service()?;
            // DMA first: a read that the device answers later shows what it has written before.
            moved |= self.take_dma() | received;
            while self.waiting.is_none()
                && let Some((id, answer)) = self.device.channel().next_answer()
            {
                moved = true;
                self.accesses.answer(&mut self.device, &mut self.endpoint, id, answer)?;
            }
            if !received {
                // The device sent its writes before it signalled: no interrupt passes one.
                if self.accesses.is_resetting() {
                    self.signals.forget();
                } else if self.waiting.is_none() && !self.device.channel().is_held() {
                    moved |= self.signals.deliver(&mut self.endpoint);
                }
                break;
            }
        }
        self.signals.apply(&mut self.device, &mut self.accesses, poller)?;
        self.take_events();
        Ok(moved)
    }
}

/// The error of a DMA read in a reply.
fn errno(error: &DmaError) -> Errno {
    match error {
        DmaError::BusMasterDisabled => Errno::PERM,
        DmaError::Timeout => Errno::TIMEDOUT,
        _ => Errno::FAULT,
    }
}

impl Function for ForeignDevice {
    fn handle(&mut self, now: Instant, input: Input) {
        self.endpoint.handle(now, input);
        self.take_events();
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let output = self.endpoint.poll(now, ready);
        self.take_events();
        output
    }

    fn ready(&self) -> Ready {
        // A run would become thousands of messages.
        let ready = self.endpoint.ready().with_runs(false);
        match self.accesses.under_way() < MAX_ACCESSES {
            true => ready,
            false => ready.with(Class::NonPosted, false).with(Class::Posted, false),
        }
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

impl Attached for ForeignDevice {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        let talked = match self.failure.take() {
            Some(error) => Err(error),
            None => self.talk(poller),
        };
        let moved = talked.map_err(io::Error::other)?;
        let channel = self.device.channel();
        let retry = channel.is_blocked().then(|| now + RETRY);
        Ok(Activity { moved, timer: wire::earliest([channel.reply_until(), retry]) })
    }

    fn watch(&self, poller: &Poller) -> io::Result<()> {
        poller.add(self.device.socket(), false)
    }

    fn add_status(&self, _now: Instant, link: &mut LinkStatus, _node: &mut Status) {
        link.endpoint_errors = counts(self.endpoint.errors().list());
    }
}
