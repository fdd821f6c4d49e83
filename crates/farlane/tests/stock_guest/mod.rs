//! Stock guests with farlane's drives, end to end: `./test guest`.
//!
//! `tests/guest/fetch` gets QEMU, the guest's kernel and its programs. The scripts in
//! `tests/guest/scripts` run in the guest.

mod buffers;
mod capture;
mod cuts;
mod drive;
mod guest;
mod killed;
mod lab;
mod long;
mod lost;
mod multipath;
mod qmp;
mod reference;
mod remote;
mod restarted;
mod script;
mod subsystem;
mod trace;
mod traced;
mod workload;
