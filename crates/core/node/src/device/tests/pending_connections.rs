//! Further connections while a host is served.

use super::*;
use crate::Groups;

fn moved(shell: &mut Shell, probe: PathId, group: u16) -> Moved {
    shell.peer(probe).tunnel.move_to(group);
    shell.settle();
    match shell.peer(probe).last() {
        Some(tunnel::Output::Moved(moved)) => *moved,
        other => panic!("{other:?} in place of an answer"),
    }
}

#[test]
fn a_probe_is_answered_beside_the_host() {
    let mut shell = Shell::new(|node| node);
    let host = shell.host(0);
    let probe = shell.probe();
    shell.peer(probe).tunnel.echo(42);
    shell.settle();
    assert_eq!(shell.peer(probe).last(), Some(&tunnel::Output::EchoReply(42)));
    // For any time, because keepalives pass in both directions.
    shell.wait(Duration::from_ms(5_000));
    assert_eq!(shell.peer(probe).closed, None);
    shell.peer(probe).tunnel.goodbye();
    shell.settle();
    assert_eq!(shell.peer(probe).closed, Some(false));
    assert_eq!(shell.events(), [Event::HostUp(host)]);
}

#[test]
fn a_move_disconnects_a_host_of_another_group() {
    let mut shell = Shell::new(|node| node.in_group(Some(0)));
    let (host, by) = (shell.host(1), shell.probe());
    shell.events();
    let status = MoveStatus::Done;
    let stays = Moved { status, host: HostAfter::Stays, awaited: false, from: 0, to: 1 };
    assert_eq!(moved(&mut shell, by, 1), stays);
    assert_eq!(shell.events(), [Event::Moved { by, group: 1, answer: stays }]);
    let waits = shell.host(2);
    shell.rejected(waits, Reject::Group(Some((1, 2))));
    let answer = Moved { status, host: HostAfter::Disconnected, awaited: true, from: 1, to: 2 };
    assert_eq!(moved(&mut shell, by, 2), answer);
    let expected =
        [Event::Moved { by, group: 2, answer }, Event::HostDown(Some(host), Cause::Moved)];
    assert_eq!(shell.events(), expected);
    assert_eq!(shell.peer(host).last(), Some(&tunnel::Output::Down(Cause::Goodbye)));
    assert_eq!(shell.peer(host).closed, Some(true));
    assert_eq!(shell.node.function().resets, [0, 0]);
    let back = shell.host(1);
    shell.rejected(back, Reject::Group(Some((2, 1))));
    let next = shell.host(2);
    assert_eq!(shell.node.link(), Some(next));
    // A connection that was refused two seconds ago is closed.
    shell.wait(Duration::from_ms(2_000));
    assert!(!moved(&mut shell, by, 1).awaited);
    let none = Moved { status, host: HostAfter::None, awaited: false, from: 1, to: 0 };
    assert_eq!(moved(&mut shell, by, 0), none);
}

#[test]
fn move_is_refused_by_node_without_group() {
    for (status, mut shell) in [
        (MoveStatus::Fixed, Shell::new(|node| node)),
        (MoveStatus::Switch, Shell::new(DeviceNode::for_switch)),
    ] {
        let (host, by) = (shell.host(1), shell.probe());
        let answer = Moved { status, host: HostAfter::Stays, awaited: false, from: 0, to: 0 };
        assert_eq!(moved(&mut shell, by, 7), answer);
        assert_eq!(shell.events()[1..], [Event::Moved { by, group: 7, answer }]);
        assert_eq!(shell.node.link(), Some(host));
    }
}

#[test]
fn host_attaches_only_as_the_groups_of_its_key() {
    let mut shell = Shell::new(|node| node.in_group(Some(0)));
    let rights = Rights { attach: Groups::Listed(vec![2, 3]), ..Rights::default() };
    for (group, allowed) in [(1, false), (0, false), (3, true)] {
        let settings = Settings { group, ..Settings::new(Role::Host, 2) };
        let host = shell.connect_with(rights.clone(), settings, true);
        shell.settle();
        match allowed {
            true => assert_eq!(shell.node.link(), Some(host)),
            false => shell.rejected(host, Reject::Unauthorized),
        }
    }
}

#[test]
fn probe_needs_the_right_to_probe_and_to_move() {
    let mut shell = Shell::new(|node| node.in_group(Some(0)));
    let host = shell.host(1);
    let only = |move_device, probe| Rights { move_device, probe, ..Rights::default() };
    let probe = Settings::new(Role::Probe, 3);
    let none =
        shell.connect_with(Rights { attach: Groups::Any, ..only(false, false) }, probe, true);
    shell.settle();
    shell.rejected(none, Reject::Unauthorized);
    let prober = shell.connect_with(only(false, true), probe, true);
    let mover = shell.connect_with(only(true, false), probe, true);
    shell.settle();
    shell.events();
    let (status, stays) = (MoveStatus::Unauthorized, HostAfter::Stays);
    let refused = Moved { status, host: stays, awaited: false, from: 0, to: 0 };
    assert_eq!(moved(&mut shell, prober, 2), refused);
    assert_eq!(shell.events(), [Event::Moved { by: prober, group: 2, answer: refused }]);
    assert_eq!(shell.node.link(), Some(host));
    assert_eq!(moved(&mut shell, mover, 1).status, MoveStatus::Done);
}

#[test]
fn move_request_is_dropped_when_prober_disconnects() {
    let mut shell = Shell::new(|node| node.in_group(Some(1)));
    let (host, by) = (shell.host(1), shell.probe());
    shell.peer(by).tunnel.move_to(2);
    shell.bring();
    shell.gone(by);
    shell.settle();
    assert_eq!((shell.events(), shell.node.link()), (vec![Event::HostUp(host)], Some(host)));
}

#[test]
fn unknown_protocol_is_reported_even_after_disconnect() {
    let mut shell = Shell::new(|node| node);
    let stays = shell.stranger(b"GET / HTTP/1.1\r\n\r\n");
    let goes = shell.stranger(b"hello\r\n");
    shell.gone(goes);
    let without_hello = shell.stranger(b"");
    shell.gone(without_hello);
    shell.act();
    let away = |path, bytes: &[u8]| Event::Rejected(path, Cause::UnknownProtocol(bytes.to_vec()));
    assert_eq!(shell.events(), [away(stays, b"GET / HTTP/1"), away(goes, b"hello\r\n")]);
    for path in [stays, goes, without_hello] {
        assert_eq!(shell.peer(path).closed, Some(false));
    }
    assert_eq!(shell.node.without_hello(), 1);
}

#[test]
fn connection_without_hello_is_closed_after_two_seconds() {
    let mut shell = Shell::new(|node| node);
    let without_hello = shell.stranger(b"");
    // The start of a greeting is not a greeting.
    let slow = shell.stranger(b"\x00\x30\x01\x00\0\0\0\0\0\0\0\0FARLANE\0");
    shell.act();
    shell.now = shell.timer.expect("their patience ends");
    assert_eq!(shell.now, Instant::ZERO + Duration::from_ms(2_000));
    shell.act();
    assert_eq!([without_hello, slow].map(|path| shell.peer(path).closed), [Some(false); 2]);
    assert_eq!((shell.node.without_hello(), shell.events()), (2, vec![]));
}

#[test]
fn seventeenth_pending_connection_closes_the_oldest_without_hello() {
    let mut shell = Shell::new(|node| node);
    let host = shell.host(0);
    let first = shell.probe();
    let without_hello: Vec<PathId> = (0..15).map(|_| shell.stranger(b"")).collect();
    shell.act();
    for (closed, path) in without_hello.into_iter().enumerate() {
        assert_eq!(shell.peer(path).closed, None);
        shell.probe();
        assert_eq!(shell.peer(path).closed, Some(false));
        assert_eq!(shell.node.without_hello(), closed as u64 + 1);
    }
    assert_eq!([host, first].map(|path| shell.peer(path).closed), [None; 2]);
    shell.probe();
    assert_eq!(shell.peer(first).closed, Some(false), "all have greeted");
}
