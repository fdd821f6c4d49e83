//! The live world: clock, TCP, vfio-user server, media, guest memory. The only
//! crate with I/O and the only one with unsafe code, which is all in
//! [`mapping`].

#![deny(unsafe_code)]

pub mod guest;
#[allow(unsafe_code)]
pub mod mapping;
pub mod vfio_user;
