//! Stock guests on a farlane drive, end to end: `cargo test --test guest`.
//!
//! QEMU, the guest's kernel and its programs come from `tests/guest/fetch`; what
//! runs in the guest is in `tests/guest/scripts`.

mod cache;
mod capture;
mod folder;
mod guest;
mod long;
mod lost;
mod node;
mod process;
mod qmp;
mod reference;
mod relay;
mod remote;
mod script;
mod trace;
mod traced;
mod transcript;
mod workload;

#[path = "../wireshark/check.rs"]
#[allow(dead_code, reason = "the Wireshark tests use the rest of it")]
mod check;
#[path = "../hostile_client/huge.rs"]
#[allow(dead_code, reason = "the hostile client uses the rest of it")]
mod huge;
#[path = "../wireshark/tshark.rs"]
#[allow(dead_code, reason = "the Wireshark tests use the rest of it")]
mod tshark;
