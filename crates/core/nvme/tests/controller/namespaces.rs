//! Namespaces that hosts create, delete, attach and detach.

use super::*;
use nvme::state::State;
use pcie::Ready;
use wire::nvme::{
    AsyncEvent, BROADCAST_NSID, CommandsSupported, IDENTIFY, IdentifyNamespace, cns,
    controller_list, log_page, namespace_list, opcode::admin,
};

/// Capacity of the drive in bytes.
const CAPACITY: u64 = 8 << 20;

/// A drive with room for 4 namespaces of 8 MiB together. It has namespace 1 of 4 MiB and namespace
/// 2 of 1 MiB.
fn host() -> Host {
    let mut state = config().state();
    state.drive.capacity = CAPACITY;
    state.drive.max_namespaces = 4;
    let testbed = Testbed::from_records(&config(), state.encode());
    Host::started(testbed)
}

/// The host's data for a namespace to create.
fn wanted(blocks: u64) -> IdentifyNamespace {
    IdentifyNamespace { size: blocks, capacity: blocks, ..IdentifyNamespace::default() }
}

/// The encoded fields of a namespace to create, without LBA formats.
fn bytes(wanted: IdentifyNamespace) -> [u8; IDENTIFY] {
    wanted.encode_with(&[])
}

fn management(select: u32, nsid: u32) -> Command {
    let (opcode, cdw10) = (admin::NAMESPACE_MANAGEMENT, select);
    Command { opcode, nsid, prp1: DATA, cdw10, ..Command::default() }
}

fn create(host: &mut Host, wanted: IdentifyNamespace) -> Completion {
    host.testbed.put(DATA, &bytes(wanted));
    host.admin(management(0, 0))
}

fn delete(host: &mut Host, nsid: u32) -> Completion {
    host.admin(management(1, nsid))
}

/// Attaches (`select` 0) or detaches (1) a namespace.
fn attachment(host: &mut Host, select: u32, nsid: u32, list: [u8; IDENTIFY]) -> Completion {
    host.testbed.put(DATA, &list);
    host.admin(Command { opcode: admin::NAMESPACE_ATTACHMENT, ..management(select, nsid) })
}

fn attach(host: &mut Host, nsid: u32) {
    attachment(host, 0, nsid, controller_list([1])).expect_success();
}

fn unallocated(host: &mut Host) -> u128 {
    host.controller_data().unallocated_capacity
}

#[test]
fn a_namespace_is_created_attached_used_detached_and_deleted() {
    let mut host = host();
    let controller = host.controller_data();
    assert_eq!((controller.admin_commands, controller.async_events), (0b1_1111, 0b11 << 8));
    assert_eq!((controller.total_capacity, controller.unallocated_capacity), (8 << 20, 3 << 20));
    let new = IdentifyNamespace { formatted: 1, sharing: 1, ..wanted(256) };
    assert_eq!(create(&mut host, new).expect_success(), 3);
    assert_eq!(unallocated(&mut host), 2 << 20);
    // The namespace is allocated, but not active.
    assert_eq!(host.identify(cns::ALLOCATED_NAMESPACES, 0), namespace_list([1, 2, 3]));
    assert_eq!(host.identify(cns::ACTIVE_NAMESPACES, 0), namespace_list([1, 2]));
    let read_it = Command { nsid: 3, ..read(255, 1, DATA, 0) };
    host.io(read_it).expect_failure(StatusCode::INVALID_FIELD);
    attach(&mut host, 3);
    assert_eq!(host.identify(cns::ATTACHED_CONTROLLERS, 3), controller_list([1]));
    let found = host.namespace_data(3);
    assert_eq!((found.size, found.capacity, found.formatted, found.sharing), (256, 256, 1, 1));
    assert_eq!((found.lba_formats, found.lba_format.data_shift), (3, 12));
    assert_ne!(found.nguid, [0; 16]);
    // The blocks read as zeroes.
    host.testbed.put(DATA, &[0xee; 4096]);
    host.io(read_it).expect_success();
    assert_eq!(host.testbed.load(DATA, 4096).unwrap(), [0; 4096]);
    host.io(Command { nsid: 3, ..write(255, 1, DATA, 0) }).expect_success();
    host.io(Command { nsid: 3, ..write(256, 1, DATA, 0) })
        .expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    attachment(&mut host, 1, 3, controller_list([1])).expect_success();
    host.io(read_it).expect_failure(StatusCode::INVALID_FIELD);
    delete(&mut host, 3).expect_success();
    assert_eq!(host.identify(cns::ALLOCATED_NAMESPACES, 0), namespace_list([1, 2]));
    assert_eq!(unallocated(&mut host), 3 << 20);
    let state = State::decode(&host.testbed.store.records).unwrap();
    assert_eq!((state.namespaces.len(), state.created), (2, 1));
    assert_eq!(host.testbed.media.namespaces.len(), 2, "its contents are removed");
}

#[test]
fn a_namespace_outlives_power_and_its_names_are_never_used_again() {
    let mut host = host();
    let mut names = std::collections::BTreeSet::new();
    for round in 0..5u8 {
        assert_eq!(create(&mut host, wanted(8)).expect_success(), 3);
        let state = host.testbed.subsystem.state();
        let namespace = &state.namespaces[&3];
        assert!(names.insert((namespace.nguid, namespace.contents.clone())), "round {round}");
        assert_eq!(namespace.contents.len(), 32, "what a folder of a drive takes as a name");
        host.testbed.power_cycle(&config().settings);
        host.testbed.enumerate(true);
        host.enable(32);
        host.testbed.settle();
        assert_eq!(host.testbed.subsystem.state().namespaces, state.namespaces);
        delete(&mut host, 3).expect_success();
    }
}

#[test]
fn identify_of_broadcast_nsid_returns_common_capabilities() {
    let mut host = host();
    let common = host.identify(cns::NAMESPACE, BROADCAST_NSID);
    // NLBAF, MC, DPC, RESCAP; LBAF0 to LBAF3: MS and LBADS (figures 245 and 246).
    let mut expected = [0; IDENTIFY];
    (expected[25], expected[27], expected[28]) = (3, 0b11, 0b1_1111);
    expected[31] = 0xff;
    expected[128..144].copy_from_slice(&[0, 0, 9, 0, 0, 0, 12, 0, 8, 0, 9, 0, 8, 0, 12, 0]);
    assert!(common == expected);
}

#[test]
fn the_effects_log_has_what_makes_a_host_look_for_namespaces() {
    let effects = host().effects();
    for opcode in [admin::NAMESPACE_MANAGEMENT, admin::NAMESPACE_ATTACHMENT] {
        // CSUPP and NIC (figure 199).
        assert_eq!(effects.admin[usize::from(opcode)].bits(), 0b1001);
    }
}

#[test]
fn fields_of_a_namespace_to_create_are_checked() {
    let mut host = host();
    let cases = [
        (wanted(0), StatusCode::INVALID_FIELD),
        (IdentifyNamespace { capacity: 9, ..wanted(8) }, StatusCode::INVALID_FIELD),
        (
            IdentifyNamespace { capacity: 7, ..wanted(8) },
            StatusCode::THIN_PROVISIONING_NOT_SUPPORTED,
        ),
        (IdentifyNamespace { formatted: 4, ..wanted(8) }, StatusCode::INVALID_FORMAT),
        (IdentifyNamespace { formatted: 0x22, ..wanted(8) }, StatusCode::INVALID_FORMAT),
        // Protection without metadata, a reserved type, and a reserved bit.
        (IdentifyNamespace { protection: 1, ..wanted(8) }, StatusCode::INVALID_FIELD),
        (IdentifyNamespace { formatted: 2, protection: 4, ..wanted(8) }, StatusCode::INVALID_FIELD),
        (
            IdentifyNamespace { formatted: 2, protection: 17, ..wanted(8) },
            StatusCode::INVALID_FIELD,
        ),
        (IdentifyNamespace { sharing: 2, ..wanted(8) }, StatusCode::INVALID_FIELD),
        (IdentifyNamespace { access_group: 1, ..wanted(8) }, StatusCode::INVALID_FIELD),
        (IdentifyNamespace { nvm_set: 1, ..wanted(8) }, StatusCode::INVALID_FIELD),
        (wanted(u64::MAX), StatusCode::INSUFFICIENT_CAPACITY),
    ];
    for (case, status) in cases {
        create(&mut host, case).expect_failure(status);
    }
    host.admin(management(2, 1)).expect_failure(StatusCode::INVALID_FIELD);
    let zoned = Command { cdw11: 2 << 24, ..management(0, 0) };
    host.admin(zoned).expect_failure(StatusCode::INVALID_FIELD);
    let misplaced = Command { prp1: DATA + 2, ..management(0, 0) };
    host.admin(misplaced).expect_failure(StatusCode::INVALID_PRP_OFFSET);
    assert_eq!(host.testbed.subsystem.state().namespaces.len(), 2);
}

#[test]
fn capacity_and_nsids_run_out() {
    let mut host = host();
    // 3 MiB are left: 6144 blocks of 512 bytes.
    let much = create(&mut host, wanted(6145));
    much.expect_failure(StatusCode::INSUFFICIENT_CAPACITY);
    assert_eq!(host.last_error().command_specific, 6145 * 512);
    host.testbed.store.failure = Some(block::Error::NoSpace);
    create(&mut host, wanted(8)).expect_failure(StatusCode::INSUFFICIENT_CAPACITY);
    host.testbed.store.failure = Some(block::Error::Media);
    assert_eq!(create(&mut host, wanted(8)).status.code, StatusCode::INTERNAL_ERROR);
    host.testbed.store.failure = None;
    assert_eq!(create(&mut host, wanted(6143)).expect_success(), 3);
    assert_eq!(create(&mut host, wanted(1)).expect_success(), 4);
    assert_eq!(unallocated(&mut host), 0);
    delete(&mut host, 1).expect_success();
    assert_eq!(create(&mut host, wanted(1)).expect_success(), 1);
    create(&mut host, wanted(1)).expect_failure(StatusCode::NAMESPACE_ID_UNAVAILABLE);
}

#[test]
fn invalid_attachments_are_refused() {
    let mut host = host();
    create(&mut host, wanted(8)).expect_success();
    let one = controller_list([1]);
    let mut cases = vec![
        (2, 3, one, StatusCode::INVALID_FIELD),
        (0, 4, one, StatusCode::INVALID_FIELD),
        (0, 5, one, StatusCode::INVALID_NAMESPACE),
        (0, 0, one, StatusCode::INVALID_NAMESPACE),
        (0, BROADCAST_NSID, one, StatusCode::INVALID_NAMESPACE),
        (1, 3, one, StatusCode::NAMESPACE_NOT_ATTACHED),
        (0, 1, one, StatusCode::NAMESPACE_ALREADY_ATTACHED),
    ];
    // Lists without controllers, with a missing controller, with CNTLID 0, in the wrong order, and
    // with a repeated CNTLID.
    let lists: [&[u16]; 5] = [&[], &[2], &[0], &[1, 0], &[1, 1]];
    for list in lists {
        let list = controller_list(list.iter().copied());
        cases.push((0, 3, list, StatusCode::CONTROLLER_LIST_INVALID));
    }
    let mut too_long = [0; IDENTIFY];
    too_long[..2].copy_from_slice(&2048u16.to_le_bytes());
    cases.push((0, 3, too_long, StatusCode::CONTROLLER_LIST_INVALID));
    for (select, nsid, list, status) in cases {
        attachment(&mut host, select, nsid, list).expect_failure(status);
    }
    assert_eq!(host.identify(cns::ACTIVE_NAMESPACES, 0), namespace_list([1, 2]));
    for (nsid, status) in [
        (0, StatusCode::INVALID_NAMESPACE),
        (4, StatusCode::INVALID_FIELD),
        (5, StatusCode::INVALID_NAMESPACE),
    ] {
        delete(&mut host, nsid).expect_failure(status);
    }
}

#[test]
fn a_private_namespace_has_one_controller() {
    let mut host = host();
    host.testbed.beside();
    create(&mut host, wanted(8)).expect_success();
    create(&mut host, IdentifyNamespace { sharing: 1, ..wanted(8) }).expect_success();
    let found = IdentifyNamespace::decode(&host.identify(cns::ALLOCATED_NAMESPACE, 3));
    assert_eq!(found.sharing, 0);
    let both = controller_list([1, 2]);
    attachment(&mut host, 0, 3, both).expect_failure(StatusCode::NAMESPACE_IS_PRIVATE);
    attach(&mut host, 3);
    let other = attachment(&mut host, 0, 3, controller_list([2]));
    other.expect_failure(StatusCode::NAMESPACE_IS_PRIVATE);
    attachment(&mut host, 0, 4, both).expect_success();
    assert_eq!(host.identify(cns::ATTACHED_CONTROLLERS, 4), both);
}

#[test]
fn all_namespaces_can_be_deleted_at_once() {
    let mut host = host();
    delete(&mut host, BROADCAST_NSID).expect_success();
    assert!(host.testbed.media.namespaces.is_empty());
    assert_eq!(unallocated(&mut host), CAPACITY.into());
    delete(&mut host, BROADCAST_NSID).expect_success();
    let state = State::decode(&host.testbed.store.records).unwrap();
    assert!(state.namespaces.is_empty() && state.attachments.is_empty());
}

#[test]
fn a_host_is_told_which_namespaces_have_changed() {
    let mut host = host();
    let event = |host: &mut Host| {
        host.request_event();
        let mut done: Vec<Completion> = host.done.drain(..).collect();
        done.extend(host.reap(0));
        done.iter().map(|done| AsyncEvent::from_bits(done.result)).collect::<Vec<_>>()
    };
    create(&mut host, wanted(8)).expect_success();
    attach(&mut host, 3);
    assert_eq!(event(&mut host), [], "nobody asked for the notice");
    host.admin(set_feature(feature::ASYNC_EVENT_CONFIG, 1 << 8)).expect_success();
    attachment(&mut host, 1, 3, controller_list([1])).expect_success();
    let done: Vec<Completion> = host.done.drain(..).collect();
    // Notice, namespace attribute changed, log page 04h (figures 146 and 149).
    assert_eq!(done.iter().map(|one| one.result).collect::<Vec<_>>(), [0x0004_0002]);
    delete(&mut host, 2).expect_success();
    assert_eq!(event(&mut host), [], "the log was not read yet");
    let log = get_log(log_page::CHANGED_NAMESPACES, 4096, DATA);
    host.admin(Command { cdw10: log.cdw10 | 1 << 15, ..log }).expect_success();
    assert_eq!(host.testbed.load(DATA, IDENTIFY).unwrap(), namespace_list([2, 3]));
    assert_eq!(host.log(log_page::CHANGED_NAMESPACES), namespace_list([2, 3]));
    assert_eq!(host.log(log_page::CHANGED_NAMESPACES), [0; IDENTIFY]);
    attach(&mut host, 3);
    host.testbed.settle();
    let event = host.done.pop_front().or_else(|| host.reap(0).pop()).unwrap();
    assert_eq!(AsyncEvent::from_bits(event.result), AsyncEvent::NAMESPACE_ATTRIBUTE_CHANGED);
}

#[test]
fn commands_for_a_namespace_that_goes_end() {
    let mut host = host();
    create(&mut host, wanted(8)).expect_success();
    attach(&mut host, 3);
    let first = host.put(1, Command { nsid: 3, ..read(0, 8, DATA, 0) });
    host.fetch(1, false);
    let second = host.put(1, flush(BROADCAST_NSID));
    host.fetch(1, false);
    host.testbed.take_tlps(Ready::ALL);
    assert!(host.testbed.blocks.iter().any(|request| request.nsid == 3));
    // The media get no request of the command before the namespace is deleted.
    host.put(0, management(1, 3));
    host.fetch(0, false);
    assert!(host.testbed.serve_store());
    host.testbed.settle();
    let done = host.reap(1);
    assert_eq!(done.len(), 2);
    let completion = |cid: u16| done.iter().find(|one| one.cid == cid).expect("a completion");
    completion(first).expect_failure(StatusCode::INVALID_FIELD);
    // A flush of all namespaces flushes the remaining namespaces.
    completion(second).expect_success();
    host.reap(0)[0].expect_success();
    host.testbed.subsystem.check_invariants();
    host.io(read(0, 8, DATA, 0)).expect_success();
}

#[test]
fn a_flush_of_all_namespaces_does_without_one_that_goes() {
    let mut host = host();
    host.put(1, flush(BROADCAST_NSID));
    host.fetch(1, false);
    assert_eq!(host.testbed.blocks[0].nsid, 1, "the media flush the first one");
    host.put(0, management(1, 1));
    host.fetch(0, false);
    assert!(host.testbed.serve_store());
    host.testbed.settle();
    host.reap(1)[0].expect_success();
    assert_eq!(host.testbed.media.log, [(2, "flush")]);
    // A failed flush makes the command fail too.
    host.testbed.media.failure = Some(nvme::block::Error::Media);
    let done = host.io(flush(BROADCAST_NSID));
    assert_eq!(done.status.code, StatusCode::WRITE_FAULT);
}

#[test]
fn commands_that_wait_for_the_buffer_end_too() {
    let mut settings = config().settings;
    (settings.max_transfer_shift, settings.buffer) = (1, 8192);
    let mut host = host();
    host.testbed.settle();
    host.testbed.power_cycle(&settings);
    host.testbed.enumerate(true);
    host.start();
    for slba in 0..3 {
        host.put(1, Command { nsid: 2, ..read(slba, 2, DATA, page(1)) });
    }
    host.fetch(1, false);
    // The media execute the first command; the other commands wait for the buffer.
    host.put(0, management(1, 2));
    host.fetch(0, false);
    assert!(host.testbed.serve_store());
    host.testbed.settle();
    let done = host.reap(1);
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|one| one.status.code == StatusCode::INVALID_FIELD));
    host.testbed.subsystem.check_invariants();
}

#[test]
fn a_feature_saved_while_its_namespace_is_deleted_goes_with_it() {
    let mut host = host();
    host.put(0, management(1, 1));
    let save = u32::from(feature::ERROR_RECOVERY) | 1 << 31;
    host.put(0, Command { nsid: 1, cdw10: save, ..set_feature(0, 7) });
    host.carry_out(0);
    assert!(host.reap(0).iter().all(|done| done.status.is_success()));
    let state = State::decode(&host.testbed.store.records).unwrap();
    assert_eq!((state.namespaces.len(), state.features), (1, vec![]));
}

#[test]
fn concurrent_namespace_changes_are_serialized() {
    let mut host = host();
    host.testbed.put(DATA, &bytes(wanted(8)));
    let first = host.put(0, management(0, 0));
    let second = host.put(0, management(1, 2));
    host.carry_out(0);
    let done = host.reap(0);
    let status = |cid| done.iter().find(|one| one.cid == cid).unwrap().status;
    // Both commands were fetched at once. The deletion needs no data, so it is executed first.
    assert_eq!(status(second), Status::SUCCESS);
    assert!(status(first).is_success() || status(first).code == StatusCode::COMMAND_INTERRUPTED);
    assert!(!status(first).do_not_retry);
}

#[test]
fn a_reset_ends_the_command_and_not_the_change() {
    let mut host = host();
    host.put(0, management(1, 2));
    host.fetch(0, false);
    assert_eq!(host.testbed.store.commits.len(), 1);
    host.configure(entry_sizes());
    host.testbed.settle();
    host.enable(32);
    host.testbed.settle();
    assert_eq!(host.identify(cns::ALLOCATED_NAMESPACES, 0), namespace_list([1]));
}

#[test]
fn a_drive_without_records_manages_no_namespaces() {
    let mut host = Host::new(config());
    for opcode in [admin::NAMESPACE_MANAGEMENT, admin::NAMESPACE_ATTACHMENT] {
        let command = Command { opcode, ..management(1, 1) };
        host.admin(command).expect_failure(StatusCode::INVALID_OPCODE);
    }
    let controller = host.controller_data();
    assert_eq!(controller.admin_commands & 0b1010, 0);
    let effects = CommandsSupported::decode(&host.log(log_page::EFFECTS));
    assert_eq!(effects.admin[usize::from(admin::NAMESPACE_MANAGEMENT)].bits(), 0);
}

#[test]
fn a_namespace_is_write_protected_until_the_host_says_otherwise() {
    let mut host = host();
    let controller = host.controller_data();
    assert_eq!(controller.write_protection, 1);
    let set = |value| Command { nsid: 1, ..set_feature(feature::WRITE_PROTECTION, value) };
    let get = Command { nsid: 1, ..get_feature(feature::WRITE_PROTECTION, 0) };
    host.testbed.media.log.clear();
    host.admin(set(1)).expect_success();
    assert_eq!(host.testbed.media.log, [(1, "flush")]);
    assert_eq!(host.admin(get).expect_success(), 1);
    let found = host.namespace_data(1);
    assert_eq!(found.attributes, IdentifyNamespace::WRITE_PROTECTED);
    host.io(write(0, 1, DATA, 0)).expect_failure(StatusCode::NAMESPACE_WRITE_PROTECTED);
    host.io(read(0, 1, DATA, 0)).expect_success();
    host.testbed.power_cycle(&config().settings);
    host.testbed.enumerate(true);
    host.start();
    host.io(write(0, 1, DATA, 0)).expect_failure(StatusCode::NAMESPACE_WRITE_PROTECTED);
    host.admin(set(0)).expect_success();
    assert_eq!(host.admin(get).expect_success(), 0);
    host.io(write(0, 1, DATA, 0)).expect_success();
    // Protection until a power cycle, permanent protection, a reserved value; then with SV, and for
    // all namespaces.
    for value in [2, 3, 4] {
        host.admin(set(value)).expect_failure(StatusCode::INVALID_FIELD);
    }
    let saved = Command { cdw10: 1 << 31 | 0x84, ..set(1) };
    host.admin(saved).expect_failure(StatusCode::FEATURE_NOT_SAVEABLE);
    let all = Command { nsid: BROADCAST_NSID, ..set(1) };
    host.admin(all).expect_failure(StatusCode::INVALID_NAMESPACE);
}
