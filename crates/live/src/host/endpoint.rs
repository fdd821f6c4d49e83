//! One endpoint offered to a VMM: what the VMM does becomes requests of host
//! software, in order, and the endpoint's DMA and interrupts reach the guest.

use super::Fetched;
use super::accesses::{read, write};
use super::comeback::{self, Looked, News, Settled, State};
use crate::random_number;
use crate::vfio_user::{
    Access, Action, BindError, DmaError, DmaId, EndpointInfo, Presence, Server, Token,
};
use bytes::Bytes;
use pcie::enumerate::{Comparison, ContentsChange, Kind, Node, Settings};
use pcie::root::ReadToken;
use pcie::software::{Bus, Task};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use wire::Instant;

/// What a piece of host software ends in.
enum Ended {
    /// Nothing that anybody waits for.
    Done,
    /// An answer for the VMM.
    Reply(Token, Vec<u8>),
    /// A reset, who was found (`None` if nobody was), and how often the link
    /// had been lost when it began.
    Reset(Token, Option<Looked>, u64),
}

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

pub struct Endpoint {
    /// The downstream port it is below.
    pub port: usize,
    /// The function.
    pub node: Node,
    /// The wire of the root port that carries its interrupts, 0 for INTA.
    pub wire: u8,
    /// What its VMM talks to.
    pub server: Server,
    bus: Bus,
    settings: Settings,
    /// The host's mark in the function, see [`pcie::config::contents`].
    owner: u32,
    state: State,
    /// Times the link was lost: what was found before is worth nothing after.
    losses: u64,
    /// The client has asked for a reset since the function was attached, or
    /// has gone: it expects nothing of the data any more.
    reset: bool,
    /// What was found to be lost since the function was attached: whoever is
    /// there later cannot make that good.
    loss: Option<ContentsChange>,
    /// What is to be given back to the function before anything else.
    restore: Option<Settled>,
    /// What the user has not been told yet.
    pub news: Vec<News>,
    msix: bool,
    running: Vec<Task<Ended>>,
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
            // Never 0, which says that nobody has had the device.
            owner: random_number() as u32 | 1,
            state: State::Attached,
            losses: 0,
            reset: false,
            loss: None,
            restore: Some(Settled::default()),
            news: Vec::new(),
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
        super::Summary::new(&self.node, &self.server.session.info.config)
    }

    /// DMA of the device that found no memory.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// Takes what the VMM wants and does what can be done. Yields whether
    /// anything happened.
    pub fn service(&mut self, now: Instant) -> bool {
        self.server.service(now);
        self.look(now)
    }

    /// The same when nothing has come over the VMM's socket.
    pub fn look(&mut self, now: Instant) -> bool {
        self.server.session.poll_doorbells();
        self.go_on(now)
    }

    /// Does what can be done without a look at the VMM's socket: when requests
    /// on the bus may have been answered.
    pub fn go_on(&mut self, now: Instant) -> bool {
        let mut moved = false;
        loop {
            let mut again = false;
            while let Some((id, result)) = self.server.session.poll_dma(now) {
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

    /// Runs what is running, and starts what is next: reads side by side and
    /// posted writes past them, everything else alone, so that the order is
    /// the VMM's.
    fn work(&mut self, now: Instant) -> bool {
        let mut moved = self.retry(now);
        loop {
            let mut running = std::mem::take(&mut self.running);
            running.retain_mut(|task| match task.poll(now) {
                None => true,
                Some(ended) => {
                    moved = true;
                    self.ended(now, ended);
                    false
                }
            });
            self.running = running;
            if let Some(settled) = self.restore.take_if(|_| self.running.is_empty()) {
                self.reading = false;
                let (bus, node, owner) = (self.bus.clone(), self.node.clone(), self.owner);
                self.begin(async move {
                    comeback::restore(&bus, &node, owner, settled).await;
                    Ended::Done
                });
            }
            let Some(action) = self.next().and_then(|at| self.backlog.remove(at)) else {
                return moved;
            };
            moved = true;
            if !matches!(action, Action::BarWrite { .. }) {
                self.reading = is_read(&action);
            }
            self.start(action);
        }
    }

    fn ended(&mut self, now: Instant, ended: Ended) {
        let token = match ended {
            Ended::Done => return,
            Ended::Reply(token, data) => return self.server.reply(now, token, Ok(&data)),
            Ended::Reset(token, looked, losses) => {
                if losses == self.losses {
                    self.looked(now, looked);
                }
                token
            }
        };
        self.server.reply(now, token, Ok(&[]));
    }

    /// Which action of the backlog may start: the first, unless something
    /// runs. Beside reads, more reads may, and the first that is none if it
    /// is a posted write (PCI Express Base 4.0, section 2.4.1).
    fn next(&self) -> Option<usize> {
        if self.restore.is_some() || self.bus.queued() >= MOST_ACTIONS {
            return None;
        }
        if self.running.is_empty() {
            return Some(0);
        }
        if !self.reading {
            return None;
        }
        let reads = self.backlog.iter().take_while(|action| is_read(action)).count();
        if reads > 0 && self.running.len() < MOST_READS {
            return Some(0);
        }
        matches!(self.backlog.get(reads), Some(Action::BarWrite { .. })).then_some(reads)
    }

    fn start(&mut self, action: Action) {
        let (bus, node) = (self.bus.clone(), self.node.clone());
        match action {
            Action::ClientReady | Action::DmaDone { .. } => {}
            Action::ConfigRead { token, offset, size } => self.begin(async move {
                let value = bus.config_read(node.bdf, offset, size).await;
                Ended::Reply(token, value.to_le_bytes()[..usize::from(size)].to_vec())
            }),
            Action::ConfigWrite { token, offset, size, value } => self.begin(async move {
                bus.config_write(node.bdf, offset, size, value).await;
                Ended::Reply(token, Vec::new())
            }),
            Action::BarRead { token, bar, offset, length } => {
                let address = node.bar(bar).map_or(0, |bar| bar.address) + offset;
                self.begin(async move { Ended::Reply(token, read(&bus, address, length).await) });
            }
            Action::BarWrite { bar, offset, data } => {
                if let Some(bar) = node.bar(bar) {
                    write(&bus, bar.address + offset, &data);
                }
            }
            Action::MsixEnable(enable) => {
                self.msix = enable;
                if self.state == State::Attached {
                    self.begin(async move {
                        comeback::set_msix(&bus, &node, enable).await;
                        Ended::Done
                    });
                }
            }
            Action::Reset { token, .. } => {
                self.drop_deferred();
                self.reset(token);
            }
            Action::ClientGone { token } => {
                // The device still waits for what nobody will answer now.
                let pending = std::mem::take(&mut self.reads).into_values();
                self.answers.extend(pending.map(|token| (token, None)));
                self.drop_deferred();
                self.reset(token);
            }
        }
    }

    /// What the device did before its reset reaches nobody after it.
    fn drop_deferred(&mut self) {
        let reads = self.deferred.drain(..).filter_map(|deferred| match deferred {
            Deferred::Read { token, .. } => Some(token),
            Deferred::Write { .. } | Deferred::Interrupt(_) => None,
        });
        self.answers.extend(reads.map(|token| (token, None)));
        self.deferred_bytes = 0;
    }

    fn begin(&mut self, software: impl Future<Output = Ended> + 'static) {
        self.running.push(Task::new(&self.bus, software));
    }

    /// A reset that the client asked for, or that its end asks for: what is
    /// there now is looked at, and is the client's after it.
    fn reset(&mut self, token: Token) {
        self.msix = false;
        self.reset = true;
        let place = match &self.state {
            State::Attached | State::Away(_) => self.node.clone(),
            State::Waiting(node) => Node::clone(node),
            State::Lost => {
                self.begin(async move { Ended::Reply(token, Vec::new()) });
                return;
            }
        };
        let Some(before) = self.node.identity() else { unreachable!("an endpoint") };
        let (bus, settings) = (self.bus.clone(), self.settings.clone());
        let (owner, losses) = (self.owner, self.losses);
        self.begin(async move {
            let looked = comeback::look_and_reset(&bus, before, &place, &settings, owner).await;
            Ended::Reset(token, looked, losses)
        });
    }

    /// A reset of the client is over.
    fn looked(&mut self, now: Instant, looked: Option<Looked>) {
        let attached = self.state == State::Attached;
        let Some((identity, returned)) = looked else {
            // Whatever answers there later was not reset.
            self.reset &= !attached;
            return;
        };
        match self.with_loss(returned) {
            Comparison::Another(why) => return self.keep_away(now, why),
            Comparison::NewContents(loss) => self.news.push(News::BackWithNewContents(loss)),
            Comparison::Same if !attached => self.news.push(News::Back),
            Comparison::Same => {}
        }
        if let State::Waiting(node) = &self.state {
            self.node = Node::clone(node);
        }
        if let Kind::Endpoint(device) = &mut self.node.kind {
            device.contents = identity.contents;
        }
        self.attach(now);
    }

    fn attach(&mut self, now: Instant) {
        self.state = State::Attached;
        (self.reset, self.loss) = (false, None);
        self.server.set_presence(now, Presence::Present);
    }

    /// Another device is there: a driver that merely resets what it knows
    /// would take its blocks for those of the device before.
    fn keep_away(&mut self, now: Instant, why: String) {
        // Once, however often the client asks for a reset.
        let state = State::Away(why.clone());
        if std::mem::replace(&mut self.state, state.clone()) != state {
            self.news.push(News::Changed(why));
        }
        self.server.set_presence(now, Presence::Absent);
    }

    /// The link went down: everything reads all ones from now on.
    pub fn lost(&mut self, now: Instant) {
        self.state = State::Lost;
        self.losses += 1;
        self.restore = None;
        self.server.set_presence(now, Presence::Absent);
        // Doorbells of before mean nothing to the function that comes back.
        self.backlog.retain(|action| !matches!(action, Action::BarWrite { .. }));
    }

    /// The link is up again; `node` is what was enumerated where the endpoint
    /// was, if anything.
    pub fn found(&mut self, now: Instant, node: Option<Node>) {
        let Some(node) = node else { return self.keep_away(now, "nothing there".to_owned()) };
        // A driver knows nothing of the data before the first reset that it
        // asked for, and none at all is there without a client.
        let unknown = !self.server.session.in_use() || self.reset;
        let returned = self.node.compare(&node, self.owner);
        let command = match self.with_loss(returned) {
            Comparison::Another(why) => return self.keep_away(now, why),
            Comparison::NewContents(loss) if !unknown => return self.wait(now, node, loss),
            Comparison::NewContents(loss) => {
                self.news.push(News::BackWithNewContents(loss));
                [None; 2]
            }
            Comparison::Same => {
                self.news.push(News::Back);
                self.server.session.config.command
            }
        };
        self.node = node;
        self.restore = Some(Settled { msix: self.msix, command });
        self.attach(now);
    }

    /// What is there reaches no memory of the client yet.
    fn waits(&self) -> bool {
        matches!(self.state, State::Waiting(_) | State::Away(_))
    }

    /// What comes back now, given what came back before: a drive that another
    /// host has had says nothing of that after a restart.
    fn with_loss(&mut self, returned: Comparison) -> Comparison {
        match (returned, self.loss) {
            (Comparison::NewContents(loss), _) | (Comparison::Same, Some(loss)) => {
                self.loss = Some(loss);
                Comparison::NewContents(loss)
            }
            (returned, _) => returned,
        }
    }

    /// New contents under a client that knows the old ones: it sees the
    /// function and can reset it, but its driver cannot use it before.
    fn wait(&mut self, now: Instant, node: Node, loss: ContentsChange) {
        self.news.push(News::NewContents(loss));
        self.state = State::Waiting(Box::new(node));
        self.server.set_presence(now, Presence::ConfigOnly);
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
        if self.waits() {
            return self.fault();
        }
        let fetched = self.deferred.is_empty().then(|| self.fetch(now, address, length, token));
        fetched.flatten().unwrap_or_else(|| {
            self.deferred.push_back(Deferred::Read { token: token.clone(), address, length });
            Fetched::Later
        })
    }

    /// Reads guest memory; `None` if the client takes nothing now.
    fn fetch(
        &mut self,
        now: Instant,
        address: u64,
        length: usize,
        token: &ReadToken,
    ) -> Option<Fetched> {
        match self.server.dma_read(now, address, length) {
            Access::Done(data) => Some(Fetched::Now(Some(data))),
            Access::Pending(id) => {
                self.reads.insert(id, token.clone());
                Some(Fetched::Later)
            }
            Access::Failed(_) => Some(self.fault()),
            Access::Full => None,
        }
    }

    fn fault(&mut self) -> Fetched {
        self.faults += 1;
        Fetched::Now(None)
    }

    /// The device writes guest memory.
    pub fn dma_write(&mut self, now: Instant, address: u64, data: &[u8]) {
        if self.waits() {
            self.faults += 1;
            return;
        }
        if self.deferred.is_empty() && self.store(now, address, data) {
            return;
        }
        self.deferred_bytes += data.len();
        self.deferred.push_back(Deferred::Write { address, data: Bytes::copy_from_slice(data) });
    }

    /// Writes guest memory; false if the client takes nothing now.
    fn store(&mut self, now: Instant, address: u64, data: &[u8]) -> bool {
        let write = self.server.dma_write(now, address, data);
        self.faults += u64::from(matches!(write, Access::Failed(_)));
        write != Access::Full
    }

    /// The device signals a vector.
    pub fn interrupt(&mut self, vector: u16) {
        if self.waits() {
            return;
        }
        if self.deferred.is_empty() {
            self.server.session.signal(vector);
        } else {
            self.deferred.push_back(Deferred::Interrupt(vector));
        }
    }

    /// Tries what was deferred again, in order.
    fn retry(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(next) = self.deferred.pop_front() {
            let done = match &next {
                Deferred::Interrupt(vector) => {
                    self.server.session.signal(*vector);
                    true
                }
                Deferred::Write { address, data } => {
                    let done = self.store(now, *address, data);
                    self.deferred_bytes -= if done { data.len() } else { 0 };
                    done
                }
                Deferred::Read { token, address, length } => {
                    let fetched = self.fetch(now, *address, *length, token);
                    if let Some(Fetched::Now(data)) = &fetched {
                        self.answers.push((token.clone(), data.clone()));
                    }
                    fetched.is_some()
                }
            };
            if !done {
                self.deferred.push_front(next);
                break;
            }
            moved = true;
        }
        moved
    }
}

fn is_read(action: &Action) -> bool {
    matches!(action, Action::ConfigRead { .. } | Action::BarRead { .. })
}
