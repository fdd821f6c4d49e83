//! A shell for tests: a host node with a switch, device nodes' ends with the
//! DMA test function, and paths between them that do what a test says.

use crate::host::{self, Buses, HostNode};
use crate::links::LinkEvent;
use crate::path::Input;
use crate::switch::{Output, SwitchNode};
use ::switch::congestion::Rate;
use ::switch::downstream::{self, Downstream};
use ::switch::tunnel::{self, Cause};
use ::switch::upstream::{self, next_timer};
use bytes::{Bytes, BytesMut};
use pcie::dma_test::{self, DmaTest};
use pcie::enumerate::{self, Hierarchy};
use pcie::software::Task;
use pcie::{Bus, Ram, root};
use wire::frame::{Reject, Role};
use wire::{Duration, Instant};

/// Where host memory begins, and its size.
pub const RAM: u64 = 0x1_0000_0000;
const RAM_SIZE: usize = 1 << 20;

/// Ways in which a far side meets those who connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It takes them.
    Serves,
    /// It has no port there.
    Refuses,
    /// It does not answer.
    Silent,
    /// It takes them, and says that it is in use.
    TurnsAway,
}

/// What became of a path, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    None,
    Connecting,
    Open,
}

/// The far side of a link.
pub struct Far {
    pub end: Downstream<DmaTest>,
    pub manner: Manner,
    pub state: State,
    /// The node has asked for a path and not closed it.
    wanted: bool,
    /// What the path carries at once.
    pub width: usize,
    /// How much of that is left.
    room: usize,
    /// Nothing passes, and nobody is told.
    pub cut: bool,
    /// Bytes that came from the host.
    pub received: usize,
    /// What ended its links.
    pub ends: Vec<Cause>,
    down: Vec<Bytes>,
    up: Vec<Bytes>,
}

/// What a test looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Connect(usize, usize),
    Close(usize, Option<Cause>),
    Event(LinkEvent),
    Interrupt(u32),
}

pub struct World {
    pub host: HostNode<SwitchNode>,
    pub buses: Buses,
    pub bus: Bus,
    pub far: Vec<Far>,
    pub now: Instant,
    pub log: Vec<(Instant, What)>,
    pub ram: Ram,
    pub timer: Option<Instant>,
}

impl World {
    /// A host before so many device nodes, at time 0; nothing has been polled.
    pub fn new(links: u8, limit: Option<Rate>) -> Self {
        let settings = upstream::Settings {
            ports: links,
            max_payload: 4096,
            p2p: false,
            tunnel: tunnel::Settings::new(Role::Host, 1),
        };
        let far = |number| Far {
            end: Downstream::new(
                tunnel::Settings::new(Role::Device, 10 + number),
                DmaTest::new(dma_test::Settings::default()),
            ),
            manner: Manner::Serves,
            state: State::None,
            wanted: false,
            width: 64 << 10,
            room: 0,
            cut: false,
            received: 0,
            ends: Vec::new(),
            down: Vec::new(),
            up: Vec::new(),
        };
        let mut buses = Buses::default();
        let bus = buses.new_bus();
        Self {
            host: HostNode::new(root::Settings::default(), SwitchNode::new(settings, limit)),
            buses,
            bus,
            far: (0..u64::from(links)).map(far).collect(),
            now: Instant::ZERO,
            log: Vec::new(),
            ram: Ram::new(RAM, RAM_SIZE),
            timer: None,
        }
    }

    /// One with all links up, and what enumeration found.
    pub fn up(links: u8, limit: Option<Rate>) -> (Self, Hierarchy) {
        let mut world = Self::new(links, limit);
        world.pass(Duration::from_ms(1));
        let enumeration = enumerate::enumerate(world.bus.clone(), enumerate::Settings::default());
        let hierarchy = world.run(enumeration).unwrap();
        (world, hierarchy)
    }

    pub fn switch(&mut self) -> &mut SwitchNode {
        self.host.below_mut()
    }

    /// Runs host software to its end.
    pub fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> T {
        let mut task = Task::new(&self.bus, software);
        loop {
            if let Some(value) = task.poll(self.now) {
                return value;
            }
            if !self.settle() {
                self.now = self.timer.expect("the software waits for something");
            }
        }
    }

    /// Lets time pass, from timer to timer.
    pub fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            self.settle();
            match self.timer.filter(|at| *at <= until) {
                Some(at) => self.now = at,
                None => break,
            }
        }
        self.now = until;
        self.settle();
    }

    /// Does what can be done now: first what has arrived goes in. Whether there
    /// was anything; then [`timer`](Self::timer) is in the future.
    pub fn settle(&mut self) -> bool {
        let mut any = false;
        loop {
            let mut moved = self.arrive();
            moved |= self.requests();
            let mut timer = self.drain(&mut moved);
            for index in 0..self.far.len() {
                timer = next_timer([timer, self.serve(index, &mut moved)]);
            }
            if !moved {
                assert!(timer.is_none_or(|at| at > self.now), "{timer:?} is not after now");
                self.timer = timer;
                return any;
            }
            any = true;
        }
    }

    /// What the far sides sent, and what became of attempts to connect.
    pub fn arrive(&mut self) -> bool {
        let now = self.now;
        let mut moved = false;
        for index in 0..self.far.len() {
            let (far, switch) = (&mut self.far[index], self.host.below_mut());
            let input = match (far.state, far.manner) {
                (State::Connecting, Manner::Serves | Manner::TurnsAway) => {
                    (far.state, far.room) = (State::Open, far.width);
                    far.end.handle(now, tunnel::Input::Connected);
                    if far.manner == Manner::TurnsAway {
                        far.end.turn_away(Reject::Busy);
                    }
                    Input::Connected
                }
                (State::Connecting, Manner::Refuses) => {
                    (far.state, far.wanted) = (State::None, false);
                    Input::Failed("refused".into())
                }
                _ => Input::Room(far.room),
            };
            moved |= !matches!(input, Input::Room(_));
            switch.handle_link(now, index, input);
            for bytes in far.up.drain(..).filter(|_| !far.cut) {
                moved = true;
                switch.handle_link(now, index, Input::Received(bytes));
            }
        }
        moved
    }

    fn requests(&mut self) -> bool {
        let mut moved = self.buses.wake(self.now);
        while let Some((id, request)) =
            self.buses.next_request(self.now, |request| self.host.takes(request))
        {
            moved = true;
            self.host.handle(self.now, host::Input::Request(id, request));
        }
        moved
    }

    /// Polls the host and its links until both have nothing more to do; yields
    /// their timer.
    pub fn drain(&mut self, moved: &mut bool) -> Option<Instant> {
        let now = self.now;
        let above = loop {
            match self.host.poll(now) {
                host::Output::Answer(id, value) => self.buses.answer(id, value),
                host::Output::HostRead { token, address, length, .. } => {
                    let data = self.ram.get(address, length).map(Bytes::copy_from_slice);
                    self.host.handle(now, host::Input::HostData(token, data));
                }
                host::Output::HostWrite { address, data, .. } => {
                    let place = self.ram.get_mut(address, data.len()).expect("inside");
                    place.copy_from_slice(&data);
                }
                host::Output::Interrupt { data, .. } => self.log.push((now, What::Interrupt(data))),
                host::Output::Wire { .. } => {}
                host::Output::Timeout(at) => break at,
            }
            *moved = true;
        };
        loop {
            let output = self.host.below_mut().poll_links(now);
            match output {
                Output::Timeout(at) => return next_timer([above, at, self.buses.timer()]),
                output => self.carry(output),
            }
            *moved = true;
        }
    }

    /// Does one thing for a link, and checks that it may be asked for.
    fn carry(&mut self, output: Output) {
        let now = self.now;
        match output {
            Output::Connect { link, attempt } => {
                let far = &mut self.far[link];
                assert!(far.state == State::None && !far.wanted, "one path a link");
                (far.state, far.wanted) = (State::Connecting, true);
                self.log.push((now, What::Connect(link, attempt)));
            }
            Output::Transmit { link, bytes } => {
                let far = &mut self.far[link];
                assert_eq!(far.state, State::Open, "a path that is not open");
                assert!(!bytes.is_empty() && bytes.len() <= far.room, "no room");
                far.room -= bytes.len();
                far.down.push(bytes);
            }
            Output::Close { link, cause } => {
                let far = &mut self.far[link];
                assert!(std::mem::take(&mut far.wanted), "a path that nobody wanted");
                self.log.push((now, What::Close(link, cause)));
                self.close(link);
            }
            Output::Event(LinkEvent::Down { link, cause, buses }) => {
                self.host.forget_masters(buses.clone());
                let event = LinkEvent::Down { link, cause, buses };
                self.log.push((now, What::Event(event)));
            }
            Output::Event(event) => self.log.push((now, What::Event(event))),
            Output::Timeout(_) => unreachable!("the caller's"),
        }
    }

    /// Its path ends once what was sent has arrived.
    fn close(&mut self, link: usize) {
        let mut moved = false;
        if self.far[link].state == State::Open {
            self.serve(link, &mut moved);
        }
        let far = &mut self.far[link];
        far.end.handle(self.now, tunnel::Input::Disconnected);
        far.state = State::None;
        self.serve(link, &mut moved);
        self.far[link].up.clear();
    }

    /// The device node loses its power, or the cable: the host is told.
    pub fn breaks(&mut self, link: usize) {
        self.far[link].end.handle(self.now, tunnel::Input::Disconnected);
        self.far[link].state = State::None;
        self.host.below_mut().handle_link(self.now, link, Input::Gone);
    }

    /// Runs the far side of a link; yields its timer.
    pub fn serve(&mut self, link: usize, moved: &mut bool) -> Option<Instant> {
        let (now, far) = (self.now, &mut self.far[link]);
        for bytes in far.down.drain(..).filter(|_| !far.cut) {
            *moved = true;
            far.received += bytes.len();
            far.end.handle(now, tunnel::Input::Received(bytes));
        }
        far.room = far.width;
        let mut frames = BytesMut::new();
        loop {
            let bytes = if far.state == State::Open { 64 << 10 } else { 0 };
            far.end.handle(now, tunnel::Input::CanTransmit { bytes });
            match far.end.poll(now, &mut frames) {
                downstream::Output::Transmit(_) => far.up.push(frames.split().freeze()),
                downstream::Output::Up(_) => {}
                downstream::Output::Down(cause) => far.ends.push(cause),
                downstream::Output::Timeout(at) => return at,
            }
            *moved = true;
        }
    }

    /// The events, with their times in milliseconds.
    pub fn events(&self) -> Vec<(u64, LinkEvent)> {
        let event = |(at, what): &(Instant, What)| match what {
            What::Event(event) => Some((at.as_ns() / 1_000_000, event.clone())),
            _ => None,
        };
        self.log.iter().filter_map(event).collect()
    }

    /// The attempts to connect: when in milliseconds, which link, which number.
    pub fn attempts(&self) -> Vec<(u64, usize, usize)> {
        let attempt = |(at, what): &(Instant, What)| match what {
            What::Connect(link, attempt) => Some((at.as_ns() / 1_000_000, *link, *attempt)),
            _ => None,
        };
        self.log.iter().filter_map(attempt).collect()
    }
}
