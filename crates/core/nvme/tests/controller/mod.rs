//! Tests of the controller on a testbed, one module per group of commands.

mod access;
mod admin_queues;
mod arbitration;
mod async_events;
mod bad_input;
mod capabilities;
mod compare;
mod controllers;
mod doorbell_buffers;
mod events;
mod features;
mod firmware;
mod format;
mod fused;
mod identify;
mod initiator;
mod interrupts;
mod io;
mod lifecycle;
mod logs;
mod many_queues;
mod metadata;
mod namespaces;
mod parts;
mod persistent_events;
mod protection;
mod records;
mod reservations;
mod restarts;
mod sanitize;
mod security;
mod self_test;
mod sgl;
mod transfer;
mod uncorrectable;

use nvme::{Config, NamespaceConfig, Settings, block};
use testkit::nvme::{
    DATA, Expect, Host, Pair, Testbed, abort, create_commands, delete, entry_sizes, event_request,
    get_log,
};
use wire::nvme::{Command, Completion, Status, StatusCode, feature, opcode};

/// Two namespaces of 4 MiB and 1 MiB, the second with blocks of 4 KiB.
fn config() -> Config {
    let second = NamespaceConfig { block_shift: 12, ..NamespaceConfig::new(256) };
    Config::new("SN0001", vec![NamespaceConfig::new(8192), second])
}

/// The same drive with changed settings.
fn configured(change: impl FnOnce(&mut Settings)) -> Config {
    let mut config = config();
    change(&mut config.settings);
    config
}

fn read(slba: u64, blocks: u32, prp1: u64, prp2: u64) -> Command {
    testkit::nvme::io(opcode::nvm::READ, slba, blocks, [prp1, prp2])
}

fn write(slba: u64, blocks: u32, prp1: u64, prp2: u64) -> Command {
    testkit::nvme::io(opcode::nvm::WRITE, slba, blocks, [prp1, prp2])
}

fn flush(nsid: u32) -> Command {
    Command { opcode: opcode::nvm::FLUSH, nsid, ..Command::default() }
}

fn set_feature(id: u8, value: u32) -> Command {
    Command {
        opcode: opcode::admin::SET_FEATURES,
        cdw10: id.into(),
        cdw11: value,
        ..Command::default()
    }
}

fn get_feature(id: u8, value: u32) -> Command {
    Command { opcode: opcode::admin::GET_FEATURES, ..set_feature(id, value) }
}

/// The address of page `number` of the buffer at `DATA`.
fn page(number: u64) -> u64 {
    DATA + number * 4096
}

/// Bytes that differ by position and by `seed`.
fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ seed).collect()
}
