//! Writes, reads back and compares every byte. The patterns differ in every block; transfers have
//! many sizes, and several are in flight.

use crate::initiator_host::InitiatorHost;
use live::Attached;
use nvme::initiator::{Io, Op};
use report::Failure;
use workload::pattern::{fill, first_difference};

/// Bytes of the largest transfer.
const LARGEST: usize = 128 << 10;
/// Version of every block: each block is written once.
const VERSION: u32 = 1;
/// Number of transfers in flight.
const DEPTH: usize = 8;
/// Sizes in KiB, in turn: single pages, pairs, PRP lists, odd numbers.
const SIZES: [usize; 8] = [4, 8, 64, 12, 128, 4, 36, 100];

/// Writes `total` bytes to drive `drive`, reads them back and compares. Returns the number of
/// verified bytes.
///
/// # Errors
/// If a command fails or a byte differs.
pub fn verify<A: Attached>(
    host: &mut InitiatorHost<A>,
    drive: usize,
    total: usize,
) -> Result<u64, Failure> {
    let namespace = host.drives[drive].driver.namespaces()[0];
    let shift = u32::from(namespace.block_shift);
    let total = total.min((namespace.blocks << shift) as usize);
    let largest = host.drives[drive].driver.max_transfer().min(LARGEST);
    let mut buffers = Vec::new();
    for _ in 0..DEPTH {
        buffers.push(host.buffer(LARGEST)?);
    }
    for op in [Op::Write, Op::Read] {
        let mut at = 0;
        let mut turn = 0;
        while at < total {
            let mut batch = Vec::new();
            while batch.len() < DEPTH && at < total {
                let length = (SIZES[turn % SIZES.len()] << 10).min(largest).min(total - at);
                batch.push((at, length, buffers[batch.len()]));
                at += length;
                turn += 1;
            }
            run(host, drive, op, namespace.nsid, shift, &batch)?;
        }
    }
    Ok(total as u64)
}

fn run<A: Attached>(
    host: &mut InitiatorHost<A>,
    drive: usize,
    op: Op,
    nsid: u32,
    shift: u32,
    batch: &[(usize, usize, u64)],
) -> Result<(), Failure> {
    let ram = host.memory.ram.clone();
    for (at, length, buffer) in batch {
        let mut ram = ram.borrow_mut();
        let bytes = ram.get_mut(*buffer, *length).expect("a buffer of this initiator");
        match op {
            Op::Write => fill(drive as u64, *at as u64, VERSION, bytes),
            _ => bytes.fill(0xee),
        }
    }
    let command = |(at, length, buffer): &(usize, usize, u64)| {
        let (slba, blocks) = ((*at >> shift) as u64, (*length >> shift) as u32);
        Io { op, nsid, slba, blocks, buffer: *buffer }
    };
    host.carry_out(drive, &batch.iter().map(command).collect::<Vec<_>>())?;
    if op == Op::Read {
        batch.iter().try_for_each(|(at, length, buffer)| {
            let mut ram = ram.borrow_mut();
            compare(ram.get(*buffer, *length).expect("a buffer of this initiator"), *at, drive)
        })?;
    }
    Ok(())
}

fn compare(bytes: &[u8], at: usize, drive: usize) -> Result<(), Failure> {
    match first_difference(drive as u64, at as u64, VERSION, bytes) {
        None => Ok(()),
        Some((i, want)) => {
            let (at, byte) = (at + i, bytes[i]);
            Err(Failure(format!("byte {at:#x} reads {byte:#04x}, {want:#04x} was written")))
        }
    }
}
