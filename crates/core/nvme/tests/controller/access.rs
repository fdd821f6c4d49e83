//! Asymmetric namespace access: two controllers with different states.

use super::controllers::Two;
use super::*;
use nvme::NamespaceAccess::{self, Inaccessible, NonOptimized, Optimized};
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{
    AsyncEvent, BROADCAST_NSID, IdentifyController, IndependentNamespace, cns, feature_bits,
    log_page,
};

const INACCESSIBLE: StatusCode = StatusCode::ASYMMETRIC_ACCESS_INACCESSIBLE;
/// RGO: bit 0 of LSP.
const GROUPS_ONLY: u32 = 1 << 8;
/// Length in bytes of the page, as Linux and nvme-cli compute it: one group, two namespaces.
const LENGTH: usize = 16 + 32 + 4 * 2;

fn set(two: &mut Two, number: usize, access: NamespaceAccess) {
    let testbed = &mut two.at(number).testbed;
    testbed.subsystem.set_access(testbed.now, number as u16 + 1, access);
}

/// The page from byte `offset` on, read without RAE.
fn page(host: &mut Host, groups_only: u32, offset: u32, length: usize) -> Vec<u8> {
    let get = get_log(log_page::NAMESPACE_ACCESS, length, DATA);
    host.admin(Command { cdw10: get.cdw10 | groups_only, cdw12: offset, ..get }).expect_success();
    host.testbed.load(DATA, length).unwrap()
}

/// The change count of the page, the change count of the group, and the state.
fn summary(host: &mut Host) -> (u8, u8, u8) {
    let page = page(host, GROUPS_ONLY, 0, 48);
    (page[0], page[24], page[32])
}

fn enable_notices(host: &mut Host) {
    let value = feature_bits::NAMESPACE_ACCESS;
    host.admin(set_feature(feature::ASYNC_EVENT_CONFIG, value)).expect_success();
}

fn events(host: &mut Host) -> Vec<AsyncEvent> {
    host.testbed.settle();
    host.reap(0).iter().map(|done| AsyncEvent::from_bits(done.expect_success())).collect()
}

#[test]
fn only_several_controllers_report_access() {
    let mut two = Two::new();
    let data = two.at(1).controller_data();
    assert_eq!((data.multi_path, data.async_events & 1 << 11), (0b1010, 1 << 11));
    assert_eq!((data.access_transition, data.access_capabilities), (10, 0b100_0111));
    assert_eq!((data.max_access_group, data.access_groups), (1, 1));
    // Linux computes the length of the log page from MNAN, which may not be 0 or above NN.
    assert_eq!((data.max_namespaces, data.namespaces), (2, 2));
    assert_eq!(two.at(1).namespace_data(1).access_group, 1);
    let independent = two.at(1).identify(cns::INDEPENDENT_NAMESPACE, 1);
    assert_eq!(IndependentNamespace::decode(&independent).access_group, 1);
    // The same drive with one controller.
    let records = two.at(0).testbed.store.records.clone();
    let mut host = Host::started(Testbed::from_records(&config(), records));
    let alone = host.controller_data();
    let expected = IdentifyController {
        controller_id: 1,
        multi_path: 0,
        async_events: data.async_events & !(1 << 11),
        access_transition: 0,
        access_capabilities: 0,
        max_access_group: 0,
        access_groups: 0,
        max_namespaces: 0,
        ..data
    };
    assert_eq!(alone, expected);
    assert_eq!(host.namespace_data(1).access_group, 0);
    let get = get_log(log_page::NAMESPACE_ACCESS, 48, DATA);
    host.admin(get).expect_failure(StatusCode::INVALID_LOG_PAGE);
    let notices = set_feature(feature::ASYNC_EVENT_CONFIG, feature_bits::NAMESPACE_ACCESS);
    host.admin(notices).expect_failure(StatusCode::INVALID_FIELD);
    host.testbed.subsystem.set_access(host.testbed.now, 1, Inaccessible);
    host.io(read(0, 1, DATA, 0)).expect_success();
    // The records still name the missing controller.
    let delete = Command { nsid: 1, cdw10: 1, ..Command::default() };
    host.admin(Command { opcode: admin::NAMESPACE_MANAGEMENT, ..delete }).expect_success();
}

#[test]
fn access_log_lists_attached_namespaces() {
    let mut two = Two::new();
    set(&mut two, 0, NonOptimized);
    let mut golden = [0; LENGTH];
    // Change count, number of groups; group, number of NSIDs, change count, state, NSIDs.
    (golden[0], golden[8]) = (1, 1);
    (golden[16], golden[20], golden[24], golden[32]) = (1, 2, 2, 2);
    (golden[48], golden[52]) = (1, 2);
    let host = two.at(0);
    assert_eq!(page(host, 0, 0, LENGTH), golden);
    assert_eq!(page(host, 0, 16, 40), golden[16..]);
    let beyond = get_log(log_page::NAMESPACE_ACCESS, 4, DATA);
    let beyond = Command { cdw12: LENGTH as u32 + 4, ..beyond };
    host.admin(beyond).expect_failure(StatusCode::INVALID_FIELD);
    golden[20] = 0;
    assert_eq!(page(host, GROUPS_ONLY, 0, 48), golden[..48]);
    // Hosts read the longest page in pieces.
    assert_eq!(page(host, GROUPS_ONLY, LENGTH as u32, 4), [0; 4]);
    // The other controller has another state and only namespace 1, whose attachment is a change.
    let other = page(two.at(1), 0, 0, LENGTH);
    assert_eq!(
        [other[0], other[20], other[24], other[32], other[48], other[52]],
        [1, 1, 2, 1, 1, 0]
    );
    // Without attached namespaces, the page has no group.
    two.at(0).testbed.subsystem.detach(1, 2).unwrap();
    two.at(0).testbed.settle();
    assert_eq!(page(two.at(1), 0, 0, 48)[..12], [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn change_of_access_is_counted_and_announced() {
    let mut two = Two::new();
    enable_notices(two.at(0));
    two.at(0).request_event();
    two.at(1).request_event();
    set(&mut two, 0, Optimized);
    assert_eq!(events(two.at(0)), [], "it does not change");
    set(&mut two, 0, Inaccessible);
    assert_eq!(events(two.at(0)), [AsyncEvent::NAMESPACE_ACCESS_CHANGED]);
    // The next event follows the read of the page.
    two.at(0).request_event();
    set(&mut two, 0, NonOptimized);
    assert_eq!(events(two.at(0)), []);
    assert_eq!(summary(two.at(0)), (2, 3, 2));
    set(&mut two, 0, Optimized);
    assert_eq!(events(two.at(0)), [AsyncEvent::NAMESPACE_ACCESS_CHANGED]);
    assert_eq!((summary(two.at(0)), summary(two.at(1))), ((3, 4, 1), (1, 2, 1)));
    assert_eq!(events(two.at(1)), [], "another controller");
}

#[test]
fn notices_of_access_are_masked_by_default() {
    let mut two = Two::new();
    let host = two.at(1);
    host.request_event();
    set(&mut two, 1, NonOptimized);
    assert_eq!(events(two.at(1)), []);
    assert_eq!(summary(two.at(1)), (2, 3, 2));
    // An attachment changes the page, but has its own notice.
    enable_notices(two.at(1));
    two.at(0).testbed.subsystem.attach(2, 2).unwrap();
    two.at(0).testbed.settle();
    assert_eq!(events(two.at(1)), []);
    assert_eq!((summary(two.at(1)), summary(two.at(0))), ((3, 4, 2), (0, 1, 1)));
}

#[test]
fn commands_of_inaccessible_namespaces_fail() {
    let mut two = Two::new();
    two.at(0).put(1, read(0, 1, DATA, 0));
    two.at(0).fetch(1, false);
    set(&mut two, 0, Inaccessible);
    let host = two.at(0);
    host.testbed.settle();
    host.reap(1)[0].expect_success();
    let compare = Command { opcode: nvm::COMPARE, fuse: 1, ..read(0, 1, DATA, 0) };
    let register = Command { opcode: nvm::RESERVATION_REGISTER, nsid: 1, ..Command::default() };
    let commands = [read(0, 1, DATA, 0), write(0, 1, DATA, 0), flush(BROADCAST_NSID), register];
    for command in commands {
        // Without DNR, so that hosts use another path.
        assert_eq!(host.io(command).status, Status::retry(INACCESSIBLE), "{command:?}");
    }
    host.put(1, compare);
    host.put(1, Command { fuse: 2, ..write(0, 1, DATA, 0) });
    host.carry_out(1);
    let fused: Vec<StatusCode> = host.reap(1).iter().map(|done| done.status.code).collect();
    assert_eq!(fused, [INACCESSIBLE; 2]);
    let missing = Command { nsid: 3, ..read(0, 1, DATA, 0) };
    host.io(missing).expect_failure(StatusCode::INVALID_NAMESPACE);
    let logged = host.smart().error_log_entries;
    assert_eq!(logged, 1, "only the missing namespace is an error of the drive");
    two.at(1).io(read(0, 1, DATA, 0)).expect_success();
    for access in [NonOptimized, Optimized] {
        set(&mut two, 0, access);
        two.at(0).io(read(0, 1, DATA, 0)).expect_success();
    }
}

#[test]
fn admin_commands_of_inaccessible_namespaces() {
    let mut two = Two::new();
    let before = two.at(0).namespace_data(1);
    set(&mut two, 0, Inaccessible);
    let host = two.at(0);
    let after = host.namespace_data(1);
    assert_eq!((after.utilization, after.media_capacity), (0, 0));
    assert_eq!((after.size, after.capacity), (before.size, before.capacity));
    let of_it = |opcode| Command { opcode, nsid: 1, ..Command::default() };
    let recovery = Command { nsid: 1, ..get_feature(feature::ERROR_RECOVERY, 0) };
    let unavailable = [
        of_it(admin::FORMAT),
        of_it(admin::DEVICE_SELF_TEST),
        Command { cdw10: 1, ..of_it(admin::NAMESPACE_MANAGEMENT) },
        recovery,
        set_feature(feature::WRITE_ATOMICITY, 1),
        Command { nsid: BROADCAST_NSID, ..set_feature(feature::ARBITRATION, 1) },
    ];
    for command in unavailable {
        assert_eq!(host.admin(command).status, Status::retry(INACCESSIBLE), "{command:?}");
    }
    let arbitration = set_feature(feature::ARBITRATION, 1);
    let save = Command { cdw10: arbitration.cdw10 | 1 << 31, ..arbitration };
    host.admin(save).expect_failure(StatusCode::FEATURE_NOT_SAVEABLE);
    host.admin(arbitration).expect_success();
    set(&mut two, 0, Optimized);
    let host = two.at(0);
    for command in unavailable[3..].iter().chain([&save]) {
        host.admin(*command).expect_success();
    }
    assert_eq!(host.namespace_data(1), before);
}

#[test]
fn resets_and_saved_states_keep_access() {
    let mut two = Two::kept();
    set(&mut two, 1, Inaccessible);
    two.at(1).request_event();
    let state = two.save(1);
    two.kill(&[(1, &state)]);
    assert_eq!(summary(two.at(1)), (2, 3, 3), "as before the kill");
    let host = two.at(1);
    host.configure(entry_sizes());
    host.testbed.settle();
    host.start();
    // A reset sets the change count to 0 (NVMe 1.4, section 5.14.1.12). It is not counted as a change.
    assert_eq!(summary(host), (0, 1, 3));
    two.restart(nvme::Subsystem::open);
    assert_eq!(summary(two.at(1)), (0, 1, 1));
}
