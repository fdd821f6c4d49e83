//! The figures at the top of the page.

use super::{Subject, latency};
use crate::run::document::World;
use crate::simulate::limits::LimitVerdict;
use crate::simulate::report_data::{Kind, ReportData};
use report::latency::Latency;
use report::{Page, Tile, time};
use sim::measure::Op;
use sim::network::StreamReport;

/// Adds the figures of all commands, or of all configuration reads.
pub(super) fn tiles(page: &mut Page, subject: &Subject<'_>) {
    let Subject { report, limits, .. } = subject;
    let is_live = subject.words.world == World::Live;
    let name = if is_live { "from start to end" } else { "simulated" };
    let mut tiles = vec![tile(time(report.time.as_ns() as f64), name)];
    let required = subject.requirements;
    if !required.is_empty() {
        let met = required.iter().filter(|row| row.holds).count();
        let value = format!("{met} of {}", required.len());
        let name = "requirements are met".to_owned();
        tiles.push(Tile { value, name, bad: met < required.len() });
    }
    let lost: u64 = report.streams.iter().map(StreamReport::lost).sum();
    if lost > 0 {
        let name = "frames of streams lost".to_owned();
        tiles.push(Tile { value: lost.to_string(), name, bad: true });
    }
    match (report.hosts.is_empty(), subject.data.kinds.is_empty()) {
        (true, _) => streams(&mut tiles, subject),
        (_, true) => config_reads(&mut tiles, subject),
        _ => commands(&mut tiles, subject),
    }
    let bad = report.hosts.iter().map(|host| host.mismatches + host.failures).sum::<u64>();
    let verified: u64 = report.hosts.iter().map(|host| host.verified).sum();
    if bad > 0 {
        let name = "failed commands and wrong blocks".to_owned();
        tiles.push(Tile { value: bad.to_string(), name, bad: true });
    } else if verified > 0 {
        tiles.push(tile(verified.to_string(), "blocks compared, all right"));
    }
    if !limits.is_empty() {
        let flagged = limits.iter().filter(|row| row.verdict() != LimitVerdict::Holds).count();
        let value = format!("{} of {}", limits.len() - flagged, limits.len());
        tiles.push(Tile { value, name: "limits hold, see below".into(), bad: flagged > 0 });
    }
    page.tiles(&tiles);
    let seed = subject.config.seed;
    page.note(&match is_live {
        true => format!("Seed {seed}."),
        false => format!("Seed {seed}, digest {:016x}.", report.digest),
    });
}

fn tile(value: String, name: &str) -> Tile {
    Tile { value, name: name.to_owned(), bad: false }
}

fn streams(tiles: &mut Vec<Tile>, subject: &Subject<'_>) {
    let Subject { report, words, .. } = subject;
    let arrived: u64 = report.streams.iter().map(StreamReport::arrived).sum();
    tiles.push(tile(arrived.to_string(), "frames of streams arrived"));
    let rows = words.stream_rows(subject);
    if let Some(row) = rows.iter().max_by_key(|row| row.latency.max_ns) {
        let name = format!("longest observed: stream {}", row.name);
        tiles.push(tile(time(row.latency.max_ns as f64), &name));
    }
}

fn commands(tiles: &mut Vec<Tile>, subject: &Subject<'_>) {
    let Subject { report, data, .. } = subject;
    let count: u64 = report.hosts.iter().map(|host| host.commands).sum();
    tiles.push(tile(count.to_string(), "NVMe commands"));
    let mut all = Latency::default();
    data.kinds.values().for_each(|kind| all.merge(&kind.latency));
    let scope = match data.kinds.keys().next() {
        Some((_, op)) if data.kinds.keys().all(|(_, other)| other == op) => op.name(),
        _ => "of all commands",
    };
    tiles.push(tile(time(all.summary().p50_ns as f64), &format!("median {scope}")));
    if let Some(((host, op), kind)) = worst(data) {
        let name = latency::name(subject, host, op);
        let name = if data.kinds.len() == 1 { name } else { format!("of all: {name}") };
        tiles.push(tile(
            time(kind.latency.summary().max_ns as f64),
            &format!("longest observed {name}"),
        ));
    }
    tiles.push(tile(rate(report.throughput() as f64), "throughput"));
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
    tiles.push(tile(time(worst as f64), "longest observed"));
}

/// Returns the kind of the longest command, with its key.
pub(super) fn worst(data: &ReportData) -> Option<((u16, Op), &Kind)> {
    let span = |kind: &Kind| kind.worst.until.since(kind.worst.since);
    // `max_by_key` returns the last of equal ones, so the order is reversed.
    let kinds = data.kinds.iter().rev();
    kinds.max_by_key(|(_, kind)| span(kind)).map(|(name, kind)| (*name, kind))
}

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
    use sim::measure::{Breakdown, CommandRecord, Observer};
    use sim::workload::{Fio, Rw, Workload};
    use wire::{Duration, Instant};

    #[test]
    fn rates_are_readable() {
        assert_eq!([2e3, 2e7, 2e10].map(rate), ["2 kB/s", "20.0 MB/s", "20.00 GB/s"]);
    }

    #[test]
    fn overview_shows_the_maximum_over_hosts_and_kinds() {
        let work = Workload::Fio(Fio::new(Rw::RandRw, 4096, 1));
        let mut data = ReportData::new(&Config::nvme_tsn_direct(work));
        assert!(worst(&data).is_none());
        for (host, op, us) in
            [(0, Op::Read, 5), (0, Op::Read, 6), (1, Op::Write, 9), (2, Op::Read, 9)]
        {
            let since = Instant::from_ns(3000);
            let until = since + Duration::from_us(us);
            let (drive, queue, id, offset, length) = (0, 1, 0, 0, 4096);
            let breakdown = Breakdown::default();
            data.command(&CommandRecord {
                host,
                drive,
                queue,
                id,
                op,
                offset,
                length,
                since,
                until,
                breakdown,
            });
        }
        let (name, kind) = worst(&data).unwrap();
        assert_eq!((name, kind.latency.count()), ((1, Op::Write), 1));
    }
}
