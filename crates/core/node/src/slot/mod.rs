//! One endpoint below one port, as the host sees it.
//!
//! A [`Slot`] decides what the host gets from an endpoint whose link may be lost: a guest behind
//! a VMM, or a driver of the host's own. It keeps one rule: *a host never reads other data than it
//! wrote*. An access returns what the function has, or it fails; a function whose data may be
//! others is kept from a client that knows the old ones, until the client requests a reset.
//!
//! # Accesses
//!
//! The [`Condition`] of the slot and the kind of [`Access`] decide what happens
//! ([`Condition::outcome`]; `docs/architecture.md` has the table). The shell answers what a client
//! does to its endpoint by [`Output::Presence`]; it passes on what [`Slot::accepts`] takes.
//!
//! # Conditions
//!
//! | in | happens | then |
//! | --- | --- | --- |
//! | any | [`link_down`](Slot::link_down) | link down |
//! | link down | [`link_up`](Slot::link_up), same device and contents | preparing: settings are restored, bus mastering last; attached |
//! | | same device, new contents, nobody knows the old ones | preparing: reset; attached |
//! | | same device, new contents | new contents |
//! | | another device, or none | detached |
//! | attached, new contents, detached | [`reset`](Slot::reset), same device | preparing: reset; attached |
//! | | another device | detached |
//! | | none | as before |
//! | link down | reset | link down, and nobody knows the old contents |
//!
//! Once contents are found to be new, no later device with the same contents undoes that: only a
//! reset does.
//!
//! # Contract
//!
//! As of every state machine here: the owner hands in what happened, then polls until `None`,
//! also after answers on the [`Bus`]. Host software of the slot makes its requests on that bus.
//! Accesses of the client start in the order of the calls, each when [`Slot::accepts`] it: nothing
//! starts before a write to configuration space, a change of MSI-X or a reset has ended.

mod change;
mod client;
mod port;
mod software;
mod table;
#[cfg(test)]
mod tests;

pub use change::Change;
pub use client::{Client, ReadOutcome};
pub use port::{OwnSlot, Port};
pub use table::{Access, Condition, Outcome};

use crate::push::ResetEvent;
use bytes::Bytes;
use client::Deferred;
use pcie::Presence;
use pcie::enumerate::{self, Comparison, ContentsChange, Kind, Node};
use pcie::root::ReadToken;
use pcie::software::{Bus, Task};
use software::{Identified, REPLACED, Restore, identify_and_reset, restore};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use wire::Instant;

/// Names an access that is answered later.
pub type Token = u64;

/// How a slot sets its function up.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How functions are enumerated.
    pub enumeration: enumerate::Settings,
    /// This host's number in its functions, see [`pcie::config::contents`]; 0: it writes none.
    pub owner: u32,
}

/// An action for the owner of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The answer to an access of the client; no bytes for a write or a reset.
    Reply(Token, Vec<u8>),
    /// How much the client sees from now on.
    Presence(Presence),
    /// The answer to a read of the client's memory that was pending in the slot.
    HostData(ReadToken, Option<Bytes>),
    /// A change, for the user.
    Change(Change),
    /// The function is prepared: its driver may use it.
    Ready {
        /// It was reset, because its contents are new.
        reset: bool,
    },
}

/// Whether the function can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Attached,
    LinkDown,
    /// This function is there, but the client may use it only after a reset that it requests.
    NewContents(Box<Node>),
    /// Another device is there, or none, with the cause that was reported.
    Detached(String),
}

/// The result of a task of host software.
enum Ended {
    Nothing,
    /// Whether the function is still there, whether it was reset, and the number of link losses when
    /// this began.
    Restored(bool, bool, u64),
    Reply(Token, Vec<u8>),
    /// A reset, the device found (`None` if none answers), and the number of link losses when it
    /// began.
    Reset(Token, Option<Identified>, u64),
}

/// Requests of the client on the bus that may wait; then the client has to.
const MAX_QUEUED: usize = 64;

/// One endpoint below one port. See the [module](self).
pub struct Slot {
    node: Node,
    bus: Bus,
    settings: Settings,
    state: State,
    presence: Presence,
    /// Times the link was lost: host software that began before the last loss does not count.
    losses: u64,
    /// The client has requested a reset since the function was attached, or has gone: it expects
    /// nothing of the data.
    reset_requested: bool,
    /// A loss of data since the function was attached: no later device undoes it.
    loss: Option<ContentsChange>,
    /// To be restored before anything else.
    restore: Option<Restore>,
    /// What reports the last link loss to the driver, unless the client does anything before.
    reset_event: Option<ResetEvent>,
    msix: bool,
    /// Reads of the client under way.
    reads: Vec<Task<Ended>>,
    /// Any other software, which runs alone.
    alone: Option<Task<Ended>>,
    /// It resets the function, or restores settings.
    prepares: bool,
    deferred: VecDeque<Deferred>,
    deferred_bytes: usize,
    /// Accesses of the function outside the client's memory, or refused.
    pub faults: u64,
    outputs: VecDeque<Output>,
}

impl Slot {
    /// A slot with a function that was enumerated, and that no client has used.
    pub fn new(node: Node, bus: Bus, settings: Settings) -> Self {
        Self {
            node,
            bus,
            restore: (settings.owner != 0).then(Restore::default),
            settings,
            state: State::Attached,
            presence: Presence::Present,
            losses: 0,
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

    /// The function that was attached last.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The condition, which decides about accesses.
    pub fn condition(&self) -> Condition {
        match self.state {
            State::Attached if self.prepares || self.restore.is_some() => Condition::Preparing,
            State::Attached => Condition::Attached,
            State::LinkDown => Condition::LinkDown,
            State::NewContents(_) => Condition::NewContents,
            State::Detached(_) => Condition::Detached,
        }
    }

    /// Whether nothing is under way, and the function has followed all that the client did.
    pub fn is_settled(&self) -> bool {
        let idle = self.reads.is_empty() && self.alone.is_none() && self.bus.queued() == 0;
        idle && self.condition() == Condition::Attached
    }

    /// Whether an access of the client may start now: nothing that runs alone is under way. Which
    /// of its accesses pass others is up to the client.
    pub fn accepts(&self) -> bool {
        let ready = self.condition() != Condition::Preparing && self.alone.is_none();
        ready && self.bus.queued() < MAX_QUEUED
    }

    /// The client reads configuration space.
    pub fn config_read(&mut self, now: Instant, token: Token, offset: u16, size: u8) {
        let (bus, bdf) = (self.bus.clone(), self.node.bdf);
        self.start_read(now, async move {
            let value = bus.config_read(bdf, offset, size).await;
            Ended::Reply(token, value.to_le_bytes()[..usize::from(size)].to_vec())
        });
    }

    /// The client writes configuration space.
    pub fn config_write(&mut self, token: Token, offset: u16, size: u8, value: u32) {
        let (bus, bdf) = (self.bus.clone(), self.node.bdf);
        self.start_alone(async move {
            bus.config_write(bdf, offset, size, value).await;
            Ended::Reply(token, Vec::new())
        });
    }

    /// The client reads a BAR.
    pub fn bar_read(&mut self, now: Instant, token: Token, bar: u8, range: (u64, usize)) {
        let (bus, offset) = (self.bus.clone(), range.0);
        let address = self.node.bar(bar).map_or(0, |bar| bar.address) + offset;
        self.start_read(now, async move {
            Ended::Reply(token, software::read(&bus, address, range.1).await)
        });
    }

    /// The client writes a BAR: posted.
    pub fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        if let Some(bar) = self.node.bar(bar) {
            software::write(&self.bus, bar.address + offset, data);
        }
    }

    /// The client enables or disables MSI-X.
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

    /// The client requests a reset, or has gone. The function is the client's afterwards, or the
    /// next one's.
    pub fn reset(&mut self, token: Token) {
        self.drop_deferred();
        (self.msix, self.reset_requested, self.reset_event) = (false, true, None);
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

    /// The client's memory in `range` is other memory from now on.
    pub fn remapped(&mut self, range: &Range<u64>) {
        self.reset_event.take_if(|event| event.is_in(range));
    }

    /// The link went down. `event` reports that to the driver once the function is back.
    pub fn link_down(&mut self, event: Option<ResetEvent>, client: &dyn Client) {
        if !self.reset_requested && !client.has_written_registers() {
            self.reset_event = event.or(self.reset_event);
        }
        self.losses += 1;
        self.restore = None;
        self.set_state(State::LinkDown);
    }

    /// The link came up, and `found` is what enumeration has found below the port.
    pub fn link_up(&mut self, found: &[Node], client: &dyn Client) {
        let bdf = self.node.bdf;
        let Some(node) = found.iter().find_map(|node| node.find(bdf)) else {
            return self.detach("no device found".to_owned());
        };
        let settings = Restore { msix: self.msix, ..Restore::default() };
        let returned = self.node.compare(node, self.settings.owner);
        let restore = match self.or_earlier_loss(returned) {
            Comparison::Another(why) => return self.detach(why),
            // A driver knows nothing of the data before the first reset that it requests.
            Comparison::NewContents(loss) if client.is_active() && !self.reset_requested => {
                self.change(Change::NewContents(loss));
                return self.set_state(State::NewContents(Box::new(node.clone())));
            }
            Comparison::NewContents(loss) => {
                self.change(Change::ReattachedWithNewContents(loss));
                Restore { reset: true, ..settings }
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

    /// The next action. `None` until something else happens, or a request on the bus is answered.
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

    /// Starts a read at once, so that a posted write behind it follows on the bus.
    fn start_read(&mut self, now: Instant, software: impl Future<Output = Ended> + 'static) {
        let mut task = Task::new(&self.bus, software);
        match task.poll(now) {
            Some(Ended::Reply(token, data)) => self.outputs.push_back(Output::Reply(token, data)),
            _ => self.reads.push(task),
        }
    }

    fn start_alone(&mut self, software: impl Future<Output = Ended> + 'static) {
        self.alone = Some(Task::new(&self.bus, software));
    }

    fn ended(&mut self, now: Instant, client: &mut dyn Client, ended: Ended) {
        match ended {
            Ended::Nothing => {}
            Ended::Reply(token, data) => self.outputs.push_back(Output::Reply(token, data)),
            Ended::Restored(there, reset, losses) => {
                self.prepares = false;
                match there {
                    _ if losses != self.losses => {}
                    false => self.detach(REPLACED.to_owned()),
                    true => {
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
            // A device that answers later was not reset.
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

    /// Empties the slot, because another device is there. A driver that resets the device would
    /// otherwise take the new device's blocks for the old device's.
    fn detach(&mut self, why: String) {
        // Report it once, however often the client requests a reset.
        let state = State::Detached(why.clone());
        if self.state != state {
            self.change(Change::Changed(why));
        }
        self.set_state(state);
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

    /// Completes an event request of the driver: without it, the driver would notice at the
    /// time-outs of its commands that its controller was reset. A client that wrote a register
    /// meanwhile may have reset the controller itself, and may use the memory otherwise.
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
