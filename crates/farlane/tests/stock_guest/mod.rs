//! Stock guests on a farlane drive, end to end: `./test guest`.
//!
//! QEMU, the guest's kernel and its programs come from `tests/guest/fetch`; what
//! runs in the guest is in `tests/guest/scripts`.

mod buffers;
mod capture;
mod drive;
mod guest;
mod lab;
mod long;
mod lost;
mod qmp;
mod reference;
mod remote;
mod restarted;
mod script;
mod trace;
mod traced;
mod workload;
