//! Measures latencies at the root port, as the NVMe/TSN paper does.

use crate::initiator_host::InitiatorHost;
use analysis::commands::intervals::{self, Segment};
use analysis::commands::{Command, Event, HostRequestKind};
use live::Attached;
use nvme::initiator::{Io, Op};
use report::latency::{Latency, Summary};
use report::{Failure, Outcome};

/// Bytes of the measured commands.
pub const BYTES: u32 = 4096;

/// The three experiments of the NVMe/TSN paper on one topology.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Configuration read: from the start of the request to the start of its completion.
    pub config_read: Summary,
    /// 4 KiB read: from the start of the submission doorbell to the start of the head doorbell.
    pub read_4k: Summary,
    /// 4 KiB write: between the same two doorbells.
    pub write_4k: Summary,
    /// The intervals of the median read.
    pub read_intervals: Vec<Segment>,
    /// The intervals of the median write.
    pub write_intervals: Vec<Segment>,
}

/// Runs each experiment `n` times on drive 0, after a warm-up.
///
/// # Errors
/// If a command fails, or is not found at the root port.
pub fn measure<A: Attached>(
    host: &mut InitiatorHost<A>,
    n: usize,
    mut progress: impl FnMut(&str),
) -> Result<Latencies, Failure> {
    let buffer = host.buffer(BYTES as usize)?;
    progress("configuration reads");
    config_reads(host, n / 10)?;
    let events = host.observe(|host| config_reads(host, n))?;
    let reads: Latency = events
        .iter()
        .filter_map(|event| match event {
            Event::Request(r) if r.kind == HostRequestKind::ConfigRead => Some(r.latency),
            _ => None,
        })
        .collect();
    expect(n, reads.count() as usize, "configuration reads")?;
    let mut both = Vec::new();
    for (op, name) in [(Op::Read, "4 KiB reads"), (Op::Write, "4 KiB writes")] {
        progress(name);
        commands(host, op, buffer, n / 10)?;
        let events = host.observe(|host| commands(host, op, buffer, n))?;
        let commands: Vec<Command> = commands_of(events).collect();
        let times: Latency =
            commands.iter().filter_map(Command::duration_ns).map(wire::Duration::from_ns).collect();
        expect(n, times.count() as usize, name)?;
        both.push((Summary::from(&times), intervals::median(&commands)));
    }
    let (write_4k, write_intervals) = both.pop().expect("two measured");
    let (read_4k, read_intervals) = both.pop().expect("two measured");
    let config_read = Summary::from(&reads);
    Ok(Latencies { config_read, read_4k, write_4k, read_intervals, write_intervals })
}

/// Returns the finished I/O commands among events.
pub fn commands_of(events: Vec<Event>) -> impl Iterator<Item = Command> {
    events.into_iter().filter_map(|event| match event {
        Event::Command(command) if !command.is_admin() => Some(*command),
        _ => None,
    })
}

fn expect(n: usize, got: usize, kind: &str) -> Outcome {
    if got == n {
        return Ok(());
    }
    Err(Failure(format!("{got} of {n} {kind} found at the root port")))
}

/// Runs `n` configuration reads of drive 0, one at a time.
///
/// # Errors
/// As [`InitiatorHost::run`].
pub fn config_reads<A: Attached>(host: &mut InitiatorHost<A>, n: usize) -> Outcome {
    let (bus, bdf) = (host.bus.clone(), host.drives[0].node.bdf);
    host.run(async move {
        for _ in 0..n {
            bus.config_read(bdf, 0, 4).await;
        }
    })
}

/// Runs `n` commands on drive 0, one at a time.
///
/// # Errors
/// As [`InitiatorHost::carry_out`].
pub fn commands<A: Attached>(
    host: &mut InitiatorHost<A>,
    op: Op,
    buffer: u64,
    n: usize,
) -> Outcome {
    let namespace = host.drives[0].driver.namespaces()[0];
    let blocks = BYTES >> namespace.block_shift;
    let places = namespace.blocks / u64::from(blocks);
    for i in 0..n as u64 {
        // The stride visits all places, and consecutive places are far apart.
        let slba = i.wrapping_mul(7919) % places * u64::from(blocks);
        host.carry_out(0, &[Io { op, nsid: namespace.nsid, slba, blocks, buffer }])?;
    }
    Ok(())
}
