//! Code that the tests of several crates share: test doubles, and clients that share no code with
//! the product.
//!
//! # Modules
//!
//! - [`controller`]: a model of an NVMe controller that shares no code with `nvme`
//! - [`nvme`]: a host and media for tests of the controller
//! - [`machine`]: a host, switch, tunnel and drive in virtual time
//! - [`vfio_user`]: a blocking vfio-user client, and a server for tests
//! - [`folder`]: temporary directories
//! - `source`: numbers made from fuzz bytes

pub mod controller;
pub mod folder;
pub mod machine;
pub mod nvme;
mod source;
pub mod vfio_user;

pub use folder::Folder;
pub use source::Source;
