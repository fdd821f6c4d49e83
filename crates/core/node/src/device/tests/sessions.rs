//! Hosts whose sessions go on over another path, or are replaced.

use super::*;

const SURVIVE: Duration = Duration::from_ms(10_000);

fn device() -> Shell {
    Shell::with(Settings { survive: SURVIVE, ..Settings::new(Role::Device, 1) }, |node| node)
}

/// A host's process.
fn process(instance: u64) -> Settings {
    Settings { survive: SURVIVE, ..Settings::new(Role::Host, instance) }
}

impl Shell {
    /// A host connects as a peer of this name.
    fn attach(&mut self, instance: u64, name: Option<&str>) -> PathId {
        let path = self.accept(Tunnel::new(process(instance)), Rights::ALL, true, name);
        self.settle();
        path
    }

    /// The host of `path` loses it and connects again, as a peer of this name.
    fn returns(&mut self, path: PathId, name: Option<&str>) -> PathId {
        let stand_in = Tunnel::new(process(99));
        let now = self.now;
        let peer = self.peer(path);
        peer.alive = false;
        let mut tunnel = std::mem::replace(&mut peer.tunnel, stand_in);
        tunnel.handle(now, tunnel::Input::Disconnected);
        assert!(matches!(tunnel.poll(now), tunnel::Output::PathLost(..)));
        let next = self.accept(tunnel, Rights::ALL, true, name);
        self.settle();
        next
    }

    fn resets(&self) -> usize {
        self.node.function().resets.len()
    }
}

#[test]
fn a_host_goes_on_over_another_path() {
    // The node notices the loss before or after the host returns.
    for noticed in [true, false] {
        let mut shell = device();
        let first = shell.attach(7, None);
        assert_eq!(shell.events(), [Event::HostUp(first)]);
        let resets = shell.resets();
        if noticed {
            shell.gone(first);
            shell.settle();
        }
        // What the function sends meanwhile waits.
        shell.node.function_mut().sends.push_back(write(3, 64));
        shell.settle();
        let second = shell.returns(first, None);
        let lost = Event::HostInterrupted(first, Cause::Disconnected);
        assert_eq!(shell.events(), [lost, Event::HostResumed(second)]);
        assert_eq!((shell.node.link(), shell.resets()), (Some(second), resets));
        assert_eq!(shell.peer(first).closed, Some(false));
        let peer = shell.peer(second);
        assert_eq!(peer.tunnel.pop(Ready::ALL), Some(write(3, 64)));
        peer.tunnel.push(write(4, 64));
        shell.settle();
        assert_eq!(shell.node.function().received, [write(4, 64)]);
    }
}

#[test]
fn a_session_belongs_to_its_name_and_to_its_hosts_key() {
    for (owner, other) in [(Some("a"), Some("b")), (Some("a"), None), (None, Some("b"))] {
        let mut shell = device();
        let first = shell.attach(7, owner);
        shell.gone(first);
        shell.settle();
        shell.events();
        let thief = shell.returns(first, other);
        shell.rejected(thief, Reject::NoSession);
    }
    // A process that does not know the name.
    let (mut shell, mut elsewhere) = (device(), device());
    let path = elsewhere.attach(8, None);
    let first = shell.attach(7, None);
    shell.gone(first);
    shell.settle();
    shell.events();
    let foreign = std::mem::replace(&mut elsewhere.peer(path).tunnel, Tunnel::new(process(1)));
    shell.peer(first).tunnel = foreign;
    let thief = shell.returns(first, None);
    shell.rejected(thief, Reject::NoSession);
}

#[test]
fn other_hosts_wait_until_the_session_is_over() {
    let mut shell = device();
    let first = shell.attach(7, None);
    shell.gone(first);
    shell.settle();
    shell.events();
    let early = shell.attach(8, None);
    shell.rejected(early, Reject::Interrupted);
    let old = shell.connect(Settings::new(Role::Host, 9), true);
    shell.settle();
    shell.rejected(old, Reject::Busy);
    shell.wait(Duration::from_ms(11_900));
    assert_eq!(shell.events(), []);
    shell.wait(Duration::from_ms(200));
    assert_eq!(shell.events(), [Event::HostDown(None, Cause::Disconnected)]);
    let late = shell.attach(8, None);
    assert_eq!(shell.events(), [Event::HostUp(late)]);
}

/// A restarted host with the same key, and a host that has given its session up.
#[test]
fn the_same_host_replaces_its_session_at_once() {
    for (instance, name) in [(8, Some("a")), (7, Some("a")), (7, None)] {
        let mut shell = device();
        let first = shell.attach(7, name);
        shell.gone(first);
        shell.settle();
        shell.events();
        let again = shell.attach(instance, name);
        let down = Event::HostDown(None, Cause::SessionGone);
        assert_eq!(shell.events(), [down, Event::HostUp(again)], "{instance} {name:?}");
    }
}

#[test]
fn a_device_that_moves_or_ends_meanwhile_keeps_no_session() {
    let mut shell = device();
    shell.node = DeviceNode::new(
        Settings { survive: SURVIVE, ..Settings::new(Role::Device, 1) },
        Stub::default(),
    )
    .in_group(Some(0));
    let first = shell.attach(7, None);
    shell.gone(first);
    shell.settle();
    shell.events();
    shell.node.move_to(shell.now, 5);
    shell.settle();
    assert_eq!(shell.events(), [Event::HostDown(None, Cause::Moved)]);
    let mut shell = device();
    let first = shell.attach(7, None);
    let resets = shell.resets();
    shell.gone(first);
    shell.settle();
    shell.events();
    shell.node.shut_down();
    shell.settle();
    assert_eq!((shell.events(), shell.resets()), (vec![], resets), "and is not reset");
}

#[test]
fn a_refused_host_has_no_session_to_go_on_with() {
    let mut shell = device();
    let first = shell.attach(7, Some("a"));
    shell.events();
    shell.node.handle(shell.now, first, path::Input::Refused("no longer accepted".into()));
    shell.settle();
    let why = Cause::Refused("no longer accepted".into());
    assert_eq!(shell.events(), [Event::HostDown(Some(first), why)]);
    assert_eq!(shell.peer(first).last(), Some(&tunnel::Output::Down(Cause::Goodbye)));
}
