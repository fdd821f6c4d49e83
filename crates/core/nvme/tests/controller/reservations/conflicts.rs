//! The table of commands in the presence of a reservation (NVM Express 2.2, figure 647).

use super::*;

/// What a host of the namespace is: holder of the reservation, registrant, or neither.
#[derive(Clone, Copy, Debug)]
enum Role {
    Holder,
    Registrant,
    Stranger,
}

/// Whether commands of the read group and of the write group conflict, for a registrant that is not
/// a holder and for a host without registration. Figure 647 has a column for each.
const TABLE: [(ReservationType, [[bool; 2]; 2]); 6] = [
    (ReservationType::WriteExclusive, [[false, true], [false, true]]),
    (ReservationType::ExclusiveAccess, [[true, true], [true, true]]),
    (ReservationType::WriteExclusiveRegistrantsOnly, [[false, false], [false, true]]),
    (ReservationType::ExclusiveAccessRegistrantsOnly, [[false, false], [true, true]]),
    (ReservationType::WriteExclusiveAllRegistrants, [[false, false], [false, true]]),
    (ReservationType::ExclusiveAccessAllRegistrants, [[false, false], [true, true]]),
];

fn conflicts(kind: ReservationType, role: Role, group: usize) -> bool {
    let (_, [registrant, stranger]) = TABLE.into_iter().find(|(one, _)| *one == kind).unwrap();
    match role {
        Role::Holder => false,
        Role::Registrant => registrant[group],
        Role::Stranger => stranger[group],
    }
}

/// The commands of the read group and of the write group: queue and command.
fn groups() -> [Vec<(u16, Command)>; 2] {
    let io = |opcode| (1, Command { opcode, ..read(0, 1, DATA, 0) });
    let admin = |opcode, cdw10| (0, Command { opcode, nsid: 1, cdw10, ..Command::default() });
    let reads =
        vec![io(nvm::READ), io(nvm::COMPARE), io(nvm::VERIFY), admin(admin::SECURITY_RECEIVE, 0)];
    let (queue, copy) = io(nvm::COPY);
    let deallocate = Command { opcode: nvm::DATASET_MANAGEMENT, cdw11: 4, ..copy };
    let writes = vec![
        io(nvm::WRITE),
        io(nvm::WRITE_ZEROES),
        io(nvm::WRITE_UNCORRECTABLE),
        (queue, deallocate),
        (queue, copy),
        (queue, flush(1)),
        (queue, flush(u32::MAX)),
        admin(admin::SECURITY_SEND, 0),
        admin(admin::FORMAT, 0),
        // Detach, from an empty controller list.
        admin(admin::NAMESPACE_ATTACHMENT, 1),
        // An invalid action, so that the drive does not change.
        admin(admin::NAMESPACE_MANAGEMENT, 2),
        (0, Command { nsid: 0, ..admin(admin::SANITIZE, 0).1 }),
    ];
    [reads, writes]
}

/// Sends every command, and compares conflicts with the table.
fn check(host: &mut Host, kind: ReservationType, role: Role) {
    for (group, commands) in groups().into_iter().enumerate() {
        for (queue, command) in commands {
            host.testbed.put(DATA, &[0; 4096]);
            let done = host.execute(queue, command);
            let conflict = done.status == Status::retry(CONFLICT);
            let expected = conflicts(kind, role, group);
            assert_eq!(conflict, expected, "{kind:?}, {role:?}, queue {queue}, {command:?}");
        }
    }
    // All other commands are allowed.
    host.io(Command { nsid: 2, ..write(0, 1, DATA, 0) });
    host.namespace_data(1);
    host.admin(set_feature(feature::ARBITRATION, 0)).expect_success();
}

#[test]
fn commands_conflict_as_in_the_table() {
    for (kind, _) in TABLE {
        let mut two = registered();
        let all = kind as u32 >= 5;
        reserve(two.at(0), acquire(0, kind as u32), [KEYS[0], 0]).expect_success();
        check(two.at(0), kind, Role::Holder);
        check(two.at(1), kind, if all { Role::Holder } else { Role::Registrant });
        reserve(two.at(1), register(1), [KEYS[1], 0]).expect_success();
        check(two.at(1), kind, Role::Stranger);
        // A host without identifier is neither holder nor registrant.
        identify(two.at(1), &[0; 8]).expect_success();
        check(two.at(1), kind, Role::Stranger);
        assert_eq!(summary(two.at(0)).0, kind as u8);
    }
}

#[test]
fn fused_operation_conflicts_with_its_write() {
    let mut two = registered();
    reserve(two.at(0), acquire(0, 1), [KEYS[0], 0]).expect_success();
    let host = two.at(1);
    let compare = Command { opcode: nvm::COMPARE, fuse: 1, ..read(0, 1, DATA, 0) };
    host.put(1, compare);
    host.put(1, Command { fuse: 2, ..write(0, 1, DATA, 0) });
    host.carry_out(1);
    let codes: Vec<StatusCode> = host.reap(1).iter().map(|done| done.status.code).collect();
    assert_eq!(codes, [StatusCode::ABORTED_FAILED_FUSED, CONFLICT]);
}

#[test]
fn namespace_deletion_needs_access_and_ends_registrations() {
    let mut two = registered();
    reserve(two.at(0), acquire(0, 2), [KEYS[0], 0]).expect_success();
    let delete =
        |nsid| Command { opcode: admin::NAMESPACE_MANAGEMENT, nsid, cdw10: 1, ..register(1) };
    for nsid in [1, u32::MAX] {
        two.at(1).admin(delete(nsid)).expect_conflict();
    }
    two.at(0).admin(delete(1)).expect_success();
    assert!(!two.at(0).testbed.store.records.contains_key("reservations"));
}
