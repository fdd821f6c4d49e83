//! Invalid commands: the status, and the error log entry with the place of the fault (NVMe 1.4,
//! figure 194).

use super::*;
use testkit::nvme::QUEUES;
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::register::Doorbell;
use wire::nvme::{AsyncEvent, ErrorLogEntry, SglDescriptor, SmartLog, log_page};

use StatusCode as Code;

/// The parameter of a fault that is not in one field.
const NOWHERE: u16 = 0xffff;

/// Byte `byte`, bit `bit` of the submission queue entry.
const fn at(byte: u16, bit: u16) -> u16 {
    byte | bit << 8
}

/// Bit `bit` of command dword `dword`.
const fn cdw(dword: u16, bit: u16) -> u16 {
    at(dword * 4 + bit / 8, bit % 8)
}

/// A drive with records, two of at most 4 namespaces, and I/O queue pair 1.
fn host() -> Host {
    let mut state = config().state();
    state.drive.max_namespaces = 4;
    let testbed = Testbed::from_records(&config(), state.encode());
    Host::started(testbed)
}

/// An admin command without data.
fn with(opcode: u8, nsid: u32, cdw10: u32, cdw11: u32) -> Command {
    Command { opcode, nsid, prp1: DATA, cdw10, cdw11, ..Command::default() }
}

type Case = (Command, Code, u16);

fn queue_commands() -> Vec<Case> {
    let [cq, sq] = create_commands(&Pair::new(2, 8));
    let other = |command: Command, cdw10, cdw11| Command { cdw10, cdw11, ..command };
    let (id, size) = (Code::INVALID_QUEUE_ID, Code::INVALID_QUEUE_SIZE);
    let mut cases = vec![
        (other(cq, 2 | 7 << 16, 2), Code::INVALID_FIELD, cdw(11, 0)),
        (other(cq, 2 | 7 << 16, 3 | 65 << 16), Code::INVALID_INTERRUPT_VECTOR, cdw(11, 16)),
        (other(cq, 1 | 7 << 16, 3), id, cdw(10, 0)),
        (other(sq, 2 | 7 << 16, 1 << 16), Code::INVALID_FIELD, cdw(11, 0)),
        (other(sq, 2 | 7 << 16, 1), id, cdw(11, 16)),
        (other(sq, 2 | 7 << 16, 1 | 65 << 16), id, cdw(11, 16)),
        (other(sq, 2 | 7 << 16, 1 | 3 << 16), Code::COMPLETION_QUEUE_INVALID, cdw(11, 16)),
        (other(sq, 1 | 7 << 16, 1 | 1 << 16), id, cdw(10, 0)),
        (delete(admin::DELETE_CQ, 1), Code::INVALID_QUEUE_DELETION, cdw(10, 0)),
    ];
    for command in [cq, other(sq, sq.cdw10, 1 | 1 << 16)] {
        let sized = |size: u32| other(command, 2 | size << 16, command.cdw11);
        cases.extend([
            (other(command, 7 << 16, command.cdw11), id, cdw(10, 0)),
            (other(command, 65 | 7 << 16, command.cdw11), id, cdw(10, 0)),
            (sized(0), size, cdw(10, 16)),
            (sized(4096), size, cdw(10, 16)),
            (Command { prp1: QUEUES + 0x800, ..command }, Code::INVALID_PRP_OFFSET, at(24, 0)),
        ]);
    }
    for opcode in [admin::DELETE_SQ, admin::DELETE_CQ] {
        cases.extend([0, 2, 65, 0xffff].map(|queue| (delete(opcode, queue), id, cdw(10, 0))));
    }
    cases
}

fn admin_commands() -> Vec<Case> {
    let (field, namespace) = (Code::INVALID_FIELD, Code::INVALID_NAMESPACE);
    let log = |page: u8, dwords: u32| {
        with(admin::GET_LOG_PAGE, u32::MAX, u32::from(page) | (dwords - 1) << 16, 0)
    };
    let set = |id: u8, value| with(admin::SET_FEATURES, 0, id.into(), value);
    let mut cases = vec![
        (Command { fuse: 1, ..set(feature::ARBITRATION, 0) }, field, at(1, 0)),
        (Command { psdt: 1, ..set(feature::ARBITRATION, 0) }, field, at(1, 6)),
        // Log pages: invalid identifier, length, offset and namespace.
        (log(0x7f, 4), Code::INVALID_LOG_PAGE, cdw(10, 0)),
        (log(log_page::ERROR, 0x8001), field, cdw(10, 16)),
        (Command { cdw11: 1, ..log(log_page::ERROR, 4) }, field, cdw(10, 16)),
        (Command { cdw12: 2, ..log(log_page::ERROR, 4) }, field, cdw(12, 0)),
        (Command { cdw12: 516, ..log(log_page::SMART, 4) }, field, cdw(12, 0)),
        (Command { cdw13: 1, ..log(log_page::SMART, 4) }, field, cdw(12, 0)),
        (Command { nsid: 1, ..log(log_page::SMART, 4) }, field, at(4, 0)),
        (log(log_page::TELEMETRY_HOST, 4), field, cdw(10, 16)),
        // Identify.
        (with(admin::IDENTIFY, 0, 0, 0), namespace, at(4, 0)),
        (with(admin::IDENTIFY, 5, 0, 0), namespace, at(4, 0)),
        (with(admin::IDENTIFY, 3, 3, 0), field, at(4, 0)),
        (with(admin::IDENTIFY, 0xffff_fffe, 2, 0), namespace, at(4, 0)),
        (
            Command { prp1: DATA + 2, ..with(admin::IDENTIFY, 0, 1, 0) },
            Code::INVALID_PRP_OFFSET,
            at(24, 0),
        ),
        (Command { prp1: DATA + 4, ..with(admin::IDENTIFY, 0, 1, 0) }, field, at(32, 0)),
        (
            Command { prp1: DATA + 4, prp2: DATA + 4, ..with(admin::IDENTIFY, 0, 1, 0) },
            Code::INVALID_PRP_OFFSET,
            at(32, 0),
        ),
        // Features.
        (set(0x0d, 1), field, cdw(10, 0)),
        (with(admin::GET_FEATURES, 0, 0x0d, 0), field, cdw(10, 0)),
        (with(admin::GET_FEATURES, 0, 1 | 4 << 8, 0), field, cdw(10, 8)),
        (with(admin::SET_FEATURES, 0, 1 << 31 | 7, 0), Code::FEATURE_NOT_SAVEABLE, cdw(10, 31)),
        (with(admin::SET_FEATURES, 1, 1, 0), Code::FEATURE_NOT_NAMESPACE_SPECIFIC, at(4, 0)),
        (set(feature::POWER_MANAGEMENT, 3), field, cdw(11, 0)),
        (set(feature::TEMPERATURE_THRESHOLD, 1 << 16), field, cdw(11, 16)),
        (set(feature::TEMPERATURE_THRESHOLD, 2 << 20), field, cdw(11, 20)),
        (set(feature::NUMBER_OF_QUEUES, 0xffff), Code::COMMAND_SEQUENCE_ERROR, NOWHERE),
        (set(feature::INTERRUPT_VECTOR, 65), field, cdw(11, 0)),
        (with(admin::SET_FEATURES, 1, feature::WRITE_PROTECTION.into(), 2), field, cdw(11, 0)),
        (with(admin::SET_FEATURES, 3, feature::WRITE_PROTECTION.into(), 1), field, at(4, 0)),
        // Namespaces.
        (with(admin::NAMESPACE_MANAGEMENT, 0, 2, 0), field, cdw(10, 0)),
        (with(admin::NAMESPACE_MANAGEMENT, 0, 0, 1 << 24), field, cdw(11, 24)),
        (with(admin::NAMESPACE_MANAGEMENT, 3, 1, 0), field, at(4, 0)),
        (with(admin::NAMESPACE_MANAGEMENT, 5, 1, 0), namespace, at(4, 0)),
        (with(admin::NAMESPACE_ATTACHMENT, 1, 2, 0), field, cdw(10, 0)),
        (with(admin::NAMESPACE_ATTACHMENT, 3, 0, 0), field, at(4, 0)),
        (with(admin::NAMESPACE_ATTACHMENT, 5, 0, 0), namespace, at(4, 0)),
        (with(admin::FORMAT, 1, 4, 0), Code::INVALID_FORMAT, cdw(10, 0)),
        // Protection without metadata, and protection of a reserved type.
        (with(admin::FORMAT, 1, 1 << 5, 0), Code::INVALID_FORMAT, cdw(10, 5)),
        (with(admin::FORMAT, 1, 2 | 4 << 5, 0), Code::INVALID_FORMAT, cdw(10, 5)),
        (with(admin::FORMAT, 1, 2 << 9, 0), field, cdw(10, 9)),
        (with(admin::FORMAT, 3, 0, 0), field, at(4, 0)),
        // Firmware commands.
        (with(admin::FIRMWARE_COMMIT, 0, 4 << 3, 0), field, cdw(10, 3)),
        (with(admin::FIRMWARE_COMMIT, 0, 1 | 1 << 3, 0), Code::INVALID_FIRMWARE_SLOT, cdw(10, 0)),
        (with(admin::FIRMWARE_COMMIT, 0, 2 | 1 << 3, 0), Code::INVALID_FIRMWARE_IMAGE, NOWHERE),
        (with(admin::FIRMWARE_DOWNLOAD, 0, 0x8000, 0), field, cdw(10, 0)),
        (with(admin::FIRMWARE_DOWNLOAD, 0, 0, 1 << 18), field, cdw(11, 0)),
        (with(admin::DEVICE_SELF_TEST, 0, 3, 0), field, cdw(10, 0)),
        (with(admin::DEVICE_SELF_TEST, 5, 1, 0), namespace, at(4, 0)),
        (with(admin::SECURITY_RECEIVE, 0, 2 << 8, 4), field, cdw(10, 8)),
        (with(admin::SECURITY_RECEIVE, 0, 0, 1 << 20), field, cdw(11, 0)),
        (with(admin::SECURITY_SEND, 0, 0, 0), field, cdw(10, 24)),
    ];
    // SANACT: reserved values, and cryptographic erase (4).
    cases.extend(
        [0, 4, 5, 6, 7].map(|action| (with(admin::SANITIZE, 0, action, 0), field, cdw(10, 0))),
    );
    let unknown = [0x03, 0x19, 0x1c, 0x7c, 0x86, 0xc0, 0xff];
    cases.extend(unknown.map(|opcode| (with(opcode, 0, 0, 0), Code::INVALID_OPCODE, at(0, 0))));
    cases
}

fn io_commands() -> Vec<Case> {
    let (field, range) = (Code::INVALID_FIELD, Code::LBA_OUT_OF_RANGE);
    let of_blocks = [
        nvm::WRITE,
        nvm::READ,
        nvm::WRITE_UNCORRECTABLE,
        nvm::COMPARE,
        nvm::WRITE_ZEROES,
        nvm::VERIFY,
    ];
    let mut cases = Vec::new();
    for opcode in of_blocks {
        let in_range = |slba, blocks| Command { opcode, ..read(slba, blocks, DATA, DATA + 4096) };
        for (slba, blocks) in [(8192, 1), (8191, 2), (u64::MAX, 1), (1 << 63, 8)] {
            cases.push((in_range(slba, blocks), range, cdw(10, 0)));
        }
    }
    for opcode in of_blocks.into_iter().chain([nvm::FLUSH, nvm::DATASET_MANAGEMENT, nvm::COPY]) {
        let in_namespace = |nsid| Command { opcode, nsid, ..read(0, 1, DATA, 0) };
        cases.push((in_namespace(3), field, at(4, 0)));
        for nsid in [0, 5, 0xffff_fffe] {
            cases.push((in_namespace(nsid), Code::INVALID_NAMESPACE, at(4, 0)));
        }
        cases.push((Command { psdt: 3, ..in_namespace(1) }, field, at(1, 6)));
        let fuse = Command { fuse: 3, ..in_namespace(1) };
        cases.push((fuse, field, at(1, 0)));
        if opcode != nvm::FLUSH {
            cases.push((in_namespace(u32::MAX), Code::INVALID_NAMESPACE, at(4, 0)));
        }
    }
    for opcode in [nvm::WRITE, nvm::READ, nvm::COMPARE] {
        let with_prps = |blocks, prp1, prp2| Command { opcode, ..read(0, blocks, prp1, prp2) };
        let offset = Code::INVALID_PRP_OFFSET;
        // MDTS is 128 KiB.
        cases.push((with_prps(257, DATA, DATA), field, cdw(12, 0)));
        for bytes in [1, 2, 3] {
            cases.push((with_prps(1, DATA + bytes, 0), offset, at(24, 0)));
        }
        cases.push((with_prps(16, DATA, 0), field, at(32, 0)));
        cases.push((with_prps(8, DATA + 4, 0), field, at(32, 0)));
        cases.push((with_prps(16, DATA, DATA + 0x1004), offset, at(32, 0)));
        cases.push((with_prps(24, DATA, DATA + 0x1004), offset, at(32, 0)));
        // Reserved descriptor types, and a data block that is not aligned to double words.
        let sgl = |kind, address, length| SglDescriptor { address, length, subtype: 0, kind };
        for (descriptor, code) in [
            (sgl(4, DATA, 512), Code::SGL_TYPE_INVALID),
            (sgl(15, DATA, 512), Code::SGL_TYPE_INVALID),
            (sgl(0, DATA + 1, 512), Code::SGL_GRANULARITY_INVALID),
            (sgl(0, DATA, 510), Code::SGL_GRANULARITY_INVALID),
            (sgl(0, DATA, 508), Code::DATA_SGL_LENGTH_INVALID),
            (sgl(3, DATA, 17), Code::INVALID_SGL_SEGMENT),
        ] {
            cases.push((with_prps(1, 0, 0).with_sgl1(descriptor), code, at(24, 0)));
        }
    }
    let copy = Command { opcode: nvm::COPY, ..read(0, 1, DATA, 0) };
    cases.push((Command { cdw12: 1 << 8, ..copy }, field, cdw(12, 8)));
    cases.push((Command { cdw12: 128, ..copy }, Code::COMMAND_SIZE_LIMIT_EXCEEDED, cdw(12, 0)));
    let unknown = [0x03, 0x0a, 0x0f, 0x12, 0x80, 0xff];
    cases.extend(unknown.map(|opcode| (with(opcode, 1, 0, 0), Code::INVALID_OPCODE, at(0, 0))));
    cases
}

/// The number of error log entries so far.
fn count(host: &mut Host) -> u128 {
    host.admin(logs::command(log_page::SMART, 512, 0)).expect_success();
    SmartLog::decode(&host.testbed.load(DATA, 512).unwrap().try_into().unwrap()).error_log_entries
}

fn check(host: &mut Host, queue: u16, (command, code, parameter): Case) {
    let before = count(host);
    let done = host.execute(queue, command);
    assert_eq!((done.status.code, done.status.do_not_retry), (code, true), "{command:?}");
    assert!(done.status.more, "{command:?}");
    let newest = host.last_error();
    let expected = ErrorLogEntry {
        count: before as u64 + 1,
        sq_id: queue,
        cid: done.cid,
        status: done.status,
        phase: done.phase,
        parameter,
        lba: if queue == 0 { 0 } else { command.slba() },
        nsid: command.nsid,
        command_specific: 0,
    };
    assert_eq!(newest, expected, "{command:?}");
    assert_eq!(count(host), before + 1);
}

#[test]
fn bad_input_has_its_status_and_an_entry_of_the_error_log() {
    let mut host = host();
    // No event is reported, because an error log entry alone is not an event (section 5.2).
    let event = host.put(0, with(admin::ASYNC_EVENT_REQUEST, 0, 0, 0));
    host.carry_out(0);
    let admin = queue_commands().into_iter().chain(admin_commands());
    let cases: Vec<_> = admin
        .map(|case| (0, case))
        .chain(io_commands().into_iter().map(|case| (1, case)))
        .collect();
    assert!(cases.len() > 200);
    for (queue, case) in cases {
        check(&mut host, queue, case);
    }
    host.testbed.subsystem.check_invariants();
    assert_eq!(host.testbed.media.log, [], "the media are not asked");
    assert!(host.done.iter().all(|done| done.cid != event), "no event is told");
    host.io(read(0, 8, DATA, 0)).expect_success();
}

#[test]
fn doorbells_that_do_not_exist_are_events_with_an_entry() {
    let mut host = host();
    let first = host.put(0, with(admin::ASYNC_EVENT_REQUEST, 0, 0, 0));
    host.carry_out(0);
    use Doorbell::{CompletionHead, SubmissionTail};
    let (register, value) =
        (AsyncEvent::INVALID_DOORBELL_REGISTER, AsyncEvent::INVALID_DOORBELL_VALUE);
    let mut cid = first;
    for (doorbell, to, event, queue) in [
        (SubmissionTail(2), 1, register, 2),
        (CompletionHead(2), 1, register, 2),
        (SubmissionTail(64), 1, register, 64),
        (SubmissionTail(1), 16, value, 1),
        (SubmissionTail(1), u32::MAX, value, 1),
        (SubmissionTail(1), 0, value, 1),
        (CompletionHead(1), 1, value, 1),
        (CompletionHead(1), 16, value, 1),
        (SubmissionTail(0), 32, value, 0),
    ] {
        host.doorbell(doorbell, to);
        host.testbed.settle();
        let events: Vec<_> = host.reap(0).iter().map(|done| (done.cid, done.result)).collect();
        assert_eq!(events, [(cid, event.bits())], "{doorbell:?}");
        let newest = host.last_error();
        assert_eq!((newest.sq_id, newest.cid, newest.parameter), (queue, 0xffff, NOWHERE));
        cid = host.put(0, with(admin::ASYNC_EVENT_REQUEST, 0, 0, 0));
        host.carry_out(0);
    }
    host.io(flush(1)).expect_success();
}

#[test]
fn nothing_happens_before_the_controller_is_ready() {
    let mut host = Host::over(Testbed::enumerated(config(), true));
    for doorbell in [Doorbell::SubmissionTail(0), Doorbell::CompletionHead(0)] {
        host.doorbell(doorbell, 1);
    }
    host.testbed.settle();
    let counted = host.testbed.subsystem.state().health.errors;
    assert_eq!((host.testbed.reads.len(), counted), (0, 0), "the effect is undefined: none");
    host.enable(32);
    assert!(host.admin(get_feature(feature::ARBITRATION, 0)).status.is_success());
    // After a reset too, a doorbell has no effect.
    host.put(0, get_feature(feature::ARBITRATION, 0));
    host.configure(entry_sizes());
    host.ring(0);
    host.testbed.settle();
    assert!(host.testbed.reads.is_empty() && host.reap(0).is_empty());
}
