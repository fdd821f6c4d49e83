//! Follows NVMe controllers by the TLPs that pass: configuration space, registers, queues, rings,
//! effects of admin commands.
//!
//! Three users follow controllers. Each adds its own state.
//!
//! | | push (`node::push`) | analyser (`analysis::commands`) | account of time (`sim::measure`) |
//! | --- | --- | --- | --- |
//! | input | every TLP at the root port, at once | a recording, which may begin late, have gaps and lack payloads | TLPs at the root port and at the drive |
//! | function | only of class 01 08 02, header type 0 and a sized BAR 0 | also of unknown class, presumed size of BARs; MSI-X table | from the host's driver |
//! | configuration | a write counts when it goes down, a read when it is completed | both when they are completed | – |
//! | registers | CC, AQA, ASQ, ACQ, NSSR, own memory; stride from CAP or from doorbells | CC, AQA, ASQ, ACQ, NSSR; stride from CAP, else 0 | doorbells, stride 0 |
//! | admin commands | from host memory at the doorbell, else from the controller's fetch | from the push or the controller's fetch | – |
//! | queues | created and deleted by the completion entry; only entries of the usual sizes | created and deleted by the completion entry; of any size of entry | from the host's driver |
//! | rings | tail, head, slots that doorbells submitted, slots pushed | tail, head, phase, entries fetched and pushed, by doorbell | tails that left the root port and reached the drive |
//! | block sizes | from the whole data of Identify, or from a command alone; Format NVM and Namespace Attachment invalidate them | from the data of Identify; Format NVM invalidates them | – |
//! | reset | removes queues, invalidates pushed bytes | ends commands, counts | from the host's driver |
//!
//! # Modules
//!
//! - `admin`: the effects of admin commands
//! - `config`: a function's configuration space, as far as it is known from requests
//! - `data`: the amount and direction of the data of I/O commands
//! - `entries`: completion queue entries in a controller's writes
//! - `places`: address ranges and their use
//! - `queues`: a controller's queues, by number and by address
//! - `registers`: a controller's registers, as host software wrote them
//! - `ring`: the entries of a queue in host memory

mod admin;
mod config;
mod data;
mod entries;
mod places;
mod queues;
mod registers;
mod ring;

pub use admin::Effect;
pub use config::ConfigShadow;
pub use data::{Amount, io_data};
pub use entries::completion_entries;
pub use places::Places;
pub use queues::{Queue, Queues};
pub use registers::{Registers, touches};
pub use ring::Ring;
