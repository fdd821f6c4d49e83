//! Commands made from fuzz bytes: mostly valid, sometimes faulty.

use super::DATA;
use crate::Source;
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{Command, RELEASE_LENGTH, ReservationKeys, cns, feature, log_page};

/// A CNS value that no controller supports.
const ABSENT: u8 = 0x44;

/// Address of PRP lists with valid entries.
pub(super) const LISTS: u64 = DATA + 0x20_0000;

/// Address of a controller list that contains CNTLID 1.
pub(super) const CONTROLLER: u64 = LISTS + 0x1_0000;
/// Address of the data structure of a namespace to create.
pub(super) const NAMESPACE: u64 = CONTROLLER + 0x1000;
/// Addresses of the shadow doorbell and EventIdx buffers.
pub(super) const BUFFERS: (u64, u64) = (NAMESPACE + 0x1000, NAMESPACE + 0x2000);
/// Address of metadata.
pub(super) const METADATA: u64 = BUFFERS.1 + 0x1000;

/// Returns an I/O command for one of two namespaces.
pub(super) fn io(input: &mut Source) -> Command {
    const OPCODES: [u8; 16] = [
        nvm::READ,
        nvm::READ,
        nvm::WRITE,
        nvm::WRITE,
        nvm::FLUSH,
        nvm::WRITE_ZEROES,
        nvm::DATASET_MANAGEMENT,
        nvm::COMPARE,
        nvm::VERIFY,
        nvm::COPY,
        nvm::WRITE_UNCORRECTABLE,
        0x7f,
        nvm::RESERVATION_REGISTER,
        nvm::RESERVATION_REPORT,
        nvm::RESERVATION_ACQUIRE,
        nvm::RESERVATION_RELEASE,
    ];
    let slba = match input.byte() {
        0..8 => 2047,
        8..12 => u64::MAX,
        12..16 => 1 << 32,
        at => u64::from(at),
    };
    let blocks = match input.byte() % 4 {
        0 => 1,
        1 => 8,
        2 => u32::from(input.byte()) + 1,
        _ => 257,
    };
    let opcode = input.pick(&OPCODES);
    if matches!(opcode, nvm::RESERVATION_REGISTER..=nvm::RESERVATION_RELEASE) {
        return reservation(input, opcode);
    }
    let deallocate = if opcode == nvm::DATASET_MANAGEMENT { 4 } else { 0 };
    Command {
        opcode,
        fuse: input.byte().saturating_sub(0xfc),
        nsid: nsid(input),
        prp1: prp1(input),
        prp2: prp2(input),
        cdw10: slba as u32,
        cdw11: (slba >> 32) as u32 | deallocate,
        // FUA, PRACT, PRCHK.
        cdw12: (blocks - 1) | input.pick(&[0, 0, 0, 1 << 30, 1 << 29, 0b100 << 26, 0b1111 << 26]),
        mptr: METADATA + u64::from(input.byte()) * 8,
        cdw14: slba as u32,
        ..Command::default()
    }
}

/// Returns a reservation command. Most keys are zero, as most of host memory.
fn reservation(input: &mut Source, opcode: u8) -> Command {
    let action = u32::from(input.byte() % 4) | u32::from(input.byte() % 8) << 8;
    // IEKEY, CPTPL.
    let flags = input.pick(&[0, 0, 0, 1 << 3, 1 << 30, 2 << 30, 3 << 30]);
    let cdw10 = if opcode == nvm::RESERVATION_REPORT { 31 } else { action | flags };
    let (cdw11, nsid) = (u32::from(input.byte() < 200), nsid(input));
    let (prp1, prp2) = (prp1(input), prp2(input));
    Command { opcode, nsid, prp1, prp2, cdw10, cdw11, ..Command::default() }
}

/// Returns a fused Compare and Write, most often for the same blocks.
pub(super) fn pair(input: &mut Source) -> [Command; 2] {
    let compare = Command { opcode: nvm::COMPARE, fuse: 1, ..io(input) };
    let mut write = Command { opcode: nvm::WRITE, fuse: 2, prp1: prp1(input), ..compare };
    write.cdw10 ^= u32::from(input.byte() < 8);
    [compare, write]
}

fn nsid(input: &mut Source) -> u32 {
    match input.byte() {
        0..4 => 0,
        4..8 => 3,
        8..12 => u32::MAX,
        12..80 => 2,
        _ => 1,
    }
}

fn prp1(input: &mut Source) -> u64 {
    match input.byte() {
        0xff => 2,
        0xfe => 0x5000_0000,
        page => DATA + u64::from(page) * 4096 + input.pick(&[0u64, 0, 0x200, 0xffc]),
    }
}

fn prp2(input: &mut Source) -> u64 {
    match input.byte() {
        0xf8..0xfe => 0,
        0xff => 2,
        0xfe => 0x5000_0000,
        at if at < 64 => DATA + u64::from(at) * 4096,
        at => LISTS + u64::from(at % 4) * 4096 + input.pick(&[0u64, 0, 8, 0xff8, 0xf80]),
    }
}

/// Returns an admin command that neither creates nor deletes queues.
pub(super) fn admin(input: &mut Source) -> Command {
    let opcode = input.pick(&[
        admin::IDENTIFY,
        admin::GET_LOG_PAGE,
        admin::SET_FEATURES,
        admin::GET_FEATURES,
        admin::ABORT,
        admin::ASYNC_EVENT_REQUEST,
        admin::NAMESPACE_MANAGEMENT,
        admin::NAMESPACE_ATTACHMENT,
        admin::SANITIZE,
        admin::DEVICE_SELF_TEST,
        admin::FIRMWARE_COMMIT,
        admin::FIRMWARE_DOWNLOAD,
        admin::KEEP_ALIVE,
        admin::SECURITY_RECEIVE,
        admin::FORMAT,
    ]);
    let cdw10 = match opcode {
        admin::IDENTIFY => u32::from(input.pick(&[
            cns::NAMESPACE,
            cns::CONTROLLER,
            cns::ACTIVE_NAMESPACES,
            cns::DESCRIPTORS,
            cns::CONTROLLERS,
            ABSENT,
        ])),
        admin::GET_LOG_PAGE => {
            const PAGES: [u8; 9] = [
                log_page::ERROR,
                log_page::SMART,
                log_page::FIRMWARE,
                log_page::EFFECTS,
                log_page::SELF_TEST,
                log_page::TELEMETRY_HOST,
                log_page::PERSISTENT_EVENT,
                0x44,
                log_page::RESERVATION,
            ];
            let (page, length) = (input.pick(&PAGES), u32::from(input.u16() % 2048));
            // In this log page, LSP selects an action.
            let action = if page == log_page::PERSISTENT_EVENT { input.byte() % 4 } else { 0 };
            u32::from(page) | u32::from(action) << 8 | length << 16
        }
        admin::SET_FEATURES | admin::GET_FEATURES => {
            let id = input.byte() % (feature::HOST_BEHAVIOR + 5);
            // Above the identifiers from 0 on: 81h to 83h.
            let id = if id > feature::HOST_BEHAVIOR + 1 {
                id - (feature::HOST_BEHAVIOR + 2) + feature::HOST_IDENTIFIER
            } else {
                id
            };
            u32::from(id) | input.pick(&[0u32, 0, 1, 3]) << 8 | input.pick(&[0u32, 0, 0, 1]) << 31
        }
        admin::FIRMWARE_DOWNLOAD => u32::from(input.u16() % 2048),
        // LBAF, MSET, and PI up to type 3.
        admin::FORMAT => u32::from(input.byte() % 4) | u32::from(input.byte() % 8) << 4,
        _ => u32::from(input.byte() % 4) | u32::from(input.byte()) << 16,
    };
    let managed = matches!(opcode, admin::NAMESPACE_MANAGEMENT | admin::NAMESPACE_ATTACHMENT);
    if managed && input.byte() < 200 {
        // The list of controllers and the namespace to create have fixed addresses.
        let prp1 = if opcode == admin::NAMESPACE_ATTACHMENT { CONTROLLER } else { NAMESPACE };
        let (nsid, cdw10) = (u32::from(input.byte() % 5), cdw10 & 1);
        return Command { opcode, nsid, prp1, cdw10, ..Command::default() };
    }
    Command {
        opcode,
        nsid: input.pick(&[0, 1, 2, 3, u32::MAX]),
        prp1: prp1(input),
        prp2: prp2(input),
        cdw10,
        cdw11: feature_value(input),
        ..Command::default()
    }
}

fn feature_value(input: &mut Source) -> u32 {
    match input.byte() % 4 {
        0 => 0,
        1 => u32::from(input.byte()),
        2 => u32::from(input.u16()),
        _ => input.u32(),
    }
}

/// Returns whether a command for queue `queue` transfers data beyond PRP entry 1 although PRP entry
/// 2 is not valid.
pub(super) fn lacks_prp2(queue: u16, command: &Command) -> bool {
    let length = match (queue, command.opcode) {
        (0, admin::IDENTIFY) => 4096,
        (0, admin::NAMESPACE_ATTACHMENT) => 4096,
        (0, admin::NAMESPACE_MANAGEMENT) if command.cdw10 & 15 == 0 => 4096,
        // The release of persistent events transfers no data.
        (0, admin::GET_LOG_PAGE) if command.cdw10 & 0xfff == 0x20d => 0,
        (0, admin::GET_LOG_PAGE) => ((command.cdw10 >> 16) as usize + 1) * 4,
        (0, admin::SET_FEATURES) => feature_length(command),
        // SEL 3, capabilities, transfers no data.
        (0, admin::GET_FEATURES) if command.cdw10 >> 8 & 7 != 3 => feature_length(command),
        (0, admin::FIRMWARE_DOWNLOAD) => (command.cdw10 as usize + 1) * 4,
        (0, admin::SECURITY_RECEIVE) => command.cdw11 as usize,
        (0, _) => 0,
        (_, nvm::READ | nvm::WRITE | nvm::COMPARE) => {
            // Assumes the smallest block size, because a host may have formatted the namespace.
            (command.blocks() as usize) << 9
        }
        (_, nvm::COPY) => ((command.cdw12 & 0xff) as usize + 1) * 32,
        (_, nvm::RESERVATION_REGISTER | nvm::RESERVATION_ACQUIRE) => ReservationKeys::LENGTH,
        (_, nvm::RESERVATION_RELEASE) => RELEASE_LENGTH,
        (_, nvm::RESERVATION_REPORT) => (command.cdw10 as usize + 1) * 4,
        (_, nvm::DATASET_MANAGEMENT) => ((command.cdw10 & 0xff) as usize + 1) * 16,
        _ => 0,
    };
    command.prp2 == 0 && (command.prp1 % 4096) as usize + length > 4096
}

/// Returns the number of data bytes of the feature that the command sets or gets.
fn feature_length(command: &Command) -> usize {
    match command.cdw10 as u8 {
        feature::TIMESTAMP => feature::TIMESTAMP_LENGTH,
        feature::HOST_BEHAVIOR => feature::HOST_BEHAVIOR_LENGTH,
        feature::HOST_IDENTIFIER => feature::HOST_IDENTIFIER_LENGTH[(command.cdw11 & 1) as usize],
        _ => 0,
    }
}

/// Returns whether the command requests an Identify structure that does not exist. The controller
/// refuses the command without an entry in the error log.
pub(super) fn is_probe(queue: u16, command: &Command) -> bool {
    queue == 0 && command.opcode == admin::IDENTIFY && command.cdw10 as u8 == ABSENT
}

/// Returns a command of arbitrary bytes.
pub(super) fn anything(input: &mut Source) -> Command {
    let mut entry = [0; 64];
    entry.fill_with(|| input.byte());
    Command::decode(&entry)
}
