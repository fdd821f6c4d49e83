//! One endpoint offered to a VMM. Accesses of the VMM become requests of host software, in
//! order; the endpoint's DMA and interrupts go to the guest.

use super::ReadOutcome;
use super::accesses::{read, write};
use super::reattach::{self, ClientSettings, EndpointChange, Identified, State};
use crate::random_number;
use ::node::push::ResetEvent;
use bytes::{Bytes, BytesMut};
use pcie::enumerate::{Comparison, ContentsChange, Kind, Node, Settings};
use pcie::root::ReadToken;
use pcie::software::{Bus, Task};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::Path;
use vfio_user::{
    Access, Action, BindError, DmaError, DmaId, EndpointInfo, Presence, Server, Token,
};
use wire::Instant;

/// The result of a task of host software.
enum TaskResult {
    /// No result.
    Done,
    /// The client's settings are restored after this number of link losses.
    Restored(u64),
    /// An answer for the VMM.
    Reply(Token, Vec<u8>),
    /// A reset, the device found (`None` if none answers), and the number of link losses when
    /// it began.
    Reset(Token, Option<Identified>, u64),
}

/// DMA that waits because the client accepts none now.
enum Deferred {
    Read { token: ReadToken, address: u64, length: usize },
    Write { address: u64, data: Bytes },
    Interrupt(u16),
}

/// Actions and bus requests that may wait; then the client has to.
const MAX_ACTIONS: usize = 64;
/// Register reads in flight.
const MAX_READS: usize = 32;
/// Bytes of deferred writes above which the device has to wait.
const MAX_DEFERRED: usize = 16 << 20;

pub struct Endpoint {
    /// The downstream port it is below.
    pub port: usize,
    /// The function.
    pub node: Node,
    /// The wire of the root port that carries its interrupts, 0 for INTA.
    pub wire: u8,
    /// The vfio-user server for its VMM.
    pub server: Server,
    /// The owner knows of a VMM.
    pub connected: bool,
    bus: Bus,
    settings: Settings,
    /// This host's owner number in the function, see [`pcie::config::contents`].
    owner: u32,
    state: State,
    /// Times the link was lost: a reset that began before the last loss does not count.
    losses: u64,
    /// The client has requested a reset since the function was attached, or has disconnected:
    /// it expects nothing of the data.
    reset: bool,
    /// A loss of data since the function was attached: no later device undoes it.
    loss: Option<ContentsChange>,
    /// Settings to restore in the function before anything else.
    restore: Option<ClientSettings>,
    /// What reports the last link loss to the driver, unless the client does anything before.
    reset_event: Option<ResetEvent>,
    /// Changes not yet reported.
    pub changes: Vec<EndpointChange>,
    msix: bool,
    running: Vec<Task<TaskResult>>,
    /// All running tasks are reads.
    reads_only: bool,
    backlog: VecDeque<Action>,
    reads: BTreeMap<u64, ReadToken>,
    deferred: VecDeque<Deferred>,
    deferred_bytes: usize,
    /// Host reads to answer: (token, bytes).
    pub answers: Vec<(ReadToken, Option<Bytes>)>,
    /// DMA of the device outside mapped memory.
    pub faults: u64,
}

impl Endpoint {
    /// Offers `node` on `directory/number/cntrl`. Error: see [`BindError`].
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
            connected: false,
            bus,
            settings,
            // Never 0, which means that no host has had the device.
            owner: random_number() as u32 | 1,
            state: State::Attached,
            losses: 0,
            reset: false,
            loss: None,
            restore: Some(ClientSettings::default()),
            reset_event: None,
            changes: Vec::new(),
            msix: false,
            running: Vec::new(),
            reads_only: false,
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

    /// Serves the VMM's socket and starts what can be started. Returns whether anything happened.
    pub fn service(&mut self, now: Instant) -> bool {
        self.server.service(now);
        self.service_without_input(now)
    }

    /// The same when the VMM's socket has no input.
    pub fn service_without_input(&mut self, now: Instant) -> bool {
        self.server.session.poll_doorbells();
        self.advance(now)
    }

    /// Continues without the VMM's socket: requests on the bus may have been answered.
    pub fn advance(&mut self, now: Instant) -> bool {
        let mut moved = false;
        loop {
            let mut again = false;
            while let Some((id, result)) = self.server.session.poll_dma(now) {
                again = true;
                self.dma_done(id, result);
            }
            // Requests of a client that is faster than the far side wait in its socket.
            while self.backlog.len() < MAX_ACTIONS
                && let Some(action) = self.server.poll(now)
            {
                again = true;
                self.queue_action(action);
            }
            again |= self.run_tasks(now);
            moved |= again;
            if !again {
                self.clear_passed_writes();
                return moved;
            }
        }
    }

    /// Forgets register writes that have reached the host's root complex, which follows them.
    fn clear_passed_writes(&mut self) {
        let idle = self.running.is_empty() && self.backlog.is_empty() && self.restore.is_none();
        if idle && self.bus.queued() == 0 && self.state == State::Attached {
            self.server.session.registers_written = false;
        }
    }

    /// Queues an action; completed DMA is handled at once, since accesses and DMA do not wait
    /// for each other.
    fn queue_action(&mut self, action: Action) {
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

    /// Polls the running tasks and starts the next actions. Reads run in parallel and posted
    /// writes pass them; everything else runs alone, in the VMM's order.
    fn run_tasks(&mut self, now: Instant) -> bool {
        let mut moved = self.retry(now);
        loop {
            let mut running = std::mem::take(&mut self.running);
            running.retain_mut(|task| match task.poll(now) {
                None => true,
                Some(ended) => {
                    moved = true;
                    self.task_ended(now, ended);
                    false
                }
            });
            self.running = running;
            if let Some(client_settings) = self.restore.take_if(|_| self.running.is_empty()) {
                (self.reads_only, moved) = (false, true);
                let (bus, node, owner) = (self.bus.clone(), self.node.clone(), self.owner);
                let losses = self.losses;
                self.start_task(async move {
                    reattach::restore(&bus, &node, owner, client_settings).await;
                    TaskResult::Restored(losses)
                });
            }
            let Some(action) = self.next_action().and_then(|at| self.backlog.remove(at)) else {
                return moved;
            };
            moved = true;
            if !matches!(action, Action::BarWrite { .. }) {
                self.reads_only = is_read(&action);
            }
            self.start(action);
        }
    }

    fn task_ended(&mut self, now: Instant, ended: TaskResult) {
        let token = match ended {
            TaskResult::Done => return,
            TaskResult::Restored(losses) => {
                if losses == self.losses {
                    self.report_reset(now);
                }
                return;
            }
            TaskResult::Reply(token, data) => return self.server.reply(now, token, Ok(&data)),
            TaskResult::Reset(token, identified, losses) => {
                if losses == self.losses {
                    self.reset_done(now, identified);
                }
                token
            }
        };
        self.server.reply(now, token, Ok(&[]));
    }

    /// The action of the backlog that may start: the first, if nothing runs. While only reads
    /// run, more reads may start, and the first action behind them if it is a posted write (PCI
    /// Express Base 4.0, section 2.4.1).
    fn next_action(&self) -> Option<usize> {
        if self.restore.is_some() || self.bus.queued() >= MAX_ACTIONS {
            return None;
        }
        if self.running.is_empty() {
            return Some(0);
        }
        if !self.reads_only {
            return None;
        }
        let reads = self.backlog.iter().take_while(|action| is_read(action)).count();
        if reads > 0 && self.running.len() < MAX_READS {
            return Some(0);
        }
        matches!(self.backlog.get(reads), Some(Action::BarWrite { .. })).then_some(reads)
    }

    fn start(&mut self, action: Action) {
        let (bus, node) = (self.bus.clone(), self.node.clone());
        match action {
            Action::DmaDone { .. } => {}
            Action::ConfigRead { token, offset, size } => self.start_task(async move {
                let value = bus.config_read(node.bdf, offset, size).await;
                TaskResult::Reply(token, value.to_le_bytes()[..usize::from(size)].to_vec())
            }),
            Action::ConfigWrite { token, offset, size, value } => self.start_task(async move {
                bus.config_write(node.bdf, offset, size, value).await;
                TaskResult::Reply(token, Vec::new())
            }),
            Action::BarRead { token, bar, offset, length } => {
                let address = node.bar(bar).map_or(0, |bar| bar.address) + offset;
                self.start_task(async move {
                    TaskResult::Reply(token, read(&bus, address, length).await)
                });
            }
            Action::BarWrite { bar, offset, data } => {
                if let Some(bar) = node.bar(bar) {
                    write(&bus, bar.address + offset, &data);
                }
            }
            Action::MsixEnable(enable) => {
                self.msix = enable;
                if self.state == State::Attached {
                    self.start_task(async move {
                        reattach::set_msix(&bus, &node, enable).await;
                        TaskResult::Done
                    });
                }
            }
            Action::Reset { token } => {
                self.drop_deferred();
                self.reset(token);
            }
            Action::ClientGone { token } => {
                // The device still waits for reads that get no answer now.
                let pending = std::mem::take(&mut self.reads).into_values();
                self.answers.extend(pending.map(|token| (token, None)));
                self.drop_deferred();
                self.reset(token);
            }
        }
    }

    /// Drops deferred DMA and interrupts: none from before a reset may reach the client after it.
    fn drop_deferred(&mut self) {
        let reads = self.deferred.drain(..).filter_map(|deferred| match deferred {
            Deferred::Read { token, .. } => Some(token),
            Deferred::Write { .. } | Deferred::Interrupt(_) => None,
        });
        self.answers.extend(reads.map(|token| (token, None)));
        self.deferred_bytes = 0;
    }

    fn start_task(&mut self, software: impl Future<Output = TaskResult> + 'static) {
        self.running.push(Task::new(&self.bus, software));
    }

    /// Carries out a reset that the client requested or that follows its disconnect: identifies
    /// the device, which is the client's afterwards.
    fn reset(&mut self, token: Token) {
        self.msix = false;
        self.reset = true;
        self.reset_event = None;
        let place = match &self.state {
            State::Attached | State::Detached(_) => self.node.clone(),
            State::AwaitsReset(node) => Node::clone(node),
            State::LinkDown => {
                self.start_task(async move { TaskResult::Reply(token, Vec::new()) });
                return;
            }
        };
        let Some(before) = self.node.identity() else { unreachable!("an endpoint") };
        let (bus, settings) = (self.bus.clone(), self.settings.clone());
        let (owner, losses) = (self.owner, self.losses);
        self.start_task(async move {
            let identified =
                reattach::identify_and_reset(&bus, before, &place, &settings, owner).await;
            TaskResult::Reset(token, identified, losses)
        });
    }

    /// Completes a reset of the client.
    fn reset_done(&mut self, now: Instant, identified: Option<Identified>) {
        let attached = self.state == State::Attached;
        let Some((identity, returned)) = identified else {
            // A device that answers later was not reset.
            self.reset &= !attached;
            return;
        };
        match self.or_earlier_loss(returned) {
            Comparison::Another(why) => return self.detach(now, why),
            Comparison::NewContents(loss) => {
                self.changes.push(EndpointChange::ReattachedWithNewContents(loss))
            }
            Comparison::Same if !attached => self.changes.push(EndpointChange::Reattached),
            Comparison::Same => {}
        }
        if let State::AwaitsReset(node) = &self.state {
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

    /// Detaches the endpoint, because another device is there: a driver that resets the device
    /// it knows would take its blocks for those of the old one.
    fn detach(&mut self, now: Instant, why: String) {
        // Report it once, however often the client requests a reset.
        let state = State::Detached(why.clone());
        if std::mem::replace(&mut self.state, state.clone()) != state {
            self.changes.push(EndpointChange::Changed(why));
        }
        self.server.set_presence(now, Presence::Absent);
    }

    /// Completes an event request of the driver: without it, the driver would notice at the
    /// time-outs of its commands that its controller was reset. A client that wrote a register
    /// meanwhile may have reset the controller itself, and may use the memory otherwise.
    fn report_reset(&mut self, now: Instant) {
        let Some(event) = self.reset_event.take() else { return };
        if !self.server.session.registers_written {
            self.dma_write(now, event.address, &event.entry);
            // The admin completion queue has vector 0 (NVM Express 1.4, section 5.3).
            if self.msix {
                self.interrupt(0);
            }
        }
    }

    /// The client's memory in `range` is other memory from now on.
    pub fn remapped(&mut self, range: &Range<u64>) {
        self.reset_event.take_if(|event| event.is_in(range));
    }

    /// The link went down: all reads return all ones from now on. `event` reports that to the
    /// driver once the function is back.
    pub fn link_down(&mut self, now: Instant, event: Option<ResetEvent>) {
        if !self.reset && !self.server.session.registers_written {
            self.reset_event = event.or(self.reset_event);
        }
        self.state = State::LinkDown;
        self.losses += 1;
        self.restore = None;
        self.server.set_presence(now, Presence::Absent);
        // Earlier doorbells mean nothing to the function that comes back.
        self.backlog.retain(|action| !matches!(action, Action::BarWrite { .. }));
    }

    /// The link is up again; `node` is the function found in the endpoint's place, if any.
    pub fn link_up(&mut self, now: Instant, node: Option<Node>) {
        let Some(node) = node else { return self.detach(now, "nothing there".to_owned()) };
        // A driver knows nothing of the data before the first reset that it requests; without a
        // client there is no driver.
        let unknown = !self.server.session.in_use() || self.reset;
        let returned = self.node.compare(&node, self.owner);
        let command = match self.or_earlier_loss(returned) {
            Comparison::Another(why) => return self.detach(now, why),
            Comparison::NewContents(loss) if !unknown => return self.await_reset(now, node, loss),
            Comparison::NewContents(loss) => {
                self.changes.push(EndpointChange::ReattachedWithNewContents(loss));
                [None; 2]
            }
            Comparison::Same => {
                self.changes.push(EndpointChange::Reattached);
                self.server.session.written_command()
            }
        };
        self.node = node;
        self.restore = Some(ClientSettings { msix: self.msix, command });
        self.attach(now);
    }

    /// Whether the function has no access to the client's memory yet.
    fn is_detached(&self) -> bool {
        matches!(self.state, State::AwaitsReset(_) | State::Detached(_))
    }

    /// Adds an earlier loss: a drive that another host has used does not report that after a
    /// restart.
    fn or_earlier_loss(&mut self, returned: Comparison) -> Comparison {
        match (returned, self.loss) {
            (Comparison::NewContents(loss), _) | (Comparison::Same, Some(loss)) => {
                self.loss = Some(loss);
                Comparison::NewContents(loss)
            }
            (returned, _) => returned,
        }
    }

    /// Keeps a function with new contents from a client that knows the old ones: the client
    /// sees it and can reset it, but its driver cannot use it before.
    fn await_reset(&mut self, now: Instant, node: Node, loss: ContentsChange) {
        self.changes.push(EndpointChange::NewContents(loss));
        self.state = State::AwaitsReset(Box::new(node));
        self.server.set_presence(now, Presence::ConfigOnly);
    }

    /// Whether the device may write more.
    pub fn accepts_writes(&self) -> bool {
        self.deferred_bytes < MAX_DEFERRED
    }

    /// The device reads guest memory.
    pub fn dma_read(
        &mut self,
        now: Instant,
        address: u64,
        length: usize,
        token: &ReadToken,
    ) -> ReadOutcome {
        if self.is_detached() {
            return self.fault();
        }
        let fetched = self.deferred.is_empty().then(|| self.fetch(now, address, length, token));
        fetched.flatten().unwrap_or_else(|| {
            self.deferred.push_back(Deferred::Read { token: token.clone(), address, length });
            ReadOutcome::Pending
        })
    }

    /// Appends guest memory as [`dma_read`](Self::dma_read) would read it now, if it is at hand;
    /// whether it is.
    pub fn peek(&mut self, range: (u64, usize), out: &mut BytesMut) -> bool {
        !self.is_detached() && self.deferred.is_empty() && self.server.session.peek(range, out)
    }

    /// Reads guest memory; `None` if the client takes no request now.
    fn fetch(
        &mut self,
        now: Instant,
        address: u64,
        length: usize,
        token: &ReadToken,
    ) -> Option<ReadOutcome> {
        match self.server.dma_read(now, address, length) {
            Access::Done(data) => Some(ReadOutcome::Done(Some(data))),
            Access::Pending(id) => {
                self.reads.insert(id, token.clone());
                Some(ReadOutcome::Pending)
            }
            Access::Failed(_) => Some(self.fault()),
            Access::Full => None,
        }
    }

    fn fault(&mut self) -> ReadOutcome {
        self.faults += 1;
        ReadOutcome::Done(None)
    }

    /// The device writes guest memory.
    pub fn dma_write(&mut self, now: Instant, address: u64, data: &[u8]) {
        if self.is_detached() {
            self.faults += 1;
            return;
        }
        if self.deferred.is_empty() && self.store(now, address, data) {
            return;
        }
        self.deferred_bytes += data.len();
        self.deferred.push_back(Deferred::Write { address, data: Bytes::copy_from_slice(data) });
    }

    /// Writes guest memory; false if the client takes no request now.
    fn store(&mut self, now: Instant, address: u64, data: &[u8]) -> bool {
        let write = self.server.dma_write(now, address, data);
        self.faults += u64::from(matches!(write, Access::Failed(_)));
        write != Access::Full
    }

    /// The device signals a vector.
    pub fn interrupt(&mut self, vector: u16) {
        if self.is_detached() {
            return;
        }
        if self.deferred.is_empty() {
            self.server.session.signal(vector);
        } else {
            self.deferred.push_back(Deferred::Interrupt(vector));
        }
    }

    /// Retries deferred DMA and interrupts, in order.
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
                    if let Some(ReadOutcome::Done(data)) = &fetched {
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
