//! Identify.

use super::*;
use wire::nvme::{
    BROADCAST_NSID, IDENTIFY, IdentifyController, IdentifyNamespace, NamespaceDescriptor, cns,
    controller_list, namespace_list,
};

fn command(cns: u8, nsid: u32) -> Command {
    Command {
        opcode: opcode::admin::IDENTIFY,
        nsid,
        prp1: DATA,
        cdw10: cns.into(),
        ..Command::default()
    }
}

fn identify(host: &mut Host, cns: u8, nsid: u32) -> [u8; IDENTIFY] {
    host.admin(command(cns, nsid)).expect_success();
    host.bench.load(DATA, IDENTIFY).unwrap().try_into().unwrap()
}

#[test]
fn the_controller() {
    let mut host = Host::new(config());
    let page = identify(&mut host, cns::CONTROLLER, 0);
    let controller = IdentifyController::decode(&page);
    assert_eq!(controller.encode(), page, "nothing but known fields");
    assert_eq!(&controller.model[..18], b"farlane NVMe drive");
    assert_eq!(&controller.serial, b"SN0001              ");
    assert_eq!((controller.max_transfer, controller.namespaces), (5, 2));
    assert_eq!(controller.version, 0x0001_0400);
    assert_eq!(controller.total_capacity, 5 << 20);
    assert!(controller.subsystem_nqn.starts_with(b"nqn.2014.08.org.nvmexpress:fa120001SN0001"));
    assert_eq!(controller.write_cache, 7);
}

#[test]
fn namespaces() {
    let mut host = Host::new(config());
    let one = IdentifyNamespace::decode(&identify(&mut host, cns::NAMESPACE, 1));
    assert_eq!((one.size, one.lba_format.data_shift, one.attributes), (8192, 9, 0));
    let two = IdentifyNamespace::decode(&identify(&mut host, cns::ALLOCATED_NAMESPACE, 2));
    assert_eq!((two.size, two.lba_format.data_shift), (256, 12));
    assert_ne!(one.nguid, two.nguid);
    for nsid in [0, 3, BROADCAST_NSID] {
        host.admin(command(cns::NAMESPACE, nsid)).expect_failure(StatusCode::INVALID_NAMESPACE);
        host.admin(command(cns::DESCRIPTORS, nsid)).expect_failure(StatusCode::INVALID_NAMESPACE);
    }
    let descriptors = identify(&mut host, cns::DESCRIPTORS, 1);
    let ids = [NamespaceDescriptor::Nguid(one.nguid), NamespaceDescriptor::Uuid(one.nguid)];
    assert_eq!(descriptors, NamespaceDescriptor::list(&ids));
}

#[test]
fn lists() {
    let mut host = Host::new(config());
    for cns in [cns::ACTIVE_NAMESPACES, cns::ALLOCATED_NAMESPACES] {
        assert_eq!(identify(&mut host, cns, 0), namespace_list([1, 2]));
        assert_eq!(identify(&mut host, cns, 1), namespace_list([2]));
        host.admin(command(cns, 0xffff_fffe)).expect_failure(StatusCode::INVALID_NAMESPACE);
    }
    assert_eq!(identify(&mut host, cns::CONTROLLERS, 0), controller_list([1]));
    assert_eq!(identify(&mut host, cns::ATTACHED_CONTROLLERS, 2), controller_list([1]));
    host.admin(command(cns::ATTACHED_CONTROLLERS, 3)).expect_failure(StatusCode::INVALID_NAMESPACE);
    let later = Command { cdw10: u32::from(cns::CONTROLLERS) | 2 << 16, ..command(0, 0) };
    host.admin(later).expect_success();
    assert_eq!(host.bench.load(DATA, 2).unwrap(), [0, 0]);
    host.admin(command(0x7f, 0)).expect_failure(StatusCode::INVALID_FIELD);
}

#[test]
fn the_page_may_cross_a_boundary() {
    let mut host = Host::new(config());
    let whole = identify(&mut host, cns::CONTROLLER, 0);
    let (first, second) = (DATA + 0x1800, DATA + 0x5000);
    host.admin(Command { prp1: first, prp2: second, ..command(cns::CONTROLLER, 0) })
        .expect_success();
    assert_eq!(host.bench.load(first, 2048).unwrap(), whole[..2048]);
    assert_eq!(host.bench.load(second, 2048).unwrap(), whole[2048..]);
}
