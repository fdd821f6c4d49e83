//! Captures of the tunnel, decoded by tshark with `wireshark/farlane.lua` and
//! compared with what the analyser finds in the same bytes: `./test wireshark`.
//! tshark comes from `tests/wireshark/fetch`.

mod dumpcap;
mod hostile;
mod plans;
mod preemption;
mod session;
mod sharkd;
mod simulated;
