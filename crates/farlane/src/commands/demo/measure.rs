//! Measuring where the brief measures: at the root port.

use crate::commands::Failure;
use crate::latency::Summary;
use crate::rig::{Rig, io};
use live::Attached;
use live::host::Record;
use nvme::initiator::Op;
use std::collections::BTreeMap;
use wire::tlp::Packet;
use wire::{Duration, Instant};

/// Bytes of the commands measured.
pub const BYTES: u32 = 4096;

/// The three experiments of the brief on one topology.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Configuration read: start of the request to start of its completion.
    pub config_read: Summary,
    /// 4 KiB read: start of the submission doorbell to the head doorbell.
    pub read_4k: Summary,
    /// 4 KiB write, the same.
    pub write_4k: Summary,
}

/// Runs each experiment `n` times on drive 0, after a warm-up.
///
/// # Errors
/// If a command fails.
pub fn latencies<A: Attached>(rig: &mut Rig<A>, n: usize) -> Result<Latencies, Failure> {
    let buffer = rig.buffer(BYTES as usize)?;
    config_reads(rig, n / 10)?;
    let (_, records) = rig.observe(n * 4, |rig| config_reads(rig, n))?;
    let config_read = Summary::of(request_times(&records).into_iter().map(Duration::as_ns));
    let mut both = Vec::new();
    for op in [Op::Read, Op::Write] {
        commands(rig, op, buffer, n / 10)?;
        let (_, records) = rig.observe(n * 200, |rig| commands(rig, op, buffer, n))?;
        let doorbells = rig.drives[0].node.bar(0).map_or(0, |bar| bar.address) + 0x1000;
        let times = command_times(&records, doorbells);
        if times.len() != n {
            let got = times.len();
            return Err(Failure(format!("{got} of {n} commands found at the root port")));
        }
        both.push(Summary::of(times.into_iter().map(Duration::as_ns)));
    }
    let write_4k = both.pop().expect("two measured");
    let read_4k = both.pop().expect("two measured");
    Ok(Latencies { config_read, read_4k, write_4k })
}

fn config_reads<A: Attached>(rig: &mut Rig<A>, n: usize) -> Result<(), Failure> {
    let (bus, bdf) = (rig.bus().clone(), rig.drives[0].node.bdf);
    rig.run(async move {
        for _ in 0..n {
            bus.config_read(bdf, 0, 4).await;
        }
    })
}

fn commands<A: Attached>(rig: &mut Rig<A>, op: Op, buffer: u64, n: usize) -> Result<(), Failure> {
    let namespace = rig.drives[0].driver.namespaces()[0];
    let blocks = BYTES >> namespace.block_shift;
    let places = namespace.blocks / u64::from(blocks);
    for i in 0..n as u64 {
        // A stride that visits all places: no caching by accident.
        let slba = i.wrapping_mul(7919) % places * u64::from(blocks);
        rig.one(0, io(op, namespace.nsid, slba, blocks, buffer))?;
    }
    Ok(())
}

/// Request to completion of every configuration read, by tag.
fn request_times(records: &[Record]) -> Vec<Duration> {
    let mut started: BTreeMap<u16, Instant> = BTreeMap::new();
    let mut times = Vec::new();
    for record in records {
        match record.tlp.packet {
            Packet::ConfigRead(request) if !record.up => {
                started.insert(request.tag.get(), record.at);
            }
            Packet::Completion(c) if record.up => {
                times.extend(started.remove(&c.tag.get()).map(|start| record.at - start));
            }
            _ => {}
        }
    }
    times
}

/// Submission doorbell to head doorbell of every command, one at a time.
fn command_times(records: &[Record], doorbells: u64) -> Vec<Duration> {
    // Queue pair 1 with a stride of 4 bytes.
    let (tail, head) = (doorbells + 8, doorbells + 12);
    let mut start = None;
    let mut times = Vec::new();
    for record in records.iter().filter(|record| !record.up) {
        match record.tlp.packet {
            Packet::MemoryWrite(write) if write.address == tail => start = Some(record.at),
            Packet::MemoryWrite(write) if write.address == head => {
                times.extend(start.take().map(|start| record.at - start));
            }
            _ => {}
        }
    }
    times
}
