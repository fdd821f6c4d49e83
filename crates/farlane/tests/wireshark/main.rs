//! Captures of the tunnel, decoded by tshark with `wireshark/farlane.lua` and
//! compared with what the analyser finds in the same bytes: `cargo test --test
//! wireshark`. tshark comes from `tests/wireshark/fetch`.

mod check;
mod dumpcap;
mod hostile;
mod plans;
mod session;
mod sharkd;
mod simulated;
mod tshark;

#[path = "../polled_client/client.rs"]
#[allow(dead_code, reason = "the polled and the hostile client use the rest of it")]
mod client;
#[path = "../polled_client/drive.rs"]
#[allow(dead_code, reason = "the polled and the hostile client use the rest of it")]
mod drive;
#[path = "../guest/folder.rs"]
#[allow(dead_code, reason = "the guest tests use the rest of it")]
mod folder;
#[path = "../guest/node.rs"]
#[allow(dead_code, reason = "the guest tests use the rest of it")]
mod node;
#[path = "../guest/process.rs"]
#[allow(dead_code, reason = "the guest tests use the rest of it")]
mod process;
#[path = "../guest/relay.rs"]
mod relay;
#[path = "../guest/transcript.rs"]
#[allow(dead_code, reason = "the guest tests use the rest of it")]
mod transcript;
