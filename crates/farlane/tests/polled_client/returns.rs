//! Device nodes that are killed and started again while a client stays connected.

use std::path::Path;

use super::give;
use crate::support::{ANY, BLOCK, Drive, HostNode, Node, folder, pattern};

/// Serial number of a drive that stays the same drive when its contents change.
const SERIAL: &str = "MORTAL";
const RAM: &str = "ram=16M";
/// First block of the test data.
const PLACE: u64 = 1000;

/// Lines in the log of the host node.
const NEW: &str = "endpoint 0: new contents: the data written before is lost";
const CHANGED: &str = "endpoint 0: has changed and stays detached";
const BACK: &str = "endpoint 0: attached again";
const BACK_NEW: &str = "endpoint 0: attached again with new contents";

/// A device node that a test kills and starts again.
struct Mortal<'a> {
    node: Node,
    folder: &'a Path,
    namespace: String,
    serial: &'static str,
}

impl<'a> Mortal<'a> {
    fn start(folder: &'a Path, namespace: &str) -> Self {
        let options = ["--serial", SERIAL];
        let node = Node::device_at(ANY, folder, "device", &[namespace], &options);
        Self { node, folder, namespace: namespace.to_owned(), serial: SERIAL }
    }

    fn kill(&mut self) {
        self.node.process.kill();
    }

    /// Kills the node, waits until the client of `drive` has noticed the loss, and starts the node
    /// again.
    fn restart(&mut self, drive: &Drive) {
        self.kill();
        drive.wait_until_gone();
        self.revive();
    }

    fn revive(&mut self) {
        let address = self.node.address();
        let options = ["--serial", self.serial];
        self.node = Node::device_at(address, self.folder, "device", &[&self.namespace], &options);
    }
}

fn host(folder: &Path, device: std::net::SocketAddr) -> HostNode {
    HostNode::start(folder, "host", &[device], &["--mmap-doorbells"])
}

/// A driver in user space sets bus mastering when it attaches and never again.
#[test]
fn returned_drive_gets_its_configuration_back() {
    let folder = folder::kept("restored");
    let namespace = format!("file={},size=16M", folder.join("disk.img").display());
    let mut device = Mortal::start(&folder, &namespace);
    let host = host(&folder, device.node.address());
    let mut drive = Drive::attach(&host.socket(0));
    let data = pattern(1, 64 * BLOCK);
    drive.write(PLACE, &data);
    for _ in 0..2 {
        device.restart(&drive);
        host.process.line(BACK);
        assert!(drive.is_bus_master());
        drive.recover();
        assert!(drive.read(PLACE, 64) == data, "the data are there");
        drive.write(PLACE, &data);
    }
    // Bus mastering that the client disabled during the outage stays disabled.
    device.kill();
    drive.wait_until_gone();
    drive.master_bus(false);
    device.revive();
    host.process.line(BACK);
    assert!(!drive.is_bus_master());
    drive.recover_from_reset();
    assert!(drive.read(PLACE, 64) == data);
    // A reset that the client requested is not reverted.
    drive.reset_function();
    assert!(!drive.is_bus_master());
    // The next client gets a function without this configuration.
    drop(drive);
    let drive = Drive::connect(&host.socket(0));
    assert!(!drive.is_bus_master());
    assert!(!host.process.stderr.text().contains("new contents"));
}

#[test]
fn new_contents_are_served_after_client_reset() {
    let folder = folder::kept("forgetful");
    let mut device = Mortal::start(&folder, RAM);
    let host = host(&folder, device.node.address());
    let data = pattern(2, 64 * BLOCK);
    let empty = vec![0; data.len()];
    let mut drive = Drive::attach(&host.socket(0));
    for reset in [Drive::reset_device, Drive::reset_function] {
        drive.write(PLACE, &data);
        device.restart(&drive);
        host.process.line(NEW);
        assert_eq!(drive.id(), 0x0001_fa12, "the function is there");
        // Linux does the same in its automatic retry.
        drive.master_bus(false);
        drive.master_bus(true);
        assert!(drive.is_gone(), "its registers are not");
        reset(&drive);
        host.process.line(BACK_NEW);
        assert!(!drive.is_bus_master(), "as after any reset");
        drive.recover_from_reset();
        assert!(drive.read(PLACE, 64) == empty, "a new drive");
    }
    // A reset during the outage suffices, because the client has started again.
    drive.write(PLACE, &data);
    device.kill();
    drive.wait_until_gone();
    drive.reset_device();
    device.revive();
    host.process.line(BACK_NEW);
    assert!(!drive.is_gone());
    drive.recover_from_reset();
    // A new client has no state from before.
    device.restart(&drive);
    host.process.line(NEW);
    drop(drive);
    host.process.line(BACK_NEW);
    let mut drive = Drive::attach(&host.socket(0));
    assert!(drive.read(PLACE, 64) == empty);
    // Without a client, the new contents need no reset.
    drive.write(PLACE, &data);
    drive.detach();
    device.kill();
    device.revive();
    host.process.line(BACK_NEW);
    assert!(Drive::attach(&host.socket(0)).read(PLACE, 64) == empty);
}

/// Behind a switch node, no link of the host goes down. The host identifies the drive when the
/// client resets the function.
#[test]
fn drive_behind_switch_is_identified_at_reset() {
    let folder = folder::kept("behind");
    let mut device = Mortal::start(&folder, RAM);
    let switch = Node::switch(&folder, "switch", device.node.address());
    let host = host(&folder, switch.address());
    let data = pattern(3, 64 * BLOCK);
    let mut drive = Drive::attach(&host.socket(0));
    drive.write(PLACE, &data);
    drive.reset_function();
    drive.recover_from_reset();
    assert!(drive.read(PLACE, 64) == data, "the same contents");
    assert!(!host.process.stderr.text().contains(BACK), "nothing to tell");
    device.restart(&drive);
    switch.process.line("link up");
    drive.reset_function();
    host.process.line(BACK_NEW);
    drive.recover_from_reset();
    assert!(drive.read(PLACE, 64) == vec![0; data.len()], "the new ones");
    // Another drive at this address is not shown to the driver of the first drive.
    device.serial = "ANOTHER";
    device.restart(&drive);
    switch.process.line("link up");
    drive.reset_device();
    host.process.line(CHANGED);
    (0..3).for_each(|_| drive.reset_device());
    assert!(drive.is_gone());
    // The first drive is back, with new contents again.
    device.kill();
    device.serial = SERIAL;
    device.revive();
    switch.process.line("link up");
    drive.reset_device();
    host.process.line(BACK_NEW);
    drive.recover_from_reset();
    assert!(drive.read(PLACE, 64) == vec![0; data.len()]);
    let log = host.process.stderr.text();
    assert_eq!(log.matches(CHANGED).count(), 1, "{log}");
    assert!(!log.contains("link down"), "{log}");
}

/// The client requests a reset during the outage. A second link loss before the drive is found does
/// not revert the reset.
#[test]
fn reset_completes_after_second_link_loss() {
    let folder = folder::kept("flapping");
    let mut device = Mortal::start(&folder, RAM);
    let host = host(&folder, device.node.address());
    let drive = Drive::attach(&host.socket(0));
    device.kill();
    drive.wait_until_gone();
    drive.reset_device();
    // For a while, another drive has the address.
    device.serial = "ANOTHER";
    device.revive();
    host.process.line(CHANGED);
    device.kill();
    host.process.line("link down");
    device.serial = SERIAL;
    device.revive();
    let line = host.process.line("endpoint 0: ");
    assert!(line.contains(BACK_NEW), "{line}");
    assert!(!drive.is_gone());
}

/// After another host has used the drive, its contents are new for the client of the first host.
/// All other hosts see the contents as unchanged.
#[test]
fn drive_used_by_another_host_is_new_to_old_client() {
    let folder = folder::kept("borrowed");
    // The incarnation of a file survives a restart, the number of the last host does not.
    let namespace = format!("file={},size=16M", folder.join("disk.img").display());
    let start =
        |address| Node::device_at(address, &folder, "device", &[&namespace], &["--group", "1"]);
    let mut device = start(ANY);
    let address = device.address();
    let options = ["--mmap-doorbells", "--group", "1"];
    let one = HostNode::start(&folder, "one", &[address], &options);
    let options = ["--mmap-doorbells", "--group", "2", "--hot-plug"];
    let two = HostNode::start(&folder, "two", &[address], &options);
    let (first, second) = (pattern(4, 64 * BLOCK), pattern(5, 64 * BLOCK));
    let mut drive = Drive::attach(&one.socket(0));
    drive.write(PLACE, &first);
    give(address, "2");
    two.process.line("endpoint 0: offered");
    let mut borrowed = Drive::attach(&two.socket(0));
    assert!(borrowed.read(PLACE, 64) == first);
    borrowed.write(PLACE, &second);
    drop(borrowed);
    give(address, "1");
    let new = "endpoint 0: new contents: another host used the device";
    one.process.line(new);
    device.process.kill();
    one.process.line("link down");
    let _again = start(&address.to_string());
    one.process.line(new);
    assert!(drive.is_gone());
    drive.reset_device();
    one.process.line(BACK_NEW);
    drive.recover_from_reset();
    assert!(drive.read(PLACE, 64) == second);
}
