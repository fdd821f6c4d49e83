//! Functions below a port of a live node, with their I/O.

mod controller;
mod drive;
mod folder;
mod foreign;
mod made;
mod parts;
mod switch;

pub use controller::NvmeDrive;
pub use folder::OpenDrive;
pub use foreign::ForeignDevice;
pub use made::{QUEUES, drive_settings};
pub use parts::DrivePart;
pub use switch::Switch;

use crate::poller::{Activity, Poller};
use crate::status::{LinkStatus, Status, counts};
use crate::trace::Tracer;
use ::switch::congestion::Rate;
use bytes::Bytes;
use node::drive::FIRST;
use pcie::Function;
use pcie::dma_test::DmaTest;
use pcie::endpoint::Unsent;
use std::io;
use wire::Instant;

/// A message of an attached function for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A change that harms nothing, such as a link that is up again.
    Info(String),
    /// A fault, or a lost link.
    Warning(String),
}

/// A function and its I/O; by default it has none.
pub trait Attached: Function {
    /// Handles the descriptors that `poller` reports ready. Returns whether anything happened, and
    /// when to call again at the latest.
    ///
    /// # Errors
    /// Only errors that end the node.
    fn service(&mut self, _now: Instant, _poller: &Poller) -> io::Result<Activity> {
        Ok(Activity::default())
    }

    /// Registers the function's descriptors.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    fn watch(&self, _poller: &Poller) -> io::Result<()> {
        Ok(())
    }

    /// CNTLID of the controller that the function is.
    fn controller(&self) -> u16 {
        FIRST
    }

    /// Notes that a host attaches; `name`: as which it has proved its identity.
    fn bind_host(&mut self, _name: Option<&str>) {}

    /// Notes whether the link of the attached host has several connections.
    fn bind_link(&mut self, _several: bool) {}

    /// Sets until when requests of the host may be carried out ([`Tunnel::lease`]).
    ///
    /// [`Tunnel::lease`]: switch::tunnel::Tunnel::lease
    fn set_lease(&mut self, _until: Instant) {}

    /// Notes that the node starts to serve: its start can no longer fail.
    fn begin(&mut self) {}

    /// Stops taking new work; returns whether all work is done.
    fn drain(&mut self) -> bool {
        true
    }

    /// The next message for the user; each is returned once.
    fn take_notice(&mut self) -> Option<Notice> {
        None
    }

    /// Adds the state of the function to `link`, the uplink of the node, and to `node`.
    fn add_status(&self, _now: Instant, _link: &mut LinkStatus, _node: &mut Status) {}

    /// Changes the limit of what the function itself sends over links.
    fn set_rate_limit(&mut self, _rate: Option<Rate>) {}

    /// The state of the function, with which another process goes on; empty if it cannot. `unsent` is
    /// behind the function.
    fn save(&mut self, _unsent: &Unsent) -> Bytes {
        Bytes::new()
    }

    /// Whether an effect waits for a [`save`](Self::save).
    fn waits_for_save(&self) -> bool {
        false
    }

    /// Shuts the function down: sends Goodbye, makes data durable.
    ///
    /// # Errors
    /// If data could not be made durable.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The tracer, with which the node records too.
    fn tracer(&self) -> Tracer {
        Tracer::off()
    }
}

/// The test function has no I/O.
impl Attached for DmaTest {
    fn add_status(&self, _now: Instant, link: &mut LinkStatus, _node: &mut Status) {
        link.endpoint_errors = counts(self.endpoint().errors().list());
    }
}
