//! Links of several connections.

use super::*;
use wire::frame::LinkConnection;

/// A device whose links have up to three connections with four queue pairs each.
fn device() -> Shell {
    let connection = Some(LinkConnection { link: 0, number: 3, queue_pairs: 4 });
    Shell::with(Settings { connection, ..Settings::new(Role::Device, 1) }, |node| node)
}

/// Connection `number` of a host's link.
fn connection(link: u128, number: u16, queue_pairs: u16) -> Settings {
    let connection = Some(LinkConnection { link, number, queue_pairs });
    Settings { connection, ..Settings::new(Role::Host, 2) }
}

impl Shell {
    fn connection(&mut self, settings: Settings, name: Option<&str>) -> PathId {
        let path = self.accept(Tunnel::new(settings), Rights::ALL, true, name);
        self.settle();
        path
    }
}

#[test]
fn further_connection_of_present_link_goes_to_its_node() {
    let mut shell = device();
    shell.connection(connection(7, 0, 4), Some("a"));
    let further = shell.connection(connection(7, 2, 4), Some("a"));
    let (path, number, greeting) = shell.further.pop().expect("a further connection");
    assert_eq!((path, number), (further, 2));
    assert_eq!(shell.peer(further).closed, None);
    // The node of the connection takes the path with these bytes.
    let own = Some(LinkConnection { link: 0, number: 1, queue_pairs: 4 });
    let settings = Settings { connection: own, ..Settings::new(Role::Device, 1) };
    let mut part = DeviceNode::new(settings, Stub::default());
    let (rights, peer) = (Rights::ALL, Some("a".into()));
    let accepted = path::Input::Accepted { signals_close: true, rights, peer };
    part.handle(shell.now, path, accepted);
    part.handle(shell.now, path, path::Input::Received(greeting));
    part.handle(shell.now, path, path::Input::Room(1 << 20));
    assert_eq!(part.poll(shell.now), Output::Linked { path, goes_on: false });
    assert_eq!(part.link_name(), Some(7));
}

#[test]
fn further_connection_without_its_link_is_rejected() {
    let mut shell = device();
    let early = shell.connection(connection(7, 1, 4), Some("a"));
    shell.rejected(early, Reject::NoLink);
    shell.connection(connection(7, 0, 4), Some("a"));
    shell.events();
    let others = [
        (connection(8, 1, 4), Some("a")),
        (connection(7, 1, 4), Some("b")),
        (connection(7, 1, 4), None),
        (connection(7, 3, 4), Some("a")),
    ];
    for (settings, name) in others {
        let path = shell.connection(settings, name);
        shell.rejected(path, Reject::NoLink);
    }
    assert_eq!(shell.further, []);
    // A link of one connection has no further ones.
    let mut shell = device();
    shell.host(0);
    shell.events();
    let path = shell.connection(connection(0, 1, 4), None);
    shell.rejected(path, Reject::NoLink);
}

#[test]
fn session_ends_with_its_own_link_only() {
    let mut shell = device();
    let first = shell.connection(connection(7, 0, 4), None);
    assert_eq!(shell.events(), [Event::HostUp(first)]);
    shell.node.end_session(8);
    shell.settle();
    assert_eq!(shell.events(), []);
    shell.node.end_session(7);
    shell.settle();
    assert_eq!(shell.events(), [Event::HostDown(Some(first), Cause::OtherConnection)]);
    assert_eq!(shell.peer(first).last(), Some(&tunnel::Output::Down(Cause::Goodbye)));
}

#[test]
fn host_refuses_device_with_other_queue_pairs() {
    let plain = Shell::new(|node| node);
    for (mut shell, theirs) in [(device(), 4), (plain, 0)] {
        let path = shell.connection(connection(7, 0, 2), None);
        let down = tunnel::Output::Down(Cause::QueuePairs { own: 2, theirs });
        assert_eq!(shell.peer(path).last(), Some(&down));
        assert_eq!(shell.node.link_name(), None);
    }
}
