//! The test harness with QEMU's own NVMe drive. A failure here is not a failure of farlane.

use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::folder;

#[test]
fn reference_nvme_answers() {
    let disk = folder::kept("reference").join("disk.img");
    folder::empty_disk(&disk, 64 << 20);
    let mut guest = Guest::builder("reference/guest")
        .option("-drive", format!("if=none,id=disk,format=raw,file={}", disk.display()))
        .kernel(workload::RELAXED)
        .root_port("rp")
        .device("nvme,drive=disk,serial=reference,bus=rp")
        .start();
    guest.run(&workload::identify(0));
    // CSTS is 1: the controller is ready.
    guest.run(&workload::status_register("0000:01:00.0", 1));
    guest.run(&workload::transfer(0, 1));
    guest.run(&workload::fio(1, &[0]));
    let commands = guest.commands();
    for queue in 0..3 {
        assert!(commands.iter().any(|command| command.queue == queue));
    }
    guest.power_off();
}
