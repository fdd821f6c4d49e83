//! What the tests of several crates use: doubles, and clients that share no code with the product.

pub mod controller;
pub mod folder;
pub mod machine;
pub mod nvme;
mod source;
pub mod vfio_user;

pub use folder::Folder;
pub use source::Source;
