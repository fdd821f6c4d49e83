//! Push between our own initiator and our own drive, over a link.

use node::push::Mode;
use nvme::initiator::{Driver, Op};
use switch::push_store::Counters;
use testkit::machine::{Machine, io};

/// Commands of `blocks` blocks each, each with its own doorbell; all must succeed. Returns how many
/// reads of the drive reached the host.
fn commands(
    initiator: &mut Machine,
    driver: &mut Driver,
    op: Op,
    (count, blocks): (u64, u32),
    buffer: u64,
) -> usize {
    initiator.reads = 0;
    for number in 0..count {
        let (slba, at) = (number * u64::from(blocks), buffer + number * u64::from(blocks) * 512);
        driver.submit(initiator.now, 0, io(op, slba, blocks, at)).expect("room");
    }
    assert_eq!(initiator.drain(driver, 0), 0);
    initiator.reads
}

/// Writes `count` times `blocks` blocks and reads them back. Returns how many reads of the drive
/// reached the host for the writes and for the reads, and the counters of the store.
fn written_and_read(mode: Mode, payload: u16, count: u64, blocks: u32) -> ([usize; 2], Counters) {
    let mut initiator = Machine::new([(); 2], payload, 4096, mode);
    let (_, mut driver) = initiator.bring_up(1);
    let length = count as usize * blocks as usize * 512;
    let buffers = [(); 2].map(|()| initiator.buffer(length));
    let data: Vec<u8> = (0..length).map(|i| (i / 512 * 7 + i) as u8).collect();
    initiator.fill(buffers[0], &data);
    let reads = [(Op::Write, buffers[0]), (Op::Read, buffers[1])]
        .map(|(op, buffer)| commands(&mut initiator, &mut driver, op, (count, blocks), buffer));
    assert_eq!(initiator.media()[..length], data, "{mode}: written");
    assert_eq!(initiator.ram.borrow_mut().get(buffers[1], length), Some(&data[..]), "{mode}: read");
    (reads, initiator.store())
}

#[test]
fn our_drive_reads_nothing_from_the_host() {
    for payload in [256, 4096] {
        for (count, blocks) in [(1, 8), (8, 8), (1, 64)] {
            let (reads, counters) = written_and_read(Mode::All, payload, count, blocks);
            assert_eq!(reads, [0, 0], "{count} commands of {blocks} blocks, MPS {payload}");
            assert_eq!((counters.misses, counters.malformed), (0, 0));
            assert_eq!(counters.pushed_bytes, counters.hit_bytes + counters.unused_bytes);
        }
    }
}

#[test]
fn drive_reads_everything_from_host_without_push() {
    let (reads, counters) = written_and_read(Mode::Off, 4096, 1, 8);
    assert!(reads[0] > reads[1] && reads[1] == 1, "{reads:?}");
    assert_eq!(counters.pushed_bytes, 0);
    let (entries, _) = written_and_read(Mode::Entries, 4096, 1, 8);
    assert_eq!(entries, [reads[0] - 1, 0], "all but the entry");
}
