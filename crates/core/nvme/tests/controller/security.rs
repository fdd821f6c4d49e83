//! Security Receive and Security Send.

use super::*;

fn receive(protocol: u32, specific: u32, length: u32) -> Command {
    Command {
        opcode: opcode::admin::SECURITY_RECEIVE,
        prp1: DATA,
        cdw10: protocol << 24 | specific << 8,
        cdw11: length,
        ..Command::default()
    }
}

#[test]
fn a_host_finds_that_there_is_one_protocol_and_no_certificate() {
    let mut host = Host::new(config());
    host.testbed.put(DATA, &[0xff; 64]);
    host.admin(receive(0, 0, 16)).expect_success();
    let list = host.testbed.load(DATA, 17).unwrap();
    assert_eq!(list, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff]);
    host.testbed.put(DATA, &[0xff; 64]);
    host.admin(receive(0, 1, 4)).expect_success();
    assert_eq!(host.testbed.load(DATA, 5).unwrap(), [0, 0, 0, 0, 0xff]);
    host.admin(receive(0, 0, 0)).expect_success();
}

#[test]
fn other_protocols_and_lengths_are_refused() {
    let mut host = Host::new(config());
    for (protocol, specific) in [(1, 1), (2, 0), (0xea, 1)] {
        let status = host.admin(receive(protocol, specific, 512)).status;
        assert_eq!(status, Status::fail(StatusCode::INVALID_FIELD), "not logged");
    }
    host.admin(receive(0, 2, 16)).expect_failure(StatusCode::INVALID_FIELD);
    host.admin(receive(0, 0, (128 << 10) + 4)).expect_failure(StatusCode::INVALID_FIELD);
    let send = Command { opcode: opcode::admin::SECURITY_SEND, ..receive(0, 0, 16) };
    host.admin(send).expect_failure(StatusCode::INVALID_FIELD);
}
