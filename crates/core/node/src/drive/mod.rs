//! An NVMe drive: a subsystem, the contents of its namespaces, and the changes to store.
//!
//! The owner of a drive has the media and the records. It passes inputs to the [`Port`] of a
//! controller. After every call it polls the port until the port waits, then
//! [`DriveNode::poll_drive`] until that returns `None`. If the owner answered any output, it polls
//! the ports again.

mod leases;

use crate::faults::{Fault, Faults};
use leases::Leases;
use nvme::block::{Completion, Error, Request};
use nvme::{Commit, Subsystem};
use pcie::{Errors, Function, Input, Output, Ports, Ready};
use std::collections::BTreeMap;
use wire::tlp::{Packet, Tlp};
use wire::{Duration, Instant};

/// CNTLID of the controller that every drive has.
pub const FIRST: u16 = 1;
/// The longest memory write that is a completion entry or an interrupt, in bytes.
const LONGEST_ENTRY: usize = wire::nvme::COMPLETION_ENTRY;

/// Contents of a namespace. The value is unique while the drive has power: an NSID can be reused
/// while requests for the previous namespace are still under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentsId {
    nsid: u32,
    /// The commit that created the contents, counted from 1; 0 for contents that existed at
    /// power-on.
    commit: u64,
}

impl ContentsId {
    /// NSID of the namespace.
    pub fn nsid(self) -> u32 {
        self.nsid
    }
}

/// An action for the owner of a drive.
#[derive(Debug)]
pub enum DriveOutput {
    /// Carry out a request for contents, and answer with [`DriveNode::complete_block`]:
    /// [`Error::Internal`] if the contents cannot be opened.
    Block(ContentsId, Request),
    /// Answer the request with this identifier at once with
    /// [`DriveNode::complete_block`] and this error: a [fault](crate::faults).
    Fail(ContentsId, u64, Error),
    /// Store a change as described at [`Commit`], and answer with [`DriveNode::complete_store`].
    /// There is at most one at a time.
    Store(Commit),
    /// Close contents that were removed: no request for them is under way, and none follows.
    Close(ContentsId),
}

/// Contents, and the number of requests under way.
#[derive(Debug)]
struct Contents {
    id: ContentsId,
    under_way: usize,
}

impl Contents {
    fn new(nsid: u32, commit: u64) -> Self {
        Self { id: ContentsId { nsid, commit }, under_way: 0 }
    }
}

/// A change that is being stored, by the ID of its commit.
#[derive(Debug)]
struct Storing {
    commit: u64,
    /// NSIDs of the namespaces that the commit creates and deletes.
    created: Option<u32>,
    deleted: Vec<u32>,
}

/// A request that a fault delays, and the error with which it ends.
#[derive(Debug)]
struct Held {
    contents: ContentsId,
    request: Request,
    error: Option<Error>,
}

/// An NVMe drive. As a [`Function`] it is its first controller; [`port`](Self::port) lends each.
#[derive(Debug)]
pub struct DriveNode {
    subsystem: Subsystem,
    /// The contents of namespaces, by NSID.
    contents: BTreeMap<u32, Contents>,
    /// The contents of deleted namespaces that are not yet closed.
    deleted: Vec<Contents>,
    storing: Option<Storing>,
    faults: Faults,
    /// Delayed requests, by the time at which they continue and by identifier. Their number is
    /// bounded by the requests of the controllers.
    held: BTreeMap<(Instant, u64), Held>,
    leases: Leases,
    /// Time of the last event.
    now: Instant,
}

impl DriveNode {
    /// A drive after power-on.
    pub fn new(subsystem: Subsystem) -> Self {
        let namespaces = subsystem.state().namespaces;
        let contents = namespaces.into_keys().map(|nsid| (nsid, Contents::new(nsid, 0))).collect();
        Self {
            subsystem,
            contents,
            deleted: Vec::new(),
            storing: None,
            faults: Faults::default(),
            held: BTreeMap::new(),
            leases: Leases::default(),
            now: Instant::ZERO,
        }
    }

    /// Sets the faults of the drive.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Removes the faults, with what is left of each, for the drive after a power cycle.
    pub fn take_faults(&mut self) -> Faults {
        std::mem::take(&mut self.faults)
    }

    /// The next fault that began to act, and when.
    pub fn poll_fault(&mut self) -> Option<(Instant, Fault)> {
        self.faults.poll_begun()
    }

    /// The subsystem.
    pub fn subsystem(&self) -> &Subsystem {
        &self.subsystem
    }

    /// The contents of each namespace, by NSID.
    pub fn contents(&self) -> impl Iterator<Item = (u32, ContentsId)> {
        self.contents.iter().map(|(nsid, contents)| (*nsid, contents.id))
    }

    /// The controller with this CNTLID, as a function.
    ///
    /// # Panics
    /// The methods of the port panic if there is no such controller.
    pub fn port(&mut self, controller: u16) -> Port<'_> {
        Port { node: self, controller }
    }

    /// Errors that a controller counted on PCIe.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn errors(&self, controller: u16) -> &Errors {
        self.subsystem.controller(controller).errors()
    }

    /// The subsystem, for operations that concern neither media nor records: events, changes of
    /// namespaces, shutdown. A media event begins when [`poll_drive`](Self::poll_drive) returns the
    /// request.
    pub fn subsystem_mut(&mut self) -> &mut Subsystem {
        &mut self.subsystem
    }

    /// Sets until when the media carry out requests of a controller. From the first call on, every
    /// controller has a lease, which is over before it is set.
    pub fn set_lease(&mut self, controller: u16, until: Instant) {
        self.leases.set(controller, until);
    }

    /// When the next request that is late by a fault begins. The owner polls again then: a request
    /// is held by [`poll_drive`](Self::poll_drive), after [`poll`](Function::poll) said how long to
    /// wait.
    pub fn next_late(&self) -> Option<Instant> {
        self.held.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next action for the owner.
    pub fn poll_drive(&mut self) -> Option<DriveOutput> {
        if let Some(at) = self.deleted.iter().position(|contents| contents.under_way == 0) {
            return Some(DriveOutput::Close(self.deleted.swap_remove(at).id));
        }
        if let Some(commit) = self.poll_store() {
            return Some(DriveOutput::Store(commit));
        }
        if let Some(held) = self.take_late() {
            return Some(self.begin(held));
        }
        loop {
            let (leases, now) = (&self.leases, self.now);
            let request = self.subsystem.poll_block_of(&|id| leases.allow(now, id))?;
            let contents = self.contents.get_mut(&request.nsid).expect("a request's namespace");
            contents.under_way += 1;
            let contents = contents.id;
            let (late, error) = self.faults_of(&request);
            let id = request.id;
            let held = Held { contents, request, error };
            match late {
                None => return Some(self.begin(held)),
                Some(late) => self.held.insert((self.now + late, id), held),
            };
        }
    }

    /// Takes a delayed request that begins now. It fails if the controller's lease is over: the host
    /// may have sent it again over another controller.
    fn take_late(&mut self) -> Option<Held> {
        let entry = self.held.first_entry().filter(|entry| entry.key().0 <= self.now)?;
        let controller = Request::controller_of(entry.key().1);
        if self.leases.is_over(self.now, controller) {
            let held = entry.remove();
            return Some(Held { error: held.error.or(Some(Error::Internal)), ..held });
        }
        self.leases.allow(self.now, controller).then(|| entry.remove())
    }

    fn begin(&mut self, held: Held) -> DriveOutput {
        self.leases.begin(Request::controller_of(held.request.id));
        held.output()
    }

    /// The delay and the error of a request. Faults affect only requests for blocks of commands,
    /// not for their metadata.
    fn faults_of(&mut self, request: &Request) -> (Option<Duration>, Option<Error>) {
        if self.faults.is_empty() || request.command.is_none() {
            return (None, None);
        }
        let (offset, length) = request.operation.range();
        let shift = self.subsystem.block_shift(request.nsid).unwrap_or(0);
        let blocks = (offset >> shift, length >> shift);
        self.faults.of_access(self.now, request.nsid, blocks)
    }

    /// Applies faults to a TLP that a controller sends; `None` if a fault drops it.
    fn with_write_faults(&mut self, controller: u16, mut tlp: Tlp) -> Option<Tlp> {
        let Packet::MemoryWrite(write) = tlp.packet else { return Some(tlp) };
        let controller = self.subsystem.controller(controller);
        if controller.is_io_completion(write.address) {
            return (!self.faults.lose_completion(self.now)).then_some(tlp);
        }
        if tlp.data.len() > LONGEST_ENTRY {
            tlp.poisoned |= self.faults.poison(self.now);
        }
        Some(tlp)
    }

    /// The next change of a record to store. For owners that carry out no other action now.
    pub fn poll_store(&mut self) -> Option<Commit> {
        let commit = self.subsystem.poll_store()?;
        let created = commit.create.as_ref().map(|contents| contents.nsid);
        let deleted = commit.remove.iter().map(|contents| contents.nsid).collect();
        self.storing = Some(Storing { commit: commit.id, created, deleted });
        Some(commit)
    }

    /// Completes a request for contents.
    ///
    /// # Panics
    /// If none is under way for these contents, or a read returns another number of bytes than
    /// requested.
    pub fn complete_block(
        &mut self,
        now: Instant,
        contents: ContentsId,
        id: u64,
        result: Completion,
    ) {
        self.now = now;
        self.leases.end(Request::controller_of(id));
        let current = self.contents.get_mut(&contents.nsid).filter(|one| one.id == contents);
        if current.is_some() && result == Err(Error::ReadOnly) {
            // The media became read-only: every host receives an event, and SMART shows it.
            self.subsystem.set_read_only(now, contents.nsid, true);
        }
        let one = current.or_else(|| self.deleted.iter_mut().find(|one| one.id == contents));
        one.expect("a request for them is under way").under_way -= 1;
        self.subsystem.complete_block(now, id, result);
    }

    /// Handles the result of storing a change. After an error nothing has changed. Returns the
    /// contents that the change created; requests for them follow.
    ///
    /// # Panics
    /// If no change is being stored.
    pub fn complete_store(
        &mut self,
        now: Instant,
        result: Result<(), Error>,
    ) -> Option<ContentsId> {
        let Storing { commit, created, deleted } = self.storing.take().expect("it was polled");
        let mut new = None;
        if result.is_ok() {
            self.deleted.extend(deleted.iter().filter_map(|nsid| self.contents.remove(nsid)));
            if let Some(nsid) = created {
                let contents = Contents::new(nsid, commit);
                new = Some(contents.id);
                self.contents.insert(nsid, contents);
            }
        }
        self.subsystem.complete_store(now, commit, result);
        new
    }
}

impl Held {
    fn output(self) -> DriveOutput {
        let Self { contents, request, error } = self;
        match error {
            None => DriveOutput::Block(contents, request),
            Some(error) => DriveOutput::Fail(contents, request.id, error),
        }
    }
}

/// A controller of a drive, borrowed from [`DriveNode::port`] for a call.
#[derive(Debug)]
pub struct Port<'a> {
    node: &'a mut DriveNode,
    controller: u16,
}

impl Function for Port<'_> {
    fn handle(&mut self, now: Instant, input: Input) {
        self.node.now = now;
        self.node.subsystem.port(self.controller).handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let Self { node, controller } = self;
        node.now = now;
        loop {
            // A fault affects single packets.
            let acts = node.faults.act_on_writes(now);
            let ready = if acts { ready.with_runs(false) } else { ready };
            match node.subsystem.port(*controller).poll(now, ready) {
                Output::Tlp(tlp) if acts => {
                    if let Some(tlp) = node.with_write_faults(*controller, tlp) {
                        return Output::Tlp(tlp);
                    }
                }
                output => return output,
            }
        }
    }

    fn ready(&self) -> Ready {
        self.node.subsystem.controller(self.controller).ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

impl Function for DriveNode {
    fn handle(&mut self, now: Instant, input: Input) {
        self.port(FIRST).handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.port(FIRST).poll(now, ready)
    }

    fn ready(&self) -> Ready {
        self.subsystem.controller(FIRST).ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}
