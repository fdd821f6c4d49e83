//! The harness itself, on the NVMe drive that QEMU brings along.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::folder;
use crate::guest::{Builder, Guest, Memory};
use crate::script::Script;
use crate::workload;

fn disk(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    File::create(&path).unwrap().set_len(128 << 20).unwrap();
    path
}

fn drive(builder: Builder, name: &str, path: &Path, options: &str) -> Builder {
    builder
        .option(
            "-drive",
            format!("if=none,id={name},format=raw,file={}", path.display()),
        )
        .device(format!("nvme,drive={name},serial={name}{options}"))
}

#[test]
fn reference_nvme_full() {
    let disk = disk(&folder::kept("reference-full-disk"), "disk");
    let mut guest = drive(Guest::builder("reference-full"), "d0", &disk, "").start();
    let checksums = workload::everything(&mut guest, 0);
    let commands = guest.commands();
    for queue in 0..3 {
        let count = commands.iter().filter(|c| c.queue == queue).count();
        println!("queue {queue}: {count}");
        assert!(count > 0);
    }
    for command in commands.iter().step_by(400) {
        println!("{command:?}");
    }
    for c in &commands {
        if c.opcode().is_none() {
            println!("{c:?}");
        }
    }
    guest.power_off();

    let mut guest = drive(Guest::builder("reference-again"), "d0", &disk, "").start();
    guest.run(&workload::again(0, &checksums));
    guest.power_off();
}

#[test]
fn reference_nvme_two() {
    let folder = folder::kept("reference-two-disks");
    let [a, b] = ["a", "b"].map(|name| disk(&folder, name));
    let builder = drive(Guest::builder("reference-two"), "a", &a, "");
    let mut guest = drive(builder, "b", &b, "").memory(Memory::Private).start();
    for n in [0, 1] {
        guest.run(&workload::identify(n));
        guest.run(&workload::transfer(n, 1));
    }
    guest.run(&workload::fio(2, &[0, 1]));
    guest.power_off();
}

#[test]
fn reference_nvme_lost() {
    let disk = disk(&folder::kept("reference-lost-disk"), "disk");
    let builder = Guest::builder("reference-lost")
        .kernel("nvme_core.io_timeout=5")
        .root_port("rp");
    let mut guest = drive(builder, "d0", &disk, ",bus=rp,id=nvme").start();
    guest.run(&workload::load(0));
    // The registers answer elsewhere: the driver finds none of them any more.
    guest.run(&Script::new(
        "move registers",
        "printf '\\001' | dd of=/sys/bus/pci/devices/0000:01:00.0/config bs=1 seek=20 conv=notrunc",
    ));
    guest.run(&workload::lost(0, Duration::from_secs(40)));
    guest.run(&workload::remove("0000:01:00.0"));
    guest.run(&workload::rescan());
    guest.run(&workload::attached(1));
    guest.run(&workload::transfer(0, 1));
    guest.qmp("device_del", json!({"id": "nvme"}));
    guest.qmp_event("DEVICE_DELETED");
    guest.run(&workload::attached(0));
    guest.qmp(
        "device_add",
        json!({"driver": "nvme", "drive": "d0", "serial": "again", "bus": "rp", "id": "again"}),
    );
    guest.run(&workload::attached(1));
    guest.run(&workload::transfer(0, 1));
    guest.power_off();
}
