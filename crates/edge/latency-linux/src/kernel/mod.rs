//! System calls without a safe wrapper: the only module with unsafe code.

mod bpf;
mod message;
mod scheduling;

pub(crate) use bpf::{Instruction, attach_xdp, load_xdp};
pub(crate) use message::{receive_message, set_option};
pub(crate) use scheduling::{StampConfig, hardware_stamps, set_fifo, set_hardware_stamps};
