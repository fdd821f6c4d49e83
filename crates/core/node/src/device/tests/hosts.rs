//! The host that is served, and the next one.

use super::*;

#[test]
fn host_connects_exchanges_tlps_and_leaves_with_goodbye() {
    let mut shell = Shell::new(|node| node);
    let host = shell.host(0);
    assert_eq!(shell.events(), [Event::HostUp(host)]);
    assert_eq!(shell.node.link(), Some(host));
    assert_eq!(shell.linked.len(), 1);
    shell.peer(host).tunnel.push(write(7, 64));
    shell.node.function_mut().sends.push_back(write(8, 128));
    shell.settle();
    assert_eq!(shell.node.function().received, [write(7, 64)]);
    assert_eq!(shell.peer(host).tunnel.pop(Ready::ALL), Some(write(8, 128)));
    shell.peer(host).tunnel.goodbye();
    shell.settle();
    assert_eq!(shell.events(), [Event::HostDown(Some(host), Cause::Goodbye)]);
    assert_eq!(shell.peer(host).closed, Some(false));
    assert_eq!(shell.node.function().resets, [0, 1], "at the start and at the end");
    let next = shell.host(0);
    assert_eq!(shell.events(), [Event::HostUp(next)]);
}

#[test]
fn tlps_received_before_disconnect_are_delivered_before_reset() {
    let mut shell = Shell::new(|node| node);
    let host = shell.host(0);
    shell.peer(host).tunnel.push(write(7, 64));
    shell.bring();
    shell.gone(host);
    shell.settle();
    assert_eq!(shell.node.function().resets, [0, 1]);
    let events = shell.events();
    assert_eq!(events[1..], [Event::HostDown(Some(host), Cause::Disconnected)]);
    assert_eq!(shell.peer(host).closed, Some(false));
}

#[test]
fn silent_host_is_lost_after_loss_timeout() {
    let mut shell = Shell::new(|node| node);
    let host = shell.host(0);
    shell.peer(host).alive = false;
    let heard = shell.now;
    while shell.node.link().is_some() {
        shell.now = shell.timer.expect("a timer while there is a link");
        shell.settle();
    }
    assert_eq!(shell.now, heard + Duration::from_ms(800));
    assert_eq!(shell.events()[1..], [Event::HostDown(Some(host), Cause::Lost)]);
}

/// The node runs late; bytes that arrived meanwhile count.
#[test]
fn late_node_keeps_hosts_whose_bytes_have_arrived() {
    let mut shell = Shell::new(|node| node);
    let host = shell.host(0);
    let late = shell.connect(Settings::new(Role::Probe, 3), true);
    shell.act();
    // The hosts write now; the node reads much later.
    shell.peer(host).tunnel.push(write(1, 64));
    let mut waits = Vec::new();
    for path in [host, late] {
        let now = shell.now;
        let peer = shell.peer(path);
        peer.tunnel.handle(now, tunnel::Input::CanTransmit { bytes: 1 << 20 });
        while let tunnel::Output::Transmit(_, bytes) = peer.tunnel.poll(now) {
            waits.push((path, bytes));
        }
    }
    assert_eq!(waits.len(), 2);
    shell.now += Duration::from_ms(3_000);
    for (path, bytes) in waits {
        shell.node.handle(shell.now, path, path::Input::Received(bytes));
    }
    shell.act();
    assert_eq!(shell.events(), [Event::HostUp(host)]);
    assert_eq!((shell.node.link(), shell.peer(host).closed), (Some(host), None));
    assert_eq!(shell.node.function().received, [write(1, 64)]);
    assert_eq!((shell.peer(late).closed, shell.node.without_hello()), (None, 0));
}

#[test]
fn second_host_is_rejected_with_reason() {
    let mut shell = Shell::new(|node| node.in_group(Some(1)));
    let early = shell.host(2);
    shell.rejected(early, Reject::Group(Some((1, 2))));
    let host = shell.host(1);
    assert_eq!(shell.events(), [Event::HostUp(host)]);
    let second = shell.host(1);
    shell.rejected(second, Reject::Busy);
    let other = shell.host(3);
    shell.rejected(other, Reject::Group(Some((1, 3))));
    shell.wait(Duration::from_ms(5_000));
    assert_eq!((shell.events(), shell.node.link()), (vec![], Some(host)));
}

#[test]
fn of_two_that_greet_at_once_the_first_is_served() {
    let mut shell = Shell::new(|node| node);
    let [first, second] = [2, 3].map(|n| shell.connect(Settings::new(Role::Host, n), true));
    shell.settle();
    assert_eq!(shell.node.link(), Some(first));
    shell.rejected(second, Reject::Busy);
}

/// A path that does not signal its close may belong to a host that was killed.
#[test]
fn a_host_started_again_waits_for_the_loss_of_its_last_link() {
    let mut shell = Shell::new(|node| node);
    let settings = Settings::new(Role::Host, 2);
    let host = shell.connect(settings, false);
    shell.settle();
    shell.peer(host).alive = false;
    shell.wait(Duration::from_ms(100));
    let again = shell.connect(settings, false);
    shell.settle();
    assert_eq!((shell.node.link(), shell.peer(again).closed), (Some(host), None));
    shell.wait(Duration::from_ms(700));
    assert_eq!(shell.node.link(), Some(again));
    let expected = [Event::HostDown(Some(host), Cause::Lost), Event::HostUp(again)];
    assert_eq!(shell.events()[1..], expected);
}

#[test]
fn second_host_is_rejected_while_first_host_is_alive() {
    let mut shell = Shell::new(|node| node);
    let host = shell.connect(Settings::new(Role::Host, 2), false);
    shell.settle();
    let second = shell.connect(Settings::new(Role::Host, 3), false);
    shell.settle();
    shell.wait(Duration::from_ms(999));
    assert_eq!(shell.peer(second).closed, None);
    shell.wait(Duration::from_ms(1));
    assert_eq!(shell.peer(second).closed, Some(false));
    let away = Event::Rejected(second, Cause::Rejected(Reject::Busy));
    assert_eq!((shell.events()[1..].to_vec(), shell.node.link()), (vec![away], Some(host)));
    // A connection that sends more than a greeting before the reply does not wait.
    let third = shell.connect(Settings::new(Role::Host, 4), false);
    let more = Bytes::from_static(&[0; frame::HEADER + frame::MAX_HELLO]);
    shell.bring();
    shell.node.handle(shell.now, third, path::Input::Received(more));
    shell.act();
    assert_eq!(shell.peer(third).closed, Some(false));
}

#[test]
fn a_node_that_ends_sends_all_and_says_goodbye() {
    let mut shell = Shell::new(|node| node);
    assert!(shell.node.has_sent_all(), "without a host");
    let host = shell.host(0);
    assert!(shell.node.has_sent_all());
    shell.peer(host).room = 0;
    shell.node.function_mut().sends.push_back(write(8, 128));
    shell.settle();
    assert!(!shell.node.has_sent_all());
    shell.peer(host).room = 4096;
    shell.settle();
    assert!(shell.node.has_sent_all());
    shell.node.shut_down();
    shell.settle();
    assert_eq!(shell.peer(host).closed, Some(true));
    assert_eq!(shell.peer(host).last(), Some(&tunnel::Output::Down(Cause::Goodbye)));
    assert_eq!(shell.node.function().resets, [0], "it ends with what it has");
}

#[test]
fn shutdown_closes_host_without_room_and_sends_no_goodbye() {
    let mut shell = Shell::new(|node| node);
    let host = shell.host(0);
    shell.peer(host).room = 0;
    let heard = shell.peer(host).heard.len();
    shell.node.shut_down();
    shell.settle();
    assert_eq!((shell.peer(host).closed, shell.peer(host).heard.len()), (Some(true), heard));
}

#[test]
fn frames_leave_one_by_one_where_each_is_a_record() {
    let settings = Settings { aggregation: Policy::PerTlp, ..Settings::new(Role::Device, 1) };
    let mut shell = Shell::with(settings, |node| node);
    let host = shell.host(0);
    assert!(shell.node.tunnel().sends_records());
    shell.node.function_mut().sends.extend((0..5).map(|fill| write(fill, 64)));
    shell.settle();
    let heard = &shell.peer(host).heard;
    assert_eq!(heard.len(), 1 + 5, "the greeting, and a frame a TLP");
    for piece in heard {
        let header = frame::Header::decode(*piece.first_chunk().unwrap()).unwrap();
        assert_eq!(piece.len(), frame::HEADER + usize::from(header.length));
    }
}

#[test]
fn a_limit_holds_frames_back_but_no_goodbye() {
    let rate = "1M".parse().unwrap();
    let mut shell = Shell::new(|node| node.with_rate_limit(Some(rate)));
    let host = shell.host(0);
    let until = shell.node.rate_limited_until(shell.now).expect("the greeting was sent");
    shell.node.function_mut().sends.push_back(write(8, 128));
    let heard = shell.peer(host).heard.len();
    shell.settle();
    assert_eq!(shell.peer(host).heard.len(), heard);
    assert_eq!(shell.timer, Some(until));
    shell.now = until;
    shell.settle();
    assert_eq!(shell.peer(host).tunnel.pop(Ready::ALL), Some(write(8, 128)));
    assert!(shell.node.rate_limited_until(shell.now).is_some());
    shell.node.shut_down();
    shell.settle();
    assert_eq!(shell.peer(host).last(), Some(&tunnel::Output::Down(Cause::Goodbye)));
}
