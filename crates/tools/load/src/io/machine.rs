//! The machine under the host software of a target: a host node, or a client of a vfio-user server.

use crate::initiator_host::InitiatorHost;
use live::Clock;
use live::attached::Switch;
use live::links::LinkEvent;
use live::vfio_client;
use node::slot::OwnSlot;
use nvme::initiator;
use pcie::enumerate::{self, Kind, Node, Port};
use pcie::{Bus, Ram};
use report::{Failure, Outcome};
use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use vfio_user::client::FUNCTION;
use wire::{Bdf, Duration, Instant};
use workload::{BringUp, NVME, nvme_functions};

/// Time between two attempts to reach a lost server, as for a node.
const RETRY: Duration = Duration::from_ms(200);
/// Message for a server that answers although its drive is gone.
const GONE: &str = "the drive does not answer: its link is lost, or it was moved to another host";
/// Port type of a root port (PCIe Base 4.0, section 7.5.3.2).
const ROOT_PORT: u8 = 4;
/// Class code of PCI-to-PCI bridges (PCI Code and ID Assignment, section 1.7).
const BRIDGE: [u8; 3] = [0x06, 0x04, 0x00];

/// The machine of a target.
pub enum InitiatorMachine {
    /// A host node.
    Network(Box<InitiatorHost<Switch>>),
    /// A client of a vfio-user server.
    VfioUser(Box<Client>),
}

/// A client of a vfio-user server, with its host software's bus and memory.
pub struct Client {
    /// The connection to the server.
    pub machine: vfio_client::VfioUserClient,
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    enumeration: enumerate::Settings,
    /// Reason why the drive does not answer although the server does.
    gone: Option<String>,
    /// Time of the next attempt to reach the lost server or drive.
    retry: Option<Instant>,
}

/// An event of the drive's link.
pub enum Event {
    /// The link is lost, with the reason.
    Down(String),
    /// The link is up again.
    Up,
    /// The link will not return, with the reason.
    Refused(String),
}

impl Client {
    /// Creates the host software of a connected machine.
    pub fn new(mut machine: vfio_client::VfioUserClient, ram: Ram) -> Self {
        let (bus, ram) = (machine.new_bus(), Rc::new(RefCell::new(ram)));
        let enumeration = enumerate::Settings::default();
        Self { machine, bus, ram, enumeration, gone: None, retry: None }
    }

    /// Returns the port above the server's function, for which the client has no registers.
    fn port(&self) -> Node {
        let secondary = FUNCTION.bus();
        let port = Port {
            port_type: ROOT_PORT,
            slot: None,
            link_up: true,
            secondary,
            subordinate: secondary,
            window: self.enumeration.window.clone(),
            children: Vec::new(),
        };
        Node {
            bdf: Bdf::new(0, 0, 0),
            id: (0, 0),
            class: BRIDGE,
            capabilities: Vec::new(),
            pcie: None,
            max_payload_supported: self.enumeration.max_payload,
            max_payload: self.enumeration.max_payload,
            kind: Kind::Bridge(port),
        }
    }

    /// Configures the function. Fails unless the function is an NVMe controller.
    fn drives(&mut self) -> Result<Vec<(Node, Node)>, Failure> {
        let (port, settings) = (self.port(), self.enumeration.clone());
        let (bus, payload) = (self.bus.clone(), port.max_payload);
        let look = enumerate::enumerate_below(bus.clone(), port, settings, payload);
        let found = self.machine.run(&bus, look)?;
        if let Some(lost) = self.machine.lost() {
            return Err(Failure(lost.to_string()));
        }
        let found = found.map_err(|error| Failure(error.to_string()))?;
        match found.first().map(|node| node.class) {
            Some(NVME) => Ok(found.into_iter().map(|node| (node, self.port())).collect()),
            Some([base, sub, interface]) => Err(Failure(format!(
                "the server's device has class {base:02x} {sub:02x} {interface:02x}: no NVMe \
                 controller, which has 01 08 02"
            ))),
            None => Err(Failure(GONE.into())),
        }
    }

    fn event(&mut self) -> io::Result<Option<Event>> {
        let now = self.machine.clock().now();
        let lost = self.machine.lost().map(ToString::to_string);
        let Some(lost) = lost.or_else(|| self.gone.clone()) else { return Ok(None) };
        match self.retry {
            None => {
                self.retry = Some(now + RETRY);
                Ok(Some(Event::Down(lost)))
            }
            Some(at) if at > now => Ok(None),
            Some(_) => {
                let back = self.returns()?;
                self.retry = (!back).then(|| self.machine.clock().now() + RETRY);
                Ok(back.then_some(Event::Up))
            }
        }
    }

    /// Connects again if server and drive answer. Returns whether the drive answers again. The
    /// function is then as after power-on.
    fn returns(&mut self) -> io::Result<bool> {
        if self.gone.is_some() && self.machine.lost().is_none() {
            if !self.answers()? {
                return Ok(false);
            }
            // A server accepts one client. After an error at the end the server is lost too.
            let _ = self.machine.close();
        }
        let back = self.machine.reconnect().is_ok() && self.answers()?;
        self.gone = (!back).then(|| GONE.to_owned());
        Ok(back)
    }

    /// Returns whether the function has a vendor ID (PCI Express Base 4.0, section 7.5.1.1.1).
    fn answers(&mut self) -> io::Result<bool> {
        let bus = self.bus.clone();
        let read = async move { bus.config_read(FUNCTION, 0, 2).await };
        Ok(self.machine.run(&self.bus, read)? != u32::from(u16::MAX))
    }
}

impl InitiatorMachine {
    /// Returns the clock.
    pub fn clock(&self) -> Clock {
        match self {
            Self::Network(host) => *host.machine.clock(),
            Self::VfioUser(client) => *client.machine.clock(),
        }
    }

    /// Returns the bus of the host software.
    pub fn bus(&self) -> Bus {
        match self {
            Self::Network(host) => host.bus.clone(),
            Self::VfioUser(client) => client.bus.clone(),
        }
    }

    /// Returns the memory of the host software.
    pub fn ram(&self) -> Rc<RefCell<Ram>> {
        match self {
            Self::Network(host) => host.memory.ram.clone(),
            Self::VfioUser(client) => client.ram.clone(),
        }
    }

    /// Returns the parameters for bringing up drives of this machine.
    pub fn bring_up_with(&self, driver: initiator::Settings) -> BringUp {
        match self {
            Self::Network(host) => host.bring_up_with(driver),
            Self::VfioUser(client) => {
                let enumeration = client.enumeration.clone();
                BringUp { bus: self.bus(), ram: self.ram(), enumeration, driver }
            }
        }
    }

    /// Returns the NVMe functions, each with its port.
    ///
    /// # Errors
    /// If the machine fails, or if the hierarchy cannot be configured.
    pub fn drives(&mut self) -> Result<Vec<(Node, Node)>, Failure> {
        match self {
            Self::Network(host) => Ok(nvme_functions(&host.hierarchy)),
            Self::VfioUser(client) => client.drives(),
        }
    }

    /// Runs a piece of host software to its end.
    ///
    /// # Errors
    /// If the machine fails.
    pub fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> Result<T, Failure> {
        match self {
            Self::Network(host) => host.run(software),
            Self::VfioUser(client) => Ok(client.machine.run(&client.bus, software)?),
        }
    }

    /// Waits until a slot's function is ready. Returns whether the function has new contents, or
    /// the reason why it is missing.
    ///
    /// # Errors
    /// If the machine fails.
    pub fn ready(&mut self, slot: &mut OwnSlot) -> Result<Result<bool, String>, Failure> {
        loop {
            if let Some(ready) = slot.poll(self.clock().now()) {
                return Ok(ready);
            }
            let (moved, timer) = self.pump()?;
            self.wait(moved, timer)?;
        }
    }

    /// Polls the machine once. Returns whether anything happened, and the latest time of the next
    /// call.
    ///
    /// # Errors
    /// If the machine fails.
    pub fn pump(&mut self) -> io::Result<(bool, Option<Instant>)> {
        match self {
            Self::Network(host) => host.machine.pump(&mut host.memory),
            Self::VfioUser(client) => {
                let (moved, timer) = client.machine.pump()?;
                Ok((moved, timer.into_iter().chain(client.retry).min()))
            }
        }
    }

    /// Lets [`wait`](Self::wait) return when `fd` is readable.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn watch(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Self::Network(host) => host.machine.poller().add_without_spin(fd),
            Self::VfioUser(_) => Ok(()),
        }
    }

    /// Waits for an event, at the latest until `timer`.
    ///
    /// # Errors
    /// If the machine fails.
    pub fn wait(&mut self, moved: bool, timer: Option<Instant>) -> io::Result<()> {
        match self {
            Self::Network(host) => host.machine.wait(moved, timer),
            Self::VfioUser(client) => client.machine.wait(moved, timer),
        }
    }

    /// Returns the next interrupt, as function and data; `None` if no interrupt waits.
    pub fn interrupt(&mut self) -> Option<(Bdf, u32)> {
        match self {
            Self::Network(host) => host.memory.interrupts.pop_front(),
            Self::VfioUser(client) => client.machine.next_interrupt().map(|data| (FUNCTION, data)),
        }
    }

    /// Records that the drive does not answer although the link is up. Returns whether an event
    /// will follow; no event reports the return of a drive behind another switch node.
    pub fn lose(&mut self, why: initiator::Error) -> bool {
        let Self::VfioUser(client) = self else { return false };
        let message = match why {
            initiator::Error::Gone => GONE.to_owned(),
            why => why.to_string(),
        };
        client.gone = Some(format!("{}: {message}", client.machine.socket().display()));
        true
    }

    /// Returns an event of the drive's link since the last call.
    ///
    /// # Errors
    /// If the machine fails.
    pub fn event(&mut self) -> io::Result<Option<Event>> {
        let host = match self {
            Self::Network(host) => host,
            Self::VfioUser(client) => return client.event(),
        };
        while let Some(event) = host.machine.attached_mut().links_mut().event() {
            match event {
                LinkEvent::Down { cause, buses, .. } => {
                    host.machine.clear_bus_masters(buses);
                    return Ok(Some(Event::Down(cause.to_string())));
                }
                LinkEvent::Up(..) => return Ok(Some(Event::Up)),
                LinkEvent::Failed { why, permanent: true, .. } => {
                    return Ok(Some(Event::Refused(why.to_string())));
                }
                // Commands wait while the session of the link is interrupted.
                LinkEvent::Interrupted(..)
                | LinkEvent::Resumed(_)
                | LinkEvent::PathLost(..)
                | LinkEvent::PathUp(..)
                | LinkEvent::FailedOver(..)
                | LinkEvent::Failed { .. }
                | LinkEvent::Echo(..) => {}
            }
        }
        Ok(None)
    }

    /// Returns whether the link to the drive is up.
    pub fn is_up(&self) -> bool {
        match self {
            Self::Network(host) => host.machine.attached().upstream().tunnel(0).is_up(),
            Self::VfioUser(client) => client.machine.lost().is_none() && client.gone.is_none(),
        }
    }

    /// Returns the reason why the vfio-user server is lost; `None` if it is not lost, and for a
    /// host node.
    pub fn why_lost(&self) -> Option<String> {
        match self {
            Self::Network(_) => None,
            Self::VfioUser(client) => client.machine.lost().map(ToString::to_string),
        }
    }

    /// Shuts the machine down in order.
    ///
    /// # Errors
    /// If a vfio-user server does not answer the requests that disable interrupts and unmap host
    /// memory.
    pub fn close(&mut self) -> Outcome {
        match self {
            Self::Network(host) => Ok(host.machine.close()?),
            Self::VfioUser(client) => {
                client.machine.close().map_err(|error| Failure(error.to_string()))
            }
        }
    }
}
