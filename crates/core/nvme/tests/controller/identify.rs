//! Identify.

use super::*;
use wire::nvme::{
    BROADCAST_NSID, IDENTIFY, IdentifyController, IdentifyNamespace, IndependentNamespace,
    NamespaceDescriptor, cns, controller_list, namespace_list,
};

fn command(cns: u8, nsid: u32) -> Command {
    testkit::nvme::identify(cns, nsid, DATA)
}

#[test]
fn the_controller() {
    let mut host = Host::new(config());
    let page = host.identify(cns::CONTROLLER, 0);
    let controller = IdentifyController::decode(&page);
    assert_eq!(controller.encode(), page, "nothing but known fields");
    assert_eq!(&controller.model[..18], b"farlane NVMe drive");
    assert_eq!(&controller.serial, b"SN0001              ");
    assert_eq!((controller.max_transfer, controller.namespaces), (5, 2));
    assert_eq!(controller.version, 0x0001_0400);
    assert_eq!(controller.total_capacity, 5 << 20);
    assert_eq!(controller.write_cache, 7);
    // Compare, Dataset Management, Write Zeroes, save and select, Timestamp, Verify, Copy; copy format 0h.
    assert_eq!((controller.nvm_commands, controller.copy_formats), (0x1dd, 1));
}

/// The subsystem NQN of a drive.
fn subsystem_nqn(config: Config) -> String {
    let field = Host::new(config).controller_data().subsystem_nqn;
    let end = field.iter().position(|byte| *byte == 0).expect("it ends with a null character");
    assert!(field[end..].iter().all(|byte| *byte == 0));
    String::from_utf8(field[..end].to_vec()).expect("UTF-8")
}

#[test]
fn the_subsystem_has_a_valid_name_of_its_own() {
    // The second form of section 7.9 with a UUID (RFC 9562, section 4).
    let name = subsystem_nqn(config());
    assert_eq!(name, "nqn.2014-08.org.nvmexpress:uuid:d38f5eaf-823d-8780-b8da-16c2d995fa3c");
    let uuid = name.strip_prefix("nqn.2014-08.org.nvmexpress:uuid:").unwrap();
    let digits: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(digits, [8, 4, 4, 4, 12]);
    assert!(uuid.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-')));
    assert_eq!(&uuid[14..15], "8", "version");
    assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "variant");
    // The name is stable. Another serial or model number gives another name.
    assert_eq!(subsystem_nqn(config()), name);
    assert_ne!(subsystem_nqn(Config { serial: "SN0002".into(), ..config() }), name);
    assert_ne!(subsystem_nqn(Config { model: "another".into(), ..config() }), name);
}

#[test]
fn identify_of_absent_structure_logs_no_error() {
    let mut host = Host::new(config());
    // Unsupported structures: NVM sets, primary and secondary controllers, namespace granularity,
    // UUIDs, domains.
    for cns in [0x04, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0xff] {
        let status = host.admin(command(cns, 0)).status;
        assert_eq!(status, Status::fail(StatusCode::INVALID_FIELD), "without More");
    }
    let entries = |host: &mut Host| host.smart().error_log_entries;
    assert_eq!(entries(&mut host), 0);
    // A supported structure of a missing namespace is logged as an error.
    host.admin(command(cns::NAMESPACE, 9)).expect_failure(StatusCode::INVALID_NAMESPACE);
    assert_eq!(entries(&mut host), 1);
}

#[test]
fn namespaces() {
    let mut host = Host::new(config());
    let one = host.namespace_data(1);
    assert_eq!((one.size, one.lba_format.data_shift, one.attributes), (8192, 9, 0));
    // DLFEAT: deallocated blocks read as zeroes, and Write Zeroes deallocates. Then MSSRL, MCL and
    // MSRC.
    assert_eq!(one.deallocate_features, 0b1001);
    assert_eq!((one.copy_range, one.copy_length, one.copy_ranges), (256, 4096, 127));
    let two = IdentifyNamespace::decode(&host.identify(cns::ALLOCATED_NAMESPACE, 2));
    assert_eq!((two.size, two.lba_format.data_shift), (256, 12));
    assert_ne!(one.nguid, two.nguid);
    for nsid in [0, 3, BROADCAST_NSID] {
        host.admin(command(cns::NAMESPACE, nsid)).expect_failure(StatusCode::INVALID_NAMESPACE);
        host.admin(command(cns::DESCRIPTORS, nsid)).expect_failure(StatusCode::INVALID_NAMESPACE);
    }
    let descriptors = host.identify(cns::DESCRIPTORS, 1);
    let ids = [
        NamespaceDescriptor::Nguid(one.nguid),
        NamespaceDescriptor::Uuid(one.nguid),
        NamespaceDescriptor::CommandSet(0),
    ];
    assert_eq!(descriptors, NamespaceDescriptor::list(&ids));
}

#[test]
fn structures_of_the_nvm_command_set_and_of_no_other() {
    let mut host = Host::new(config());
    assert_eq!(host.identify(cns::SET_CONTROLLER, 0), [0; IDENTIFY], "no limits");
    for cns in [cns::SET_NAMESPACE, cns::SET_ALLOCATED_NAMESPACE, cns::INDEPENDENT_NAMESPACE] {
        host.testbed.put(DATA, &[0xff; IDENTIFY]);
        let page = host.identify(cns, 2);
        let expected = IndependentNamespace { status: 1, ..IndependentNamespace::default() };
        match cns {
            cns::INDEPENDENT_NAMESPACE => assert_eq!(page, expected.encode()),
            _ => assert_eq!(page, [0; IDENTIFY]),
        }
        host.admin(command(cns, 3)).expect_failure(StatusCode::INVALID_NAMESPACE);
    }
    for cns in [cns::SET_ACTIVE_NAMESPACES, cns::SET_ALLOCATED_NAMESPACES] {
        assert_eq!(host.identify(cns, 1), namespace_list([2]));
    }
    for cns in [0x05, 0x06, 0x07, 0x1a, 0x1b] {
        // CSI 2, zoned namespaces.
        let zoned = Command { cdw11: 2 << 24, ..command(cns, 1) };
        assert_eq!(host.admin(zoned).status, Status::fail(StatusCode::INVALID_FIELD), "{cns:#x}");
    }
}

#[test]
fn combinations_of_command_sets() {
    let mut host = Host::new(config());
    let command_sets = |controller: u32| Command {
        cdw10: u32::from(cns::COMMAND_SETS) | controller << 16,
        ..command(0, 0)
    };
    for controller in [1, 0xffff] {
        host.admin(command_sets(controller)).expect_success();
        let data = host.testbed.load(DATA, IDENTIFY).unwrap();
        assert_eq!((data[0], data[1..].iter().max()), (1, Some(&0)));
    }
    host.admin(command_sets(2)).expect_failure(StatusCode::INVALID_FIELD);
}

#[test]
fn lists() {
    let mut host = Host::new(config());
    for cns in [cns::ACTIVE_NAMESPACES, cns::ALLOCATED_NAMESPACES] {
        assert_eq!(host.identify(cns, 0), namespace_list([1, 2]));
        assert_eq!(host.identify(cns, 1), namespace_list([2]));
        host.admin(command(cns, 0xffff_fffe)).expect_failure(StatusCode::INVALID_NAMESPACE);
    }
    assert_eq!(host.identify(cns::CONTROLLERS, 0), controller_list([1]));
    assert_eq!(host.identify(cns::ATTACHED_CONTROLLERS, 2), controller_list([1]));
    host.admin(command(cns::ATTACHED_CONTROLLERS, 3)).expect_failure(StatusCode::INVALID_NAMESPACE);
    let later = Command { cdw10: u32::from(cns::CONTROLLERS) | 2 << 16, ..command(0, 0) };
    host.admin(later).expect_success();
    assert_eq!(host.testbed.load(DATA, 2).unwrap(), [0, 0]);
    assert_eq!(host.admin(command(0x7f, 0)).status, Status::fail(StatusCode::INVALID_FIELD));
}

#[test]
fn the_page_may_cross_a_boundary() {
    let mut host = Host::new(config());
    let whole = host.identify(cns::CONTROLLER, 0);
    let (first, second) = (DATA + 0x1800, DATA + 0x5000);
    host.admin(Command { prp1: first, prp2: second, ..command(cns::CONTROLLER, 0) })
        .expect_success();
    assert_eq!(host.testbed.load(first, 2048).unwrap(), whole[..2048]);
    assert_eq!(host.testbed.load(second, 2048).unwrap(), whole[2048..]);
}
