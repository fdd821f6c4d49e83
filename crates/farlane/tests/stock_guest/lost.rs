//! Device nodes that are killed, hang, and return while a guest runs.
//!
//! The tests do not use QMP `device_del`: QEMU 10.1 and later abort whenever a vfio-user device
//! with MSI-X is unplugged, lost or not (`vfio_user_msix_teardown` in hw/vfio-user/pci.c removes
//! the PBA from a BAR that no longer exists). Remove and rescan in the guest do not end the device.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::stock_guest::guest::Guest;
use crate::stock_guest::traced;
use crate::stock_guest::workload;
use crate::support::{ANY, HostNode, Node, folder};

/// Parts of the host node's log: the link is lost, or is back; the drive is attached again, or is
/// another drive.
const LINK_DOWN: &str = "link down";
const LINK_UP: &str = "link up";
const ATTACHED: &str = "attached again";
const CHANGED: &str = "has changed";
/// Parts of the log about the same drive with lost contents.
const NEW_CONTENTS: &str = "new contents: the data written before is lost";
const NEW_ATTACHED: &str = "attached again with new contents";

/// PCI address of the drive that gets lost. The other drive is nvme1.
const FUNCTION: &str = "0000:01:00.0";
const SIZE: u64 = 64 << 20;

/// Returns the time that QEMU needs to read the status register at `address`, which nobody answers.
/// QEMU reads as a processor does, but without the guest's shell, whose time depends on the load of
/// the machine.
fn time_of_lost_read(guest: &mut Guest, address: &str) -> Duration {
    let begun = Instant::now();
    let line = format!("xp /1wx {address}");
    let read = guest.qmp("human-monitor-command", json!({"command-line": line}));
    let elapsed = begun.elapsed();
    assert!(read.as_str().unwrap().ends_with(": 0xffffffff\r\n"), "{read}");
    println!("lost read: {} ms", elapsed.as_millis());
    elapsed
}

fn namespace(disk: &Path, size: u64) -> String {
    format!("file={},size={size}", disk.display())
}

#[test]
fn remote_drive_returns_after_link_loss() {
    let folder = folder::kept("lost");
    let [disk, larger, other] =
        ["disk.img", "larger.img", "other.img"].map(|name| folder.join(name));
    let traces = ["host", "lost", "again"].map(|name| folder.join(format!("{name}.trace")));
    let [host_trace, lost_trace, again_trace] = traces.each_ref().map(|t| t.to_str().unwrap());
    let recording = ["--trace", lost_trace];
    let drive = namespace(&disk, SIZE);
    let mut device = Node::device_at(ANY, &folder, "device", &[&drive], &recording);
    let other = namespace(&other, SIZE);
    let place = Node::device(&folder, "place", &[&other]);
    let addresses = [device.address(), place.address()];
    place.stop();
    // The second device node starts only when the guest runs.
    let options = ["--trace", host_trace, "--hot-plug", "--wait", "500ms", "--survive", "0"];
    let mut host = HostNode::start(&folder, "host", &addresses, &options);
    let mut guest = Guest::builder("lost/guest")
        .kernel("nvme_core.io_timeout=5")
        .kernel(workload::RELAXED)
        .root_port("rp0")
        .root_port("rp1")
        .device(host.endpoint(0, json!({"bus": "rp0"})).to_string())
        .start();
    guest.run(&workload::attached(1));
    let _other = Node::device_at(addresses[1], &folder, "other", &[&other], &[]);
    host.process.line("endpoint 1: offered");
    guest.qmp("device_add", host.endpoint(1, json!({"bus": "rp1", "id": "other"})));
    guest.run(&workload::attached(2));

    // The device node of the first drive is killed.
    let register = workload::ready(&mut guest, FUNCTION);
    guest.run(&workload::load(0));
    device.process.kill();
    assert!(time_of_lost_read(&mut guest, &register) < Duration::from_millis(700));
    guest.run(&workload::status_register(FUNCTION, u32::MAX));
    host.process.line(LINK_DOWN);
    // The other drive works in the meantime.
    workload::briefly(&mut guest, 1);
    guest.run(&workload::lost(0, Duration::from_secs(40)));
    assert!(host.process.is_running());
    guest.run(&workload::remove(FUNCTION));

    // Another drive gets the address.
    let address = device.address();
    let larger = namespace(&larger, SIZE + (32 << 20));
    let device = Node::device_at(address, &folder, "larger", &[&larger], &[]);
    host.process.line(CHANGED);
    guest.run(&workload::rescan());
    guest.run(&workload::attached(1));
    device.stop();
    host.process.line(LINK_DOWN);

    // The first drive is back unchanged.
    let recording = ["--trace", again_trace];
    let device = Node::device_at(address, &folder, "again", &[&drive], &recording);
    host.process.line(LINK_UP);
    host.process.line(ATTACHED);
    guest.run(&workload::rescan());
    guest.run(&workload::attached(2));
    workload::briefly(&mut guest, 0);

    // The device node hangs. Requests in flight then take the loss limit of 800 ms.
    let register = workload::ready(&mut guest, FUNCTION);
    guest.run(&workload::load(0));
    device.process.signal(Signal::STOP);
    guest.run(&workload::waiting(0));
    assert!(time_of_lost_read(&mut guest, &register) < Duration::from_millis(1500));
    host.process.line(LINK_DOWN);
    assert!(time_of_lost_read(&mut guest, &register) < Duration::from_millis(700));
    guest.run(&workload::status_register(FUNCTION, u32::MAX));
    guest.run(&workload::lost(0, Duration::from_secs(40)));
    device.process.signal(Signal::CONT);
    host.process.line(ATTACHED);
    guest.run(&workload::remove(FUNCTION));
    guest.run(&workload::rescan());
    guest.run(&workload::attached(2));
    for drive in [0, 1] {
        guest.run(&workload::transfer(drive, 1));
    }
    guest.power_off();
    host.stop();
    device.stop();
    traced::losses_stand_out(&traces);
}

/// Both device nodes restart before the guest's driver notices their absence. After a stall the
/// driver resets the controller and repeats its commands. On a file drive the commands succeed with
/// the written data. On a drive that lost its data the commands fail until the guest resets the
/// function.
#[test]
fn remote_drives_restart_with_their_data_and_without() {
    let folder = folder::kept("restarted");
    let disk = folder.join("disk.img");
    let namespaces = [format!("ram={SIZE}"), namespace(&disk, SIZE)];
    let start = |at: &str, number: usize| {
        let (name, serial) = (format!("device-{number}"), format!("RESTART{number}"));
        let namespace: &str = &namespaces[number];
        let options = ["--serial", serial.as_str()];
        Node::device_at(at, &folder, &name, &[namespace], &options)
    };
    let mut devices = [0, 1].map(|number| start("127.0.0.1:0", number));
    let addresses = devices.each_ref().map(Node::address);
    let host = HostNode::start(&folder, "host", &addresses, &[]);
    let mut guest = Guest::builder("restarted/guest")
        .kernel("nvme_core.io_timeout=5")
        .root_port("rp0")
        .root_port("rp1")
        .device(host.endpoint(0, json!({"bus": "rp0"})).to_string())
        .start();
    guest.run(&workload::attached(1));
    guest.qmp("device_add", host.endpoint(1, json!({"bus": "rp1"})));
    guest.run(&workload::attached(2));
    for drive in [0, 1] {
        guest.run(&workload::fill(drive, 8));
    }
    guest.run(&workload::reading(&[0, 1]));
    for (number, device) in devices.iter_mut().enumerate() {
        device.process.kill();
        *device = start(&addresses[number].to_string(), number);
    }
    host.process.line(NEW_CONTENTS);
    guest.run(&workload::stalled(1, Duration::from_secs(60)));
    guest.run(&workload::failed(0, Duration::from_secs(60)));
    let log = host.process.stderr.text();
    assert!(log.contains("endpoint 1: attached again\n"), "{log}");
    assert!(!log.contains("endpoint 0: attached again"), "{log}");

    guest.run(&workload::reset(FUNCTION));
    host.process.line(NEW_ATTACHED);
    guest.run(&workload::attached(2));
    guest.run(&workload::empty(0, 8));
    for drive in [0, 1] {
        guest.run(&workload::transfer(drive, 1));
    }
    guest.power_off();
    host.stop();
    for device in devices {
        device.stop();
    }
}
