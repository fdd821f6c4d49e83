//! Captures of the tunnel that tshark decodes with `wireshark/farlane.lua`, compared with the
//! analyser's findings in the same bytes: `./test wireshark`. `tests/wireshark/fetch` gets tshark.

mod dumpcap;
mod hostile;
mod plans;
mod preemption;
mod session;
mod sharkd;
mod simulated;
