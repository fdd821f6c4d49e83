//! A controller of a drive, as the function of a node.

use super::drive::Drive;
use super::{Attached, Notice};
use crate::poller::{Activity, Poller};
use crate::status::{DriveStatus, LinkStatus, Status, commands, counts};
use crate::trace::Tracer;
use bytes::Bytes;
use node::drive::FIRST;
use node::faults::Faults;
use nvme::{NamespaceAccess, Subsystem};
use pcie::endpoint::Unsent;
use pcie::{Function, Input, Output, Ports, Ready};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use storage::drive::Committer;
use storage::media::Media;
use wire::Instant;

/// A drive with the media of its namespaces, seen by one of its controllers. The nodes of all
/// controllers run in one thread ([`serve`](crate::device::serve)). The node of the first controller
/// watches the media.
pub struct NvmeDrive {
    drive: Rc<RefCell<Drive>>,
    controller: u16,
}

impl NvmeDrive {
    /// The first controller of a drive with a label; `media` by NSID.
    pub fn new(subsystem: Subsystem, media: BTreeMap<u32, Box<dyn Media>>) -> Self {
        Self::of(Drive::new(subsystem, media))
    }

    /// The first controller of a drive.
    pub(super) fn of(drive: Drive) -> Self {
        Self { drive: Rc::new(RefCell::new(drive)), controller: FIRST }
    }

    /// The drive, seen by each of its controllers.
    pub fn controllers(&self) -> impl Iterator<Item = Self> {
        let last = self.drive.borrow().node.subsystem().controllers();
        (FIRST..=last).map(|controller| Self { drive: self.drive.clone(), controller })
    }

    /// Adds a store for the records.
    #[must_use]
    pub fn kept_by(self, store: Committer) -> Self {
        self.drive.borrow_mut().keep_by(store);
        self
    }

    /// Adds faults of the drive.
    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        self.drive.borrow_mut().node.set_faults(faults);
        self
    }

    /// Sets how hosts can access the namespaces, by controller.
    #[must_use]
    pub fn with_access(self, access: &[NamespaceAccess]) -> Self {
        for (controller, access) in (FIRST..).zip(access) {
            let mut drive = self.drive.borrow_mut();
            drive.node.subsystem_mut().set_access(Instant::ZERO, controller, *access);
        }
        self
    }

    /// Records the drive's events with `tracer`.
    #[must_use]
    pub fn traced(self, tracer: Tracer) -> Self {
        self.drive.borrow_mut().trace(tracer);
        self
    }

    fn is_first(&self) -> bool {
        self.controller == FIRST
    }
}

impl Function for NvmeDrive {
    fn handle(&mut self, now: Instant, input: Input) {
        self.drive.borrow_mut().handle(now, self.controller, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.drive.borrow_mut().poll(now, self.controller, ready)
    }

    fn ready(&self) -> Ready {
        self.drive.borrow().node.subsystem().controller(self.controller).ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

impl Attached for NvmeDrive {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        let poller = self.is_first().then_some(poller);
        let moved = self.drive.borrow_mut().service(now, poller)?;
        Ok(Activity { moved, timer: None })
    }

    fn watch(&self, poller: &Poller) -> io::Result<()> {
        if self.is_first() { self.drive.borrow().watch(poller) } else { Ok(()) }
    }

    fn controller(&self) -> u16 {
        self.controller
    }

    fn bind_host(&mut self, name: Option<&str>) {
        self.drive.borrow_mut().bind_host(self.controller, name);
    }

    fn bind_link(&mut self, several: bool) {
        self.drive.borrow_mut().node.subsystem_mut().port(self.controller).bind_link(several);
    }

    fn set_lease(&mut self, until: Instant) {
        self.drive.borrow_mut().set_lease(self.controller, until);
    }

    fn begin(&mut self) {
        if self.is_first() {
            self.drive.borrow_mut().begin();
        }
    }

    fn drain(&mut self) -> bool {
        self.drive.borrow_mut().drain()
    }

    fn take_notice(&mut self) -> Option<Notice> {
        let notice = self.is_first().then(|| self.drive.borrow_mut().take_notice());
        notice.flatten().map(Notice::Warning)
    }

    fn add_status(&self, _now: Instant, link: &mut LinkStatus, node: &mut Status) {
        let drive = self.drive.borrow();
        let subsystem = drive.node.subsystem();
        let controller = subsystem.controller(self.controller);
        link.commands = commands(controller.times());
        link.endpoint_errors = counts(controller.errors().list());
        if self.is_first() {
            node.drive = Some(DriveStatus::new(subsystem));
        }
    }

    fn save(&mut self, unsent: &Unsent) -> Bytes {
        self.drive.borrow_mut().node.subsystem_mut().save(self.controller, unsent)
    }

    fn waits_for_save(&self) -> bool {
        self.drive.borrow().node.subsystem().waits_for_save(self.controller)
    }

    fn close(&mut self) -> io::Result<()> {
        if self.is_first() { self.drive.borrow_mut().close() } else { Ok(()) }
    }

    fn tracer(&self) -> Tracer {
        self.drive.borrow().tracer()
    }
}
