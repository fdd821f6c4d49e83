//! Code that several groups of tests share: processes, nodes, clients, captures.

pub mod check;
pub mod client;
pub mod cutter;
pub mod drive;
pub mod folder;
pub mod huge;
#[path = "../../../worlds/live/tests/dma/isolated.rs"]
pub mod isolated;
pub mod node;
pub mod parquet;
pub mod process;
pub mod program;
pub mod relay;
pub mod restarts;
pub mod schema;
pub mod transcript;
pub mod tshark;

pub use drive::{ADDRESS, BLOCK, Drive, WRITE, pattern, work};
pub use node::{ANY, HostNode, Node};
pub use process::{Process, SetOnDrop, cannot, wait_until};
pub use relay::{Recording, Relay};
pub use transcript::Transcript;
pub use tshark::Tshark;
