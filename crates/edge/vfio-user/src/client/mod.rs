//! A vfio-user client: host software drives the function of any server, without a VMM.
//!
//! [`Function`] carries the requests of host software out on a server's function: configuration
//! space and registers by message, doorbells in a page that both map if the server has one, DMA in
//! [`HostMemory`] that the server maps. It is as strict as QEMU's client and rings doorbells as
//! SPDK's. Files in the order of data: `function` is what software sees, `bars` its BAR
//! registers, `device` the commands, `channel` the socket.
//!
//! Not here: INTx, MSI, REGION_WRITE_MULTI, ioeventfds, migration.

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

/// The clock of the caller: replies are late by it.
pub type Now = Rc<dyn Fn() -> Instant>;

wire::named! {
    /// How doorbells are rung.
    pub enum Doorbells {
        /// In a mapped page if the server offers one in memory, else by message.
        Auto "auto",
        /// In a mapped page.
        Mapped "mapped",
        /// By message.
        Message "message",
    }
}
