//! The live world: clock, TCP, vfio-user server, media, guest memory. The only crate with I/O and the only one with unsafe code.
