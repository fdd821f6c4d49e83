//! Each capability bit of Identify agrees with the behaviour of the command or feature (NVMe 1.4,
//! figures 245 and 247).

use super::records::{found, start};
use super::*;
use wire::nvme::{IdentifyController, feature_bits, log_page};

/// A drive without records and doorbell buffers, and a drive with both. Each has an I/O queue.
fn drives() -> [Host; 2] {
    let small = configured(|settings| {
        settings.doorbell_buffer = false;
        settings.volatile_write_cache = false;
    });
    let full = configured(|settings| {
        settings.doorbell_buffer = true;
        settings.volatile_write_cache = true;
    });
    let mut full = found(Testbed::with_records(&full));
    start(&mut full);
    full.create(1, 16);
    [Host::with_queue(small), full]
}

fn controller(host: &mut Host) -> IdentifyController {
    host.controller_data()
}

#[track_caller]
fn agrees(claimed: bool, accepted: bool, capability: impl std::fmt::Display) {
    assert_eq!(claimed, accepted, "{capability}: claimed and accepted");
}

/// Whether the controller supports the opcode. The fields of the command are invalid, so that it
/// changes nothing.
fn has(host: &mut Host, queue: u16, opcode: u8) -> bool {
    let nonsense =
        Command { opcode, nsid: 77, prp1: 3, prp2: 3, cdw10: 0xffff, ..Command::default() };
    host.execute(queue, nonsense).status.code != StatusCode::INVALID_OPCODE
}

fn succeeds(host: &mut Host, command: Command) -> bool {
    host.admin(Command { prp1: DATA, ..command }).status.is_success()
}

fn has_feature(host: &mut Host, id: u8) -> bool {
    // SEL 011b, supported capabilities, succeeds for every supported feature.
    succeeds(host, Command { cdw10: 3 << 8 | u32::from(id), ..get_feature(id, 0) })
}

fn log(id: u8) -> Command {
    get_log(id, 512, 0)
}

#[test]
fn optional_commands_are_those_of_oacs_oncs_and_fuses() {
    for mut host in drives() {
        let claims = controller(&mut host);
        for (bit, opcode) in [
            (0, 0x81),
            (0, 0x82),
            (1, 0x80),
            (2, 0x10),
            (2, 0x11),
            (3, 0x0d),
            (3, 0x15),
            (4, 0x14),
            (5, 0x19),
            (5, 0x1a),
            (6, 0x1d),
            (6, 0x1e),
            (7, 0x1c),
            (8, 0x7c),
            (9, 0x86),
        ] {
            let claimed = claims.admin_commands & 1 << bit != 0;
            agrees(claimed, has(&mut host, 0, opcode), format_args!("OACS, opcode {opcode:#x}"));
        }
        agrees(claims.sanitize != 0, has(&mut host, 0, 0x84), "SANICAP");
        agrees(claims.keep_alive != 0, has(&mut host, 0, 0x18), "KAS");
        for (bit, opcode) in [
            (0, 0x05),
            (1, 0x04),
            (2, 0x09),
            (3, 0x08),
            (5, 0x0d),
            (5, 0x0e),
            (5, 0x11),
            (5, 0x15),
            (7, 0x0c),
            (8, 0x19),
        ] {
            let claimed = claims.nvm_commands & 1 << bit != 0;
            agrees(claimed, has(&mut host, 1, opcode), format_args!("ONCS, opcode {opcode:#x}"));
        }
        agrees(claims.nvm_commands & 1 << 8 != 0, claims.copy_formats != 0, "OCFS");
        let select = Command { cdw10: 1 << 8 | 1, ..get_feature(1, 0) };
        agrees(claims.nvm_commands & 1 << 4 != 0, succeeds(&mut host, select), "select");
        let fused = [Command { opcode: opcode::nvm::COMPARE, fuse: 1, ..read(0, 1, DATA, 0) }, {
            Command { fuse: 2, ..write(0, 1, DATA, 0) }
        }];
        host.testbed.put(DATA, &[0; 512]);
        let ids = fused.map(|command| host.put(1, command));
        host.carry_out(1);
        let done = host.reap(1);
        assert_eq!(done.iter().map(|one| one.cid).collect::<Vec<_>>(), ids);
        let both = done.iter().all(|one| one.status.is_success());
        agrees(claims.fused == 1, both, "FUSES");
    }
}

/// Bits that no command here tests are clear. The tests of `metadata` cover metadata by SGL (SGLS
/// bits 17 and 19), and the tests of `io` cover Flush with the broadcast NSID (VWC bits 2:1).
#[test]
fn bits_without_a_command_are_clear() {
    for mut host in drives() {
        let claims = controller(&mut host);
        assert_eq!(claims.admin_commands >> 10, 0, "OACS");
        assert_eq!(claims.nvm_commands >> 9, 0, "ONCS");
        assert_eq!(claims.log_page_attributes >> 5, 0, "LPA");
        // Bits 6 and 8: Traffic Based Keep Alive and SQ Associations. Bit 18: reservations need a
        // Host Identifier.
        assert_eq!(claims.attributes & !(0x2bf | 1 << 18), 0, "CTRATT");
        let metadata_by_sgl = 1 << 17 | 1 << 19;
        assert_eq!(claims.sgl & !(3 | 1 << 2 | 0x35 << 16 | metadata_by_sgl), 0, "SGLS");
        let namespace = host.namespace_data(1);
        // Clear bits: thin provisioning, atomic sizes of the namespace, preferred sizes.
        assert_eq!(namespace.features & !(1 << 2 | 1 << 3), 0, "NSFEAT");
    }
}

#[test]
fn features_are_those_that_identify_claims() {
    for mut host in drives() {
        let claims = controller(&mut host);
        let attribute = |bit: u32| claims.attributes & 1 << bit != 0;
        for (claimed, id, capability) in [
            (claims.write_cache & 1 != 0, feature::VOLATILE_WRITE_CACHE, "VWC"),
            (claims.nvm_commands & 1 << 6 != 0, feature::TIMESTAMP, "ONCS, Timestamp"),
            (claims.keep_alive != 0, feature::KEEP_ALIVE_TIMER, "KAS"),
            (claims.write_protection & 1 != 0, feature::WRITE_PROTECTION, "NWPC"),
            // APSTA, HMPRE and HCTMA are 0.
            (false, 0x0c, "APSTA"),
            (false, 0x0d, "HMPRE"),
            (false, 0x10, "HCTMA"),
            (attribute(0), 0x81, "CTRATT, host identifier of 128 bits"),
            (attribute(1), 0x11, "CTRATT, non-operational power states"),
            (attribute(3), 0x12, "CTRATT, read recovery levels"),
            (attribute(4), 0x18, "CTRATT, endurance groups"),
            (attribute(5), 0x13, "CTRATT, predictable latency"),
            (claims.nvm_commands & 1 << 5 != 0, 0x82, "ONCS, reservations"),
        ] {
            agrees(claimed, has_feature(&mut host, id), capability);
        }
        // CTRATT bits 2, 7 and 9: NVM sets, namespace granularity and UUID lists.
        for (bit, cns) in [(2, 0x04), (7, 0x16), (9, 0x17)] {
            let opcode = opcode::admin::IDENTIFY;
            let list = Command { opcode, cdw10: cns, ..Command::default() };
            agrees(attribute(bit), succeeds(&mut host, list), format_args!("CNS {cns:#x}"));
        }
    }
}

#[test]
fn notices_and_logs_are_those_of_oaes_and_lpa() {
    for mut host in drives() {
        let claims = controller(&mut host);
        let has_log = |bit: u32| claims.log_page_attributes & 1 << bit != 0;
        let smart = Command { nsid: 1, ..log(log_page::SMART) };
        agrees(has_log(0), succeeds(&mut host, smart), "SMART of a namespace");
        agrees(has_log(1), succeeds(&mut host, log(log_page::EFFECTS)), "effects");
        let offset = Command { cdw12: 4, ..log(log_page::ERROR) };
        agrees(has_log(2), succeeds(&mut host, offset), "offsets");
        for id in [log_page::TELEMETRY_HOST, log_page::TELEMETRY_CONTROLLER] {
            agrees(has_log(3), succeeds(&mut host, log(id)), "telemetry");
        }
        let established = Command {
            cdw10: 1 << 8 | log(log_page::PERSISTENT_EVENT).cdw10,
            ..log(log_page::PERSISTENT_EVENT)
        };
        agrees(has_log(4), succeeds(&mut host, established), "persistent events");
        for bit in 8..32 {
            let claimed = match 1 << bit {
                feature_bits::TELEMETRY => has_log(3),
                notice => claims.async_events & notice != 0,
            };
            let set = set_feature(feature::ASYNC_EVENT_CONFIG, 1 << bit);
            agrees(claimed, succeeds(&mut host, set), format_args!("OAES bit {bit}"));
        }
        // SPDK enables all notices that Identify reports, and telemetry log notices.
        let wanted = 0x1f | claims.async_events | feature_bits::TELEMETRY;
        host.admin(set_feature(feature::ASYNC_EVENT_CONFIG, wanted)).expect_success();
        let value = host.admin(get_feature(feature::ASYNC_EVENT_CONFIG, 0)).expect_success();
        assert_eq!(value, wanted);
    }
}

#[test]
fn lists_and_namespace_features_are_as_identified() {
    for (mut host, saves) in drives().into_iter().zip([false, true]) {
        let claims = controller(&mut host);
        let list = wire::nvme::SglDescriptor {
            address: DATA,
            length: 512,
            subtype: 0,
            kind: wire::nvme::SglKind::DataBlock as u8,
        };
        let sgl = host.io(read(0, 1, 0, 0).with_sgl1(list)).status.is_success();
        agrees(claims.sgl & 3 != 0, sgl, "SGLS");
        let bytes = wire::nvme::SglDescriptor { address: DATA + 1, ..list };
        let any_byte = host.io(read(0, 1, 0, 0).with_sgl1(bytes)).status.is_success();
        agrees(claims.sgl & 3 == 1, any_byte, "SGLS, alignment");
        for (bit, descriptor) in [
            (2, wire::nvme::SglDescriptor { kind: 4, ..list }),
            (16, wire::nvme::SglDescriptor { kind: wire::nvme::SglKind::BitBucket as u8, ..list }),
            (18, wire::nvme::SglDescriptor { length: 1024, ..list }),
            (20, wire::nvme::SglDescriptor { subtype: 1, ..list }),
            (21, wire::nvme::SglDescriptor { kind: 5, ..list }),
        ] {
            let done = host.io(read(0, 1, 0, 0).with_sgl1(descriptor)).status.is_success();
            agrees(claims.sgl & 1 << bit != 0, done, format_args!("SGLS bit {bit}"));
        }
        let namespace = host.namespace_data(1);
        // NSFEAT bit 3: identifiers of drives with records are never reused (docs/drive.md).
        agrees(namespace.features & 1 << 3 != 0, saves, "NSFEAT, identifiers");
        // NSFEAT bit 2: Error Recovery supports DULBE.
        let unwritten = Command { nsid: 1, ..set_feature(feature::ERROR_RECOVERY, 1 << 16) };
        agrees(namespace.features & 1 << 2 != 0, succeeds(&mut host, unwritten), "NSFEAT, DULBE");
    }
}
