//! Golden vectors: bytes written down by hand from the figures.

use super::register::{
    AdminQueueAttributes, Capabilities, Configuration, ControllerStatus, Doorbell, ShutdownNotice,
    ShutdownStatus,
};
use super::*;
use proptest::prelude::*;

/// `N` zero bytes, overwritten by `spans`: byte offsets and bytes.
fn golden<const N: usize>(spans: &[(usize, &[u8])]) -> [u8; N] {
    let mut bytes = [0; N];
    for (offset, span) in spans {
        bytes[*offset..offset + span.len()].copy_from_slice(span);
    }
    bytes
}

/// Checks that a value encodes to these bytes, and that the bytes decode to the value.
macro_rules! there_and_back {
    ($type:ident, $value:expr, $bytes:expr) => {
        let bytes = $bytes;
        assert_eq!($value.encode(), bytes);
        assert_eq!($type::decode(&bytes), $value);
    };
}

mod identify;
mod log;
mod persistent_event;
mod reservation;

#[test]
fn a_read_command() {
    let command = Command {
        opcode: opcode::nvm::READ,
        fuse: 1,
        psdt: 2,
        cid: 0x1234,
        nsid: 1,
        mptr: 0x1716_1514_1312_1110,
        prp1: 0x0000_0001_2345_6000,
        prp2: 0x0000_0001_2345_7000,
        cdw10: 0x89ab_cdef,
        cdw11: 0x0123_4567,
        cdw12: 0x4000_0007,
        cdw13: 0x0d0d_0d0d,
        cdw14: 0x0e0e_0e0e,
        cdw15: 0x0f0f_0f0f,
    };
    there_and_back!(
        Command,
        command,
        golden(&[
            (0, &[0x02, 0x81, 0x34, 0x12, 0x01, 0, 0, 0]),
            (16, &[0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17]),
            (24, &[0x00, 0x60, 0x45, 0x23, 0x01]),
            (32, &[0x00, 0x70, 0x45, 0x23, 0x01]),
            (40, &[0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01]),
            (48, &[0x07, 0x00, 0x00, 0x40]),
            (52, &[0x0d; 4]),
            (56, &[0x0e; 4]),
            (60, &[0x0f; 4]),
        ])
    );
    assert_eq!(command.slba(), 0x0123_4567_89ab_cdef);
    assert_eq!(command.blocks(), 8);
    assert!(command.force_unit_access() && !command.deallocates());
    assert!(Command { cdw12: 0x0200_0000, ..command }.deallocates());
}

#[test]
fn a_dataset_management_range() {
    let range = DsmRange { attributes: 0x11, blocks: 0x2000, slba: 0x1_0000_0000 };
    there_and_back!(DsmRange, range, golden(&[(0, &[0x11]), (5, &[0x20]), (12, &[1])]));
}

#[test]
fn a_source_range_of_copy() {
    let range = CopyRange {
        slba: 0x2_0000_0003,
        last: 0x0107,
        reference: 0x0102_0304,
        application: 0x0506,
        mask: 0x0708,
    };
    let bytes = golden(&[(8, &[3, 0, 0, 0, 2]), (16, &[7, 1]), (24, &[4, 3, 2, 1, 6, 5, 8, 7])]);
    there_and_back!(CopyRange, range, bytes);
}

#[test]
fn an_sgl_descriptor() {
    let descriptor = SglDescriptor {
        address: 0x1_2345_6780,
        length: 0x0002_0010,
        subtype: 1,
        kind: SglKind::LastSegment as u8,
    };
    let bytes = golden(&[(0, &[0x80, 0x67, 0x45, 0x23, 1]), (8, &[0x10, 0, 2]), (15, &[0x31])]);
    there_and_back!(SglDescriptor, descriptor, bytes);
    let command = Command::default().with_sgl1(descriptor);
    assert_eq!(command.encode()[24..40], bytes);
    assert_eq!((command.sgl1(), command.psdt), (descriptor, 1));
}

#[test]
fn a_completion_with_more_and_do_not_retry() {
    let status =
        Status { more: true, retry_delay: 2, ..Status::fail(StatusCode::UNRECOVERED_READ_ERROR) };
    let completion =
        Completion { result: 0x0102_0304, sq_head: 5, sq_id: 2, cid: 0xabcd, phase: true, status };
    // SC 81h in 24:17, SCT 2 in 27:25, CRD 2 in 29:28, M 30, DNR 31.
    there_and_back!(
        Completion,
        completion,
        golden(&[(0, &[4, 3, 2, 1]), (8, &[5, 0, 2, 0, 0xcd, 0xab]), (14, &[0x03, 0xe5])])
    );
}

#[test]
fn a_successful_completion_of_phase_zero_is_all_zero_in_its_last_word() {
    assert_eq!(Completion::default().encode(), [0; 16]);
    assert!(Status::SUCCESS.is_success());
}

#[test]
fn status_codes_have_names() {
    assert_eq!(StatusCode::new(1, 9), StatusCode::INVALID_LOG_PAGE);
    assert_eq!(StatusCode::new(1, 9).to_string(), "INVALID_LOG_PAGE");
    assert_eq!(StatusCode::new(7, 0xfe).to_string(), "0x7fe");
    assert_eq!(StatusCode::new(0, 0x19), StatusCode::KEEP_ALIVE_EXPIRED);
    assert_eq!((StatusCode::WRITE_FAULT.kind(), StatusCode::WRITE_FAULT.code()), (2, 0x80));
}

#[test]
fn asynchronous_events() {
    for (event, bits) in [
        (AsyncEvent::INVALID_DOORBELL_REGISTER, 0x01_00_00),
        (AsyncEvent::INVALID_DOORBELL_VALUE, 0x01_01_00),
        (AsyncEvent::TEMPERATURE_THRESHOLD, 0x02_01_01),
        (AsyncEvent::FIRMWARE_ACTIVATION, 0x03_01_02),
        (AsyncEvent { kind: AsyncEventKind::Notice, information: 0, log_page: 4 }, 0x04_00_02),
    ] {
        assert_eq!(event.bits(), bits);
        assert_eq!(AsyncEvent::from_bits(bits), event);
    }
}

#[test]
fn capabilities() {
    let cap = Capabilities {
        max_queue_entries: 4095,
        contiguous_queues: true,
        arbitration: 0,
        timeout: 0x14,
        doorbell_stride: 0,
        subsystem_reset: false,
        command_sets: 1,
        min_page: 0,
        max_page: 4,
    };
    assert_eq!(cap.bits(), 0x0040_0020_1401_0fff);
    assert_eq!(Capabilities::from_bits(cap.bits()), cap);
    let odd = Capabilities { arbitration: 1, doorbell_stride: 2, subsystem_reset: true, ..cap };
    assert_eq!(odd.bits(), 0x0040_0032_1403_0fff);
    assert_eq!(Capabilities::from_bits(odd.bits()), odd);
}

#[test]
fn configuration_and_status() {
    let cc = Configuration {
        enable: true,
        command_set: 0,
        page: 1,
        arbitration: 0,
        shutdown: ShutdownNotice::Normal,
        sq_entry_size: 6,
        cq_entry_size: 4,
    };
    assert_eq!(cc.bits(), 0x0046_4081);
    assert_eq!(Configuration::from_bits(cc.bits()), cc);
    let csts = ControllerStatus { ready: true, fatal: true, shutdown: ShutdownStatus::Complete };
    assert_eq!(csts.bits(), 0b1011);
    assert_eq!(ControllerStatus::from_bits(csts.bits()), csts);
    let aqa = AdminQueueAttributes { sq_size: 31, cq_size: 4095 };
    assert_eq!(aqa.bits(), 0x0fff_001f);
    assert_eq!(AdminQueueAttributes::from_bits(aqa.bits()), aqa);
}

#[test]
fn doorbells() {
    assert_eq!(Doorbell::at(0x0ffc, 0), None);
    assert_eq!(Doorbell::at(0x1002, 0), None);
    for (doorbell, offset) in [
        (Doorbell::SubmissionTail(0), 0x1000),
        (Doorbell::CompletionHead(0), 0x1004),
        (Doorbell::SubmissionTail(64), 0x1200),
        (Doorbell::CompletionHead(64), 0x1204),
    ] {
        assert_eq!(Doorbell::at(offset, 0), Some(doorbell));
        assert_eq!(doorbell.offset(0), offset);
    }
    assert_eq!(Doorbell::CompletionHead(1).offset(4), 0x1000 + 3 * 64);
    assert_eq!(Doorbell::at(0x1000 + 3 * 64, 4), Some(Doorbell::CompletionHead(1)));
    assert_eq!(Doorbell::at(0x1000 + 3 * 64 + 4, 4), None, "between two");
}

#[test]
fn timestamps() {
    let timestamp = feature::Timestamp { milliseconds: 0x1122_3344_5566, stopped: true, origin: 1 };
    assert_eq!(timestamp.bits(), 0x0003_1122_3344_5566);
    assert_eq!(feature::Timestamp::from_bits(timestamp.bits()), timestamp);
}

#[test]
fn features_select() {
    use feature::Select;
    assert_eq!(Select::from_number(1), Some(Select::Default));
    assert_eq!(Select::from_number(4), None);
}

#[test]
fn ascii_fields_are_padded_cut_and_printable() {
    assert_eq!(&ascii::<4>("a\u{e9}\nbcd"), b"a??b");
    assert_eq!(&ascii::<4>("x"), b"x   ");
}

proptest! {
    #[test]
    fn registers_and_entries_survive_a_round_trip(
        cap: u64, cc: u32, csts: u32, aqa: u32, status: u16, event: u32,
        command: [u8; 32], completion: [u8; 16],
    ) {
        let cap = Capabilities::from_bits(cap);
        prop_assert_eq!(Capabilities::from_bits(cap.bits()), cap);
        let cc = Configuration::from_bits(cc);
        prop_assert_eq!(Configuration::from_bits(cc.bits()), cc);
        let csts = ControllerStatus::from_bits(csts);
        prop_assert_eq!(ControllerStatus::from_bits(csts.bits()), csts);
        let aqa = AdminQueueAttributes::from_bits(aqa);
        prop_assert_eq!(AdminQueueAttributes::from_bits(aqa.bits()), aqa);
        prop_assert_eq!(Status::from_bits(status).bits(), status & 0x7fff);
        let event = AsyncEvent::from_bits(event);
        prop_assert_eq!(AsyncEvent::from_bits(event.bits()), event);
        let mut entry = [0; 64];
        entry[..32].copy_from_slice(&command);
        entry[32..].copy_from_slice(&command);
        let command = Command::decode(&entry);
        prop_assert_eq!(Command::decode(&command.encode()), command);
        let completion = Completion::decode(&completion);
        prop_assert_eq!(Completion::decode(&completion.encode()), completion);
    }
}

#[test]
fn protection_information_is_big_endian() {
    let information =
        ProtectionInformation { guard: 0xd0db, application: 0x0102, reference: 0x0304_0506 };
    there_and_back!(ProtectionInformation, information, [0xd0, 0xdb, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn protection_of_commands() {
    // PRINFO 29:26, PRINFOR 15:12.
    let command = Command {
        cdw12: 1 << 29 | 1 << 26 | 0b0110 << 12,
        cdw14: 0x1122_3344,
        cdw15: 0xff00_1234,
        ..Command::default()
    };
    let write = ProtectionControl { action: true, reference: true, ..Default::default() };
    let read = ProtectionControl { guard: true, application: true, ..Default::default() };
    assert_eq!((command.protection(), command.protection_of_sources()), (write, read));
    let tags = ProtectionTags { application: 0x1234, mask: 0xff00, reference: 0x1122_3344 };
    assert_eq!(command.tags(), tags);
}
