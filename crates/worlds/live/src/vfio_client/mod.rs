//! Host software on the function of any vfio-user server, without a VMM and without TLPs.

#[cfg(test)]
mod tests;

use crate::clock::Clock;
use crate::host::run_to_end;
use crate::poller::Poller;
use ::node::host::Buses;
use pcie::software::{Bus, Request};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use vfio_user::client::{Device, Doorbells, Error, Function, HostMemory};
use wire::earliest;
use wire::{Duration, Instant};

/// Interval at which a polling client checks the socket of a silent server.
const LOOK: Duration = Duration::from_us(50);
/// After a message, the socket is checked in every turn for this long.
const TALK: Duration = Duration::from_ms(1);

/// A server to drive.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's socket.
    pub socket: PathBuf,
    /// How doorbells are rung.
    pub doorbells: Doorbells,
    /// Whether host software polls for completions in every turn, so that the machine never sleeps.
    pub polled: bool,
}

/// A machine whose only function is the function of a vfio-user server.
pub struct VfioUserClient {
    clock: Clock,
    poller: Poller,
    settings: Settings,
    memory: Rc<HostMemory>,
    buses: Buses,
    /// The function, or the error that ended it.
    function: Result<Function, Error>,
    interrupts: VecDeque<u32>,
    /// When a polling machine checks the socket next.
    next_poll: Instant,
    talked: Instant,
}

impl VfioUserClient {
    /// Connects to a server and gives its device `memory`.
    ///
    /// # Errors
    /// If the server cannot be used: one line with its socket.
    pub fn connect(
        clock: Clock,
        poller: Poller,
        settings: Settings,
        memory: Rc<HostMemory>,
    ) -> Result<Self, Error> {
        let mut machine = Self {
            clock,
            poller,
            function: Err(Error::new(&settings.socket, "not connected")),
            settings,
            memory,
            buses: Buses::default(),
            interrupts: VecDeque::new(),
            next_poll: Instant::ZERO,
            talked: Instant::ZERO,
        };
        machine.reconnect()?;
        Ok(machine)
    }

    /// Connects again to a server that was lost. The function is as after power-on.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn reconnect(&mut self) -> Result<(), Error> {
        let Settings { socket, doorbells, .. } = &self.settings;
        let clock = self.clock;
        let now = Rc::new(move || clock.now());
        let mut device = Device::connect(socket, now, self.memory.clone(), *doorbells)?;
        if *doorbells == Doorbells::Mapped && !device.has_pages() {
            return Err(Error::new(socket, "the server offers no page of doorbells to map"));
        }
        let watched = self.poller.add(device.channel(), false);
        watched.map_err(|error| Error::new(socket, error.to_string()))?;
        self.function = Function::new(device);
        self.function.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// A bus for another piece of host software.
    pub fn new_bus(&mut self) -> Bus {
        self.buses.new_bus()
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The socket of the server.
    pub fn socket(&self) -> &Path {
        &self.settings.socket
    }

    /// Why the server is lost. Nothing answers until the machine is connected again.
    pub fn lost(&self) -> Option<&Error> {
        self.function.as_ref().err()
    }

    /// Whether doorbells are rung in a mapped page.
    pub fn maps_doorbells(&mut self) -> bool {
        self.function.as_mut().is_ok_and(|function| function.device().has_pages())
    }

    /// The data of the next MSI-X message.
    pub fn next_interrupt(&mut self) -> Option<u32> {
        self.interrupts.pop_front()
    }

    /// The server's process, if this process can see it.
    pub fn server(&mut self) -> Option<u32> {
        let function = self.function.as_mut().ok()?;
        let peer = rustix::net::sockopt::socket_peercred(function.device().channel()).ok()?;
        u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
    }

    /// Makes one turn. Returns whether anything happened, and when to call again at the latest.
    ///
    /// # Errors
    /// As `epoll_wait(2)`.
    pub fn pump(&mut self) -> io::Result<(bool, Option<Instant>)> {
        let now = self.clock.now();
        let mut moved = self.buses.wake(now);
        while let Some((name, request)) = self.buses.next_request(now, |_| true) {
            moved = true;
            let Self { function, poller, .. } = self;
            let answer = with(function, |function| {
                function.carry_out(request, |signal| poller.add(signal, false))
            });
            if !matches!(request, Request::MemoryWrite { .. }) {
                self.buses.answer(name, answer.flatten());
            }
        }
        moved |= if self.settings.polled { self.poll_socket(now) } else { self.serve_ready(now)? };
        Ok((moved, earliest([self.buses.timer(), self.reply_until()])))
    }

    /// When a missing reply counts as late.
    fn reply_until(&mut self) -> Option<Instant> {
        self.function.as_mut().ok().and_then(|function| function.device().channel().reply_until())
    }

    /// Handles the server's messages. Returns whether there were any.
    fn service(&mut self) -> bool {
        with(&mut self.function, |function| function.device().channel().service()).unwrap_or(true)
    }

    /// Checks the socket now and then, because a polling machine does not wait in epoll.
    fn poll_socket(&mut self, now: Instant) -> bool {
        if now < self.next_poll {
            return false;
        }
        let moved = self.function.is_ok() && self.service();
        if moved {
            self.talked = now;
        }
        self.next_poll = if now < self.talked + TALK { now } else { now + LOOK };
        moved
    }

    /// Serves the descriptors that are ready.
    fn serve_ready(&mut self, now: Instant) -> io::Result<bool> {
        let mut moved = false;
        if self.poller.refresh(now)? {
            let Self { function, poller, interrupts, .. } = self;
            let Ok(function) = function else { return Ok(false) };
            let before = interrupts.len();
            function
                .interrupts(|signal| poller.take_ready(signal), |data| interrupts.push_back(data));
            moved = interrupts.len() > before;
            if poller.take_ready(function.device().channel()) {
                moved |= self.service();
            }
        }
        if self.reply_until().is_some_and(|until| now > until) {
            moved |= self.service();
        }
        self.poller.end_turn();
        Ok(moved)
    }

    /// Waits until something may happen. Returns at once if `moved` is set or the machine polls.
    ///
    /// # Errors
    /// As `epoll_wait(2)`.
    pub fn wait(&mut self, moved: bool, timer: Option<Instant>) -> io::Result<()> {
        match (self.settings.polled, moved) {
            // Yields, because the server may be scheduled on this core.
            (true, false) => std::thread::yield_now(),
            (true, true) => {}
            (false, true) => self.poller.busy(self.clock.now()),
            (false, false) => self.poller.wait(&self.clock, timer)?,
        }
        Ok(())
    }

    /// Runs a piece of host software until it finishes.
    ///
    /// # Errors
    /// As [`pump`](Self::pump) and [`wait`](Self::wait).
    pub fn run<T>(
        &mut self,
        bus: &Bus,
        software: impl Future<Output = T> + 'static,
    ) -> io::Result<T> {
        run_to_end(self.clock, bus, software, || {
            let (moved, timer) = self.pump()?;
            self.wait(moved, timer)
        })
    }

    /// Takes interrupts and memory back, and disconnects. Does nothing if the server is lost.
    ///
    /// # Errors
    /// If the server does not answer these requests correctly.
    pub fn close(&mut self) -> Result<(), Error> {
        let gone = Err(Error::new(&self.settings.socket, "closed"));
        std::mem::replace(&mut self.function, gone).map_or(Ok(()), |mut function| function.close())
    }
}

/// Runs `act` on the function. An error marks the server as lost.
fn with<T>(
    function: &mut Result<Function, Error>,
    act: impl FnOnce(&mut Function) -> Result<T, Error>,
) -> Option<T> {
    match act(function.as_mut().ok()?) {
        Ok(value) => Some(value),
        Err(error) => {
            *function = Err(error);
            None
        }
    }
}
