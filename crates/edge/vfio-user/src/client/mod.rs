//! A vfio-user client: host software uses the function of any server, without a VMM.
//!
//! [`Function`] executes the requests of host software on a server's function. Configuration space
//! and registers are accessed by message, doorbells in a mapped page if the server offers one. The
//! server maps [`HostMemory`] for DMA. The client is as strict as QEMU's and rings doorbells as
//! SPDK does. Modules from top to bottom: `function`, the function as host software sees it;
//! `bars`, the BAR registers; `device`, the commands; `channel`, the socket.
//!
//! Not implemented: INTx, MSI, REGION_WRITE_MULTI, ioeventfds, migration.

mod bars;
mod channel;
mod device;
mod function;
mod memory;

pub use channel::{Channel, DmaRequest, Error, REPLY_LIMIT};
pub use device::Device;
pub use function::{FUNCTION, Function};
pub use memory::HostMemory;

use std::rc::Rc;
use wire::Instant;

/// The clock of the caller, which measures the time limits of replies.
pub type Now = Rc<dyn Fn() -> Instant>;

wire::named! {
    /// How the client rings doorbells.
    pub enum Doorbells {
        /// In a mapped page if the server offers one in memory, otherwise by message.
        Auto "auto",
        /// In a mapped page.
        Mapped "mapped",
        /// By message.
        Message "message",
    }
}
