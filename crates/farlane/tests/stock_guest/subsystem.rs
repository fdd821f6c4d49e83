//! A drive with two controllers: in one guest, and in two.

use crate::cli::drive::create;
use crate::cli::keys::Keys;
use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::{ANY, HostNode, Node, folder};

/// Private namespaces, and a shared one with two paths.
#[test]
fn one_guest_has_two_controllers() {
    let folder = folder::kept("two-controllers");
    let place = folder.join("drive");
    create(&place, "128M", &["size=16M"]);
    let (device, second) = Node::controllers([ANY; 2], &folder, "device", &place, &[]);
    let host = HostNode::start(&folder, "host", &[device.address(), second], &[]);
    let guest = Guest::builder("two-controllers/guest").drive(&host, 0).drive(&host, 1);
    let mut guest = guest.start();
    guest.run(&workload::subsystem("both"));
    guest.power_off();
    host.stop();
    device.stop();
}

#[test]
fn two_guests_share_a_namespace_by_reservations() {
    share("two-guests", &TYPES[2..4]);
}

/// Two guests, each with the controller that its key is for. `types` are the reservations to try.
pub fn share(name: &str, types: &[Type]) {
    let keys = Keys::new(&format!("{name}-keys"), &["store", "one", "two"]);
    keys.peers("store", "one {one} use controllers=1\ntwo {two} use controllers=2");
    keys.peers("one", "store {store} serve");
    keys.peers("two", "store {store} serve");
    let folder = folder::kept(name);
    let place = folder.join("drive");
    create(&place, "128M", &["size=16M"]);
    let (device, second) =
        Node::controllers([ANY; 2], &folder, "device", &place, &keys.with("store", &[]));
    let mut hosts = Vec::new();
    let mut guests = Vec::new();
    for (own, address) in [("one", device.address()), ("two", second)] {
        let host = HostNode::start(&folder, own, &[address], &keys.with(own, &[]));
        let guest = Guest::builder(&format!("{name}/{own}")).drive(&host, 0).start();
        hosts.push(host);
        guests.push(guest);
    }
    let [one, two] = &mut guests[..] else { unreachable!("two") };
    one.run(&workload::subsystem("first"));
    two.run(&workload::subsystem("second"));
    one.run(&workload::subsystem("written"));
    reservations(one, two, types);
    guests.into_iter().for_each(Guest::power_off);
    hosts.into_iter().for_each(HostNode::stop);
    device.stop();
}

/// A type of reservation, and what another host may do under it (NVMe 1.4, figure 451): whether it
/// reads unregistered, and whether it writes registered. Nobody writes unregistered.
type Type = (u8, bool, bool);

/// All types: Write Exclusive, Exclusive Access, then both for registrants only, and for all
/// registrants.
pub const TYPES: [Type; 6] = [
    (1, true, false),
    (2, false, false),
    (3, true, true),
    (4, false, true),
    (5, true, true),
    (6, false, true),
];

fn reservations(one: &mut Guest, two: &mut Guest, types: &[Type]) {
    let run = |guest: &mut Guest, step: &str| guest.run(&workload::reservation(step));
    let may = |yes: bool| if yes { "may" } else { "must-not" };
    run(one, "register 0x11");
    for &(kind, reads, registered) in types {
        run(one, &format!("acquire 0x11 {kind}"));
        run(one, "may write");
        run(two, &format!("{} read", may(reads)));
        run(two, "must-not write");
        run(two, "register 0x22");
        run(two, &format!("report 2 {kind}"));
        run(two, &format!("{} write", may(registered)));
        run(two, &format!("{} read", may(reads || registered)));
        run(two, "unregister 0x22");
        run(one, &format!("release 0x11 {kind}"));
        run(two, "may write");
    }
    // The preempted holder gets a notification and has no more access.
    run(one, "acquire 0x11 1");
    run(two, "register 0x22");
    run(two, "preempt 0x22 0x11 1");
    run(one, "told");
    run(one, "must-not write");
    run(two, "may write");
    run(one, "register 0x11");
    run(one, "preempt-and-abort 0x11 0x22 2");
    run(two, "told");
    run(two, "must-not read");
    run(one, "release 0x11 2");
}
