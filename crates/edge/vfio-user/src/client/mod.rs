//! A vfio-user client: host software drives the function of any server, without a VMM.
//!
//! [`Function`] executes the requests of host software on a server's function: configuration space
//! and registers by message, doorbells in a mapped page if the server has one, DMA in
//! [`HostMemory`] that the server maps. It is as strict as QEMU's client and rings doorbells as
//! SPDK does. Modules from top to bottom: `function`, the view of host software; `bars`, its BAR
//! registers; `device`, the commands; `channel`, the socket.
//!
//! Not implemented: INTx, MSI, REGION_WRITE_MULTI, ioeventfds, migration.

mod bars;
mod channel;
mod device;
mod function;
mod memory;

pub use channel::{Channel, Error, REPLY_LIMIT};
pub use device::Device;
pub use function::{FUNCTION, Function};
pub use memory::HostMemory;

use std::rc::Rc;
use wire::Instant;

/// The caller's clock, for the time limits of replies.
pub type Now = Rc<dyn Fn() -> Instant>;

wire::named! {
    /// How doorbells are rung.
    pub enum Doorbells {
        /// In a mapped page if the server offers one in memory, otherwise by message.
        Auto "auto",
        /// In a mapped page.
        Mapped "mapped",
        /// By message.
        Message "message",
    }
}
