//! The numbers at the top of the page.

use super::{Subject, latency};
use crate::analyse::latency::Latency;
use crate::report::{Page, Tile, time};
use crate::simulate::gather::{Gathered, Kind};
use crate::simulate::limits::Verdict;
use sim::measure::Op;
use wire::{Duration, Instant};

/// Of all commands, or of all configuration reads.
pub(super) fn tiles(page: &mut Page, subject: &Subject<'_>) {
    let Subject { report, limits, .. } = subject;
    let mut tiles = vec![tile(time(report.time.as_ns() as f64), "simulated")];
    if subject.gathered.kinds.is_empty() {
        config_reads(&mut tiles, subject);
    } else {
        commands(&mut tiles, subject);
    }
    let bad = report.hosts.iter().map(|host| host.mismatches + host.failures).sum::<u64>();
    let verified: u64 = report.hosts.iter().map(|host| host.verified).sum();
    if bad > 0 {
        let name = "failed commands and wrong blocks".to_owned();
        tiles.push(Tile { value: bad.to_string(), name, bad: true });
    } else if verified > 0 {
        tiles.push(tile(verified.to_string(), "blocks compared, all right"));
    }
    let flagged = limits.iter().filter(|row| row.verdict() != Verdict::Holds).count();
    let value = format!("{} of {}", limits.len() - flagged, limits.len());
    tiles.push(Tile { value, name: "limits hold, see below".into(), bad: flagged > 0 });
    page.tiles(&tiles);
    page.note(&format!("Seed {}, digest {:016x}.", subject.config.seed, report.digest));
}

fn tile(value: String, name: &str) -> Tile {
    Tile { value, name: name.to_owned(), bad: false }
}

fn commands(tiles: &mut Vec<Tile>, subject: &Subject<'_>) {
    let Subject { report, gathered, .. } = subject;
    let count: u64 = report.hosts.iter().map(|host| host.commands).sum();
    tiles.push(tile(count.to_string(), "NVMe commands"));
    let mut all = Latency::new();
    gathered.kinds.values().for_each(|kind| all.merge(&kind.latency));
    let of = match gathered.kinds.keys().next() {
        Some((_, op)) if gathered.kinds.keys().all(|(_, other)| other == op) => op.name(),
        _ => "of all commands",
    };
    tiles.push(tile(time(all.summary().p50_ns as f64), &format!("median {of}")));
    if let Some(((host, op), kind)) = worst(gathered) {
        let name = latency::name(subject, host, op);
        let name = if gathered.kinds.len() == 1 { name } else { format!("of all: {name}") };
        tiles.push(tile(time(kind.latency.summary().max_ns as f64), &format!("worst {name}")));
    }
    let runs = report.hosts.iter().enumerate().filter_map(|(number, host)| {
        let kinds = gathered.kinds.iter().filter(|((of, _), _)| usize::from(*of) == number);
        let begin = kinds.map(|(_, kind)| kind.timeline().start).min()?;
        Some((begin, host.span, host.bytes))
    });
    tiles.push(tile(rate(throughput(runs)), "throughput"));
}

fn config_reads(tiles: &mut Vec<Tile>, subject: &Subject<'_>) {
    let summaries = subject.report.hosts.iter().map(|host| host.config_reads.summary());
    let summaries: Vec<_> = summaries.filter(|summary| summary.n > 0).collect();
    let count: u64 = summaries.iter().map(|summary| summary.n).sum();
    let Some(worst) = summaries.iter().map(|summary| summary.max_ns).max() else { return };
    tiles.push(tile(count.to_string(), "configuration reads"));
    if let [only] = &summaries[..] {
        tiles.push(tile(time(only.p50_ns as f64), "median"));
    }
    tiles.push(tile(time(worst as f64), "worst"));
}

/// The kind of the command that took longest, with its name.
pub(super) fn worst(gathered: &Gathered) -> Option<((u16, Op), &Kind)> {
    let span = |kind: &Kind| kind.worst.until.since(kind.worst.since);
    // The first of equal ones.
    let kinds = gathered.kinds.iter().rev();
    kinds.max_by_key(|(_, kind)| span(kind)).map(|(name, kind)| (*name, kind))
}

/// Bytes a second of workloads that began, lasted and moved so much, from the
/// first beginning to the last end.
fn throughput(runs: impl Iterator<Item = (Instant, Duration, u64)>) -> f64 {
    let whole = runs.map(|(begin, span, bytes)| (begin, begin + span, bytes));
    let whole = whole.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1), a.2 + b.2));
    let Some((begin, end, bytes)) = whole else { return 0.0 };
    bytes as f64 / (end.since(begin).as_ps().max(1) as f64 / 1e12)
}

/// Bytes per second, readable.
fn rate(bytes: f64) -> String {
    match bytes {
        b if b < 1e6 => format!("{:.0} kB/s", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB/s", b / 1e6),
        b => format!("{:.2} GB/s", b / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Config;
    use sim::measure::{CommandRecord, Observer, Split};
    use sim::workload::{Fio, Rw, Workload};

    #[test]
    fn throughput_is_over_the_common_span() {
        let run =
            |begin, span: u64, bytes| (Instant::from_ns(begin), Duration::from_ns(span), bytes);
        let two = [run(0, 10_000, 1_000_000), run(90_000, 10_000, 1_000_000)];
        assert_eq!(rate(throughput(two.into_iter())), "20.00 GB/s");
        let within = [run(0, 100_000, 1_000), run(20_000, 10_000, 1_000)];
        assert_eq!(rate(throughput(within.into_iter())), "20.0 MB/s");
        assert_eq!(throughput(std::iter::empty()), 0.0);
    }

    #[test]
    fn the_worst_is_that_of_all_hosts_and_kinds() {
        let work = Workload::Fio(Fio::new(Rw::RandRw, 4096, 1));
        let mut gathered = Gathered::new(&Config::brief_direct(work));
        assert!(worst(&gathered).is_none());
        for (host, op, us) in
            [(0, Op::Read, 5), (0, Op::Read, 6), (1, Op::Write, 9), (2, Op::Read, 9)]
        {
            let since = Instant::from_ns(3000);
            let until = since + Duration::from_us(us);
            let (drive, queue, id, offset, length) = (0, 1, 0, 0, 4096);
            let split = Split::default();
            gathered.command(&CommandRecord {
                host,
                drive,
                queue,
                id,
                op,
                offset,
                length,
                since,
                until,
                split,
            });
        }
        let (name, kind) = worst(&gathered).unwrap();
        assert_eq!((name, kind.latency.count()), ((1, Op::Write), 1));
    }
}
