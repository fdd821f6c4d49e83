//! One endpoint below one port, as the host sees it.
//!
//! A [`Slot`] decides the result of accesses to an endpoint whose link may be lost. Its user is a
//! guest behind a VMM, or the host's own driver. One rule holds: *a host never reads other data
//! than it wrote*. An access succeeds with the function's data, or it fails. A function whose data
//! may have changed is hidden from a client that relies on the old data, until the client requests
//! a reset.
//!
//! # Accesses
//!
//! The [`Condition`] of the slot and the kind of [`Access`] decide what happens
//! ([`Condition::outcome`]; `docs/architecture.md` has the table). The owner answers accesses of
//! the client according to [`Output::Presence`], and passes them on when [`Slot::accepts`] allows.
//!
//! # Conditions
//!
//! | in | happens | then |
//! | --- | --- | --- |
//! | attached | [`set_interrupted`](Slot::set_interrupted) | interrupted, or attached again |
//! | any | [`link_down`](Slot::link_down) | link down |
//! | link down | [`link_up`](Slot::link_up), same device and contents | preparing: settings are restored, bus mastering last; attached |
//! | | same device, new contents, and the client relies on no data | preparing: reset; attached |
//! | | same device, new contents | new contents |
//! | | another device, or none | detached |
//! | attached, new contents, detached | [`reset`](Slot::reset), same device | preparing: reset; attached |
//! | | another device | detached |
//! | | none | as before |
//! | link down | reset | link down, and the client relies on no data |
//!
//! Once contents are found to be new, only a reset returns to normal, even if a later device has
//! the old contents.
//!
//! # Contract
//!
//! As for every state machine here: the owner passes in events, then polls until `None`, also after
//! answers on the [`Bus`]. The slot's host software makes its requests on that bus. Accesses of the
//! client start in the order of the calls, each when [`Slot::accepts`] allows it: no access starts
//! before a write to configuration space, a change of MSI-X or a reset has ended.

mod change;
mod client;
mod port;
mod software;
mod stand_in;
mod table;
#[cfg(test)]
mod tests;

pub use change::Change;
pub use client::{Client, ReadOutcome};
pub use port::{OwnSlot, Port};
pub use stand_in::Snapshot;
pub use table::{Access, Condition, Outcome};

use crate::push::ResetEvent;
use bytes::Bytes;
use client::Deferred;
use pcie::Presence;
use pcie::enumerate::{self, Comparison, ContentsChange, Kind, Node};
use pcie::root::ReadToken;
use pcie::software::{Bus, Task};
use software::{Identified, REPLACED, Restore, identify_and_reset, restore};
use stand_in::{StandIn, Wanted};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use wire::Instant;

/// Identifies an access that is answered later.
pub type Token = u64;

/// How a slot sets its function up.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How functions are enumerated.
    pub enumeration: enumerate::Settings,
    /// This host's number, written into its functions ([`pcie::config::contents`]); 0: none is
    /// written.
    pub owner: u32,
}

/// An action for the owner of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The answer to an access of the client; no bytes for a write or a reset.
    Reply(Token, Vec<u8>),
    /// How much of the function the client sees from now on.
    Presence(Presence),
    /// The answer to a read of the client's memory that was pending in the slot.
    HostData(ReadToken, Option<Bytes>),
    /// A change to report to the user.
    Change(Change),
    /// The function is prepared, and its driver may use it.
    Ready {
        /// Whether the function was reset, because its contents are new.
        reset: bool,
    },
}

/// Whether the function can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Attached,
    LinkDown,
    /// The function is present, but the client may use it only after requesting a reset.
    NewContents(Box<Node>),
    /// Another device, or no device, is present; with the reported cause.
    Detached(String),
}

/// The result of a task of host software.
enum Ended {
    Nothing,
    /// A read of the client, and the number of link losses when it began.
    Read {
        token: Token,
        data: Vec<u8>,
        wanted: Wanted,
        losses: u64,
    },
    /// Whether the function is still there, whether it was reset, and the number of link losses
    /// when this began.
    Restored(bool, bool, u64),
    Reply(Token, Vec<u8>),
    /// A reset, the device found (`None` if none answers), and the number of link losses when it
    /// began.
    Reset(Token, Option<Identified>, u64),
}

/// The most requests of the client on the bus that may wait. Beyond, the client has to wait.
const MAX_QUEUED: usize = 64;

/// One endpoint below one port. See the [module](self).
pub struct Slot {
    node: Node,
    bus: Bus,
    settings: Settings,
    state: State,
    presence: Presence,
    /// Number of link losses. Results of host software that began before the last loss are
    /// discarded.
    losses: u64,
    /// Whether the link has lost its connection, but not its session.
    interrupted: bool,
    /// Whether the client relies on no data: it has requested a reset since the function was
    /// attached, or is gone.
    reset_requested: bool,
    /// A loss of data since the function was attached, which no later device undoes.
    loss: Option<ContentsChange>,
    /// What answers while the link is down, if the client has another slot with the device.
    stand_in: Option<StandIn>,
    has_other: bool,
    /// Settings to restore before anything else.
    restore: Option<Restore>,
    /// The event that reports the last link loss to the driver, unless the client accesses the
    /// function first.
    reset_event: Option<ResetEvent>,
    msix: bool,
    /// Reads of the client under way.
    reads: Vec<Task<Ended>>,
    /// Host software that runs without any other access, such as a reset.
    alone: Option<Task<Ended>>,
    /// Whether the software in `alone` resets the function or restores settings.
    prepares: bool,
    deferred: VecDeque<Deferred>,
    deferred_bytes: usize,
    /// Number of accesses of the function that were outside the client's memory, or refused.
    pub faults: u64,
    outputs: VecDeque<Output>,
}

impl Slot {
    /// A slot with a function that was enumerated, and that no client has used.
    pub fn new(node: Node, bus: Bus, settings: Settings) -> Self {
        Self {
            node,
            bus,
            stand_in: None,
            has_other: false,
            restore: (settings.owner != 0).then(Restore::default),
            settings,
            state: State::Attached,
            presence: Presence::Present,
            losses: 0,
            interrupted: false,
            reset_requested: false,
            loss: None,
            reset_event: None,
            msix: false,
            reads: Vec::new(),
            alone: None,
            prepares: false,
            deferred: VecDeque::new(),
            deferred_bytes: 0,
            faults: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Adds what a driver of an NVMe controller sees while the link is down, if it reaches the drive
    /// through [another slot](Self::set_other) too.
    #[must_use]
    pub fn with_snapshot(self, snapshot: Option<Snapshot>) -> Self {
        Self { stand_in: snapshot.map(StandIn::new), ..self }
    }

    /// The function that was attached last.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The condition, which determines the outcome of accesses.
    pub fn condition(&self) -> Condition {
        match self.state {
            State::Attached if self.is_preparing() => Condition::Preparing,
            State::Attached if self.interrupted => Condition::Interrupted,
            State::Attached => Condition::Attached,
            State::LinkDown if self.stand_in.is_some() && self.has_other => Condition::Awaited,
            State::LinkDown => Condition::LinkDown,
            State::NewContents(_) => Condition::NewContents,
            State::Detached(_) => Condition::Detached,
        }
    }

    /// Whether the slot resets the function, or restores the client's settings in it.
    pub fn is_preparing(&self) -> bool {
        self.prepares || self.restore.is_some()
    }

    /// Notes whether the client reaches the device through another slot too: then its driver waits for
    /// this one, and uses the other one meanwhile.
    pub fn set_other(&mut self, has_other: bool) {
        self.has_other = has_other;
    }

    /// Notes whether the link waits for a connection, with its session kept.
    pub fn set_interrupted(&mut self, interrupted: bool) {
        self.interrupted = interrupted;
    }

    /// Whether no operation is under way, and the function has followed all accesses of the client.
    pub fn is_settled(&self) -> bool {
        let idle = self.reads.is_empty() && self.alone.is_none() && self.bus.queued() == 0;
        idle && self.condition() == Condition::Attached
    }

    /// Whether reads of the client are under way.
    pub fn is_reading(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Whether an access of the client may start now, because no software runs alone. The client
    /// orders its own accesses.
    pub fn accepts(&self) -> bool {
        let ready = self.condition() != Condition::Preparing && self.alone.is_none();
        ready && self.bus.queued() < MAX_QUEUED
    }

    /// Handles a read of configuration space by the client.
    pub fn config_read(&mut self, now: Instant, token: Token, offset: u16, size: u8) {
        let (bus, bdf) = (self.bus.clone(), self.node.bdf);
        self.start_read(now, token, Wanted::Config(offset, size), async move {
            let value = bus.config_read(bdf, offset, size).await;
            value.to_le_bytes()[..usize::from(size)].to_vec()
        });
    }

    /// Handles a write of the client to configuration space.
    pub fn config_write(&mut self, token: Token, offset: u16, size: u8, value: u32) {
        if self.answers().is_some() {
            // The client remembers what is restored.
            return self.outputs.push_back(Output::Reply(token, Vec::new()));
        }
        let (bus, bdf) = (self.bus.clone(), self.node.bdf);
        self.start_alone(async move {
            bus.config_write(bdf, offset, size, value).await;
            Ended::Reply(token, Vec::new())
        });
    }

    /// Handles a read of a BAR by the client.
    pub fn bar_read(&mut self, now: Instant, token: Token, bar: u8, range: (u64, usize)) {
        let (bus, offset) = (self.bus.clone(), range.0);
        let address = self.node.bar(bar).map_or(0, |bar| bar.address) + offset;
        let wanted = Wanted::Bar(bar, offset, range.1);
        self.start_read(
            now,
            token,
            wanted,
            async move { software::read(&bus, address, range.1).await },
        );
    }

    /// Handles a posted write of the client to a BAR.
    pub fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        let down = self.answers().is_some();
        if let Some(stand_in) = self.stand_in.as_mut().filter(|_| bar == 0) {
            stand_in.write(offset, data, down);
        }
        if down {
            return;
        }
        if let Some(bar) = self.node.bar(bar) {
            software::write(&self.bus, bar.address + offset, data);
        }
    }

    /// Enables or disables MSI-X for the client.
    pub fn set_msix(&mut self, enable: bool) {
        self.msix = enable;
        if self.condition().outcome(Access::Msix) == Outcome::Remembered {
            return;
        }
        let (bus, node) = (self.bus.clone(), self.node.clone());
        self.start_alone(async move {
            software::set_msix(&bus, &node, enable).await;
            Ended::Nothing
        });
    }

    /// Handles a reset that the client requests, or the end of the client. Afterwards the function
    /// belongs to this client or the next one.
    pub fn reset(&mut self, token: Token) {
        self.drop_deferred();
        (self.msix, self.reset_requested, self.reset_event) = (false, true, None);
        self.stand_in.iter_mut().for_each(StandIn::reset);
        if self.condition().outcome(Access::Reset) == Outcome::Remembered {
            self.outputs.push_back(Output::Reply(token, Vec::new()));
            return;
        }
        let place = match &self.state {
            State::NewContents(node) => Node::clone(node),
            _ => self.node.clone(),
        };
        let Some(before) = self.node.identity() else { unreachable!("an endpoint") };
        let (bus, settings) = (self.bus.clone(), self.settings.clone());
        let losses = self.losses;
        self.prepares = true;
        self.start_alone(async move {
            let identified = identify_and_reset(&bus, before, &place, &settings).await;
            Ended::Reset(token, identified, losses)
        });
    }

    /// Notes that the client's memory in `range` was replaced.
    pub fn remapped(&mut self, range: &Range<u64>) {
        self.reset_event.take_if(|event| event.is_in(range));
    }

    /// Handles the loss of the link. `event` reports the loss to the driver once the function is
    /// back.
    pub fn link_down(&mut self, event: Option<ResetEvent>, client: &dyn Client) {
        if !self.reset_requested && !client.has_written_registers() {
            self.reset_event = event.or(self.reset_event);
        }
        self.losses += 1;
        self.interrupted = false;
        self.restore = None;
        self.stand_in.iter_mut().for_each(StandIn::link_down);
        self.set_state(State::LinkDown);
    }

    /// Reports the loss of the link to the driver at once, so that it uses another controller.
    pub fn report_loss(&mut self, now: Instant, client: &mut dyn Client) {
        self.report_reset(now, client);
    }

    /// What answers the accesses of the client now.
    fn answers(&self) -> Option<&StandIn> {
        self.stand_in.as_ref().filter(|_| self.condition() == Condition::Awaited)
    }

    /// Handles the return of the link. `found` are the functions that enumeration has found below
    /// the port.
    pub fn link_up(&mut self, found: &[Node], client: &dyn Client) {
        let bdf = self.node.bdf;
        let Some(node) = found.iter().find_map(|node| node.find(bdf)) else {
            return self.detach("no device found".to_owned());
        };
        let registers = self.stand_in.as_ref().and_then(StandIn::waiting);
        let settings = Restore { msix: self.msix, registers, ..Restore::default() };
        let returned = self.node.compare(node, self.settings.owner);
        let restore = match self.or_earlier_loss(returned) {
            Comparison::Another(why) => return self.detach(why),
            // Before its first reset request a driver relies on no data.
            Comparison::NewContents(loss) if client.is_active() && !self.reset_requested => {
                self.change(Change::NewContents(loss));
                return self.set_state(State::NewContents(Box::new(node.clone())));
            }
            Comparison::NewContents(loss) => {
                self.change(Change::ReattachedWithNewContents(loss));
                // After a reset, what the driver has written since.
                let written = self.reset_requested && client.is_active();
                let command = if written { client.command() } else { [None; 2] };
                Restore { reset: true, command, ..settings }
            }
            Comparison::Same => {
                self.change(Change::Reattached);
                Restore { command: client.command(), ..settings }
            }
        };
        self.node = node.clone();
        self.restore = Some(restore);
        self.attach();
    }

    /// The next action, or `None` until another event or an answer on the bus.
    pub fn poll(&mut self, now: Instant, client: &mut dyn Client) -> Option<Output> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            let mut moved = self.retry(now, client);
            let mut reads = std::mem::take(&mut self.reads);
            reads.retain_mut(|task| match task.poll(now) {
                None => true,
                Some(ended) => {
                    moved = true;
                    self.ended(now, client, ended);
                    false
                }
            });
            self.reads = reads;
            if let Some(ended) = self.alone.as_mut().and_then(|task| task.poll(now)) {
                moved = true;
                self.alone = None;
                self.ended(now, client, ended);
            }
            let idle = self.reads.is_empty() && self.alone.is_none();
            if let Some(restored) = self.restore.take_if(|_| idle) {
                moved = true;
                self.start_restore(restored);
            }
            if !moved {
                return None;
            }
        }
    }

    fn start_restore(&mut self, restored: Restore) {
        let (bus, node, settings) = (self.bus.clone(), self.node.clone(), self.settings.clone());
        let losses = self.losses;
        self.prepares = true;
        self.start_alone(async move {
            let there = restore(&bus, &node, &settings, restored).await;
            Ended::Restored(there, restored.reset, losses)
        });
    }

    /// Starts a read at once, so that a later posted write follows it on the bus. While the link is
    /// down, the stand-in answers.
    fn start_read(
        &mut self,
        now: Instant,
        token: Token,
        wanted: Wanted,
        software: impl Future<Output = Vec<u8>> + 'static,
    ) {
        if let Some(stand_in) = self.answers() {
            let data = stand_in.answer(wanted);
            return self.outputs.push_back(Output::Reply(token, data));
        }
        let losses = self.losses;
        let mut task = Task::new(&self.bus, async move {
            Ended::Read { token, data: software.await, wanted, losses }
        });
        match task.poll(now) {
            Some(Ended::Read { token, data, .. }) => {
                self.outputs.push_back(Output::Reply(token, data));
            }
            _ => self.reads.push(task),
        }
    }

    fn start_alone(&mut self, software: impl Future<Output = Ended> + 'static) {
        self.alone = Some(Task::new(&self.bus, software));
    }

    fn ended(&mut self, now: Instant, client: &mut dyn Client, ended: Ended) {
        match ended {
            Ended::Nothing => {}
            Ended::Read { token, data, wanted, losses } => {
                // The answer of a lost function is not the answer of an absent one.
                let lost = losses != self.losses && self.has_other;
                let stand_in = self.stand_in.as_ref().filter(|_| lost);
                let data = stand_in.map_or(data, |stand_in| stand_in.answer(wanted));
                self.outputs.push_back(Output::Reply(token, data));
            }
            Ended::Reply(token, data) => self.outputs.push_back(Output::Reply(token, data)),
            Ended::Restored(there, reset, losses) => {
                self.prepares = false;
                match there {
                    _ if losses != self.losses => {}
                    false => self.detach(REPLACED.to_owned()),
                    true => {
                        self.stand_in.iter_mut().for_each(|stand_in| stand_in.waits = false);
                        self.report_reset(now, client);
                        self.outputs.push_back(Output::Ready { reset });
                    }
                }
            }
            Ended::Reset(token, identified, losses) => {
                self.prepares = false;
                if losses == self.losses {
                    self.was_reset(identified);
                }
                self.outputs.push_back(Output::Reply(token, Vec::new()));
            }
        }
    }

    /// Completes a reset of the client.
    fn was_reset(&mut self, identified: Option<Identified>) {
        let attached = self.state == State::Attached;
        let Some((identity, returned)) = identified else {
            // A device that answers only later was not reset.
            self.reset_requested &= !attached;
            return;
        };
        match self.or_earlier_loss(returned) {
            Comparison::Another(why) => return self.detach(why),
            Comparison::NewContents(loss) => self.change(Change::ReattachedWithNewContents(loss)),
            Comparison::Same if !attached => self.change(Change::Reattached),
            Comparison::Same => {}
        }
        if let State::NewContents(node) = &self.state {
            self.node = Node::clone(node);
        }
        if let Kind::Endpoint(device) = &mut self.node.kind {
            device.contents = identity.contents;
        }
        self.attach();
    }

    fn attach(&mut self) {
        (self.reset_requested, self.loss) = (false, None);
        self.set_state(State::Attached);
    }

    /// Empties the slot, because another device is there. Otherwise a driver that resets the device
    /// would use the blocks of the new device as blocks of the old one.
    fn detach(&mut self, why: String) {
        // Report it once, however often the client requests a reset.
        let state = State::Detached(why.clone());
        if self.state != state {
            self.change(Change::Changed(why));
        }
        self.set_state(state);
    }

    /// Adds an earlier loss: after a restart, a drive no longer reports that another host used it.
    fn or_earlier_loss(&mut self, returned: Comparison) -> Comparison {
        match (returned, self.loss) {
            (Comparison::NewContents(loss), _) | (Comparison::Same, Some(loss)) => {
                self.loss = Some(loss);
                Comparison::NewContents(loss)
            }
            (returned, _) => returned,
        }
    }

    /// Completes an event request of the driver. Otherwise the driver would notice the reset of its
    /// controller only by command time-outs. A client that wrote a register meanwhile may have
    /// reset the controller itself, and may use the memory for other purposes.
    fn report_reset(&mut self, now: Instant, client: &mut dyn Client) {
        let Some(event) = self.reset_event.take() else { return };
        if !client.has_written_registers() {
            self.memory_write(now, client, event.address, &event.entry);
            // The admin completion queue has vector 0 (NVM Express 1.4, section 5.3).
            if self.msix {
                self.interrupt(client, 0);
            }
        }
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
        let presence = self.condition().presence();
        if std::mem::replace(&mut self.presence, presence) != presence {
            self.outputs.push_back(Output::Presence(presence));
        }
    }

    fn change(&mut self, change: Change) {
        self.outputs.push_back(Output::Change(change));
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot {}: {:?}", self.node.bdf, self.state)
    }
}
