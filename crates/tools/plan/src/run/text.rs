//! The results as text.

use super::document::{
    Credit, Listener, Port, PortClass, Replayed, SimLatency, SimLink, SimPush, SimReport,
    SimSegment, SimTunnel, Stream, World,
};
use super::hops_text;
use super::over_seeds::OverSeeds;
use crate::simulate::{clocks, flows as bulk, handled, requirements};
use report::Align::{Left, Right};
use report::document::INTERRUPTED;
use report::{Column, Table};

/// Formats nanoseconds as microseconds with three decimals.
pub fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

fn row(name: &str, width: usize, latency: &SimLatency) -> String {
    let SimLatency { n, min, mean, p50, p90, p99, p99_9, max, jitter, .. } = *latency;
    let times = [min, mean, p50, p90, p99, p99_9, max, jitter];
    let cells: String = times.iter().map(|ns| format!(" {:>10}", us(*ns))).collect();
    format!("{name:<width$} {n:>8}{cells}\n")
}

/// Formats the whole text.
pub fn text(document: &SimReport) -> String {
    let mut out = match document.world {
        World::Live => {
            format!(
                "{}: live, seed {}, {} us\n\n",
                document.plan,
                document.seed,
                us(document.time_ns)
            )
        }
        World::Sim => format!(
            "{}: seed {}, {} us of virtual time, {} events, digest {}\n\n",
            document.plan,
            document.seed,
            us(document.time_ns),
            document.events,
            document.digest
        ),
    };
    if document.interrupted {
        out += &format!("{INTERRUPTED}\n\n");
    }
    out += &match &document.phases {
        Some(phases) => phases.text(),
        None => requirements(document),
    };
    for remark in &document.remarks {
        out += &format!("Remark: {remark}\n\n");
    }
    if document.hosts.is_empty() {
        let all = streams(document) + &flows(document);
        out += all.trim_start_matches('\n');
        out += &hops_text::text(document);
        out += &handled(document);
        out += &ports(document);
    } else {
        out += &hosts(document);
        out += &streams(document);
        out += &flows(document);
        out += &hops_text::text(document);
        out += &handled(document);
        out += &ports(document);
        out += &segments(document);
    }
    if !document.clocks.is_empty() {
        out += &format!("\n{}", clocks::clock_table(&document.clocks).text());
    }
    if !document.gate_edges.is_empty() {
        out += &format!("\n{}", clocks::edge_table(&document.gate_edges).text());
    }
    out += &links(document);
    if !document.limits.is_empty() {
        out += "\nWill the drive fall off the bus?\n";
        out += &document.limits_text;
    }
    if !document.runs.is_empty() {
        out += &runs(document);
    }
    out += &document.over_seeds.as_ref().map_or_else(String::new, OverSeeds::text);
    out
}

fn hosts(document: &SimReport) -> String {
    let mut out = latencies(document);
    for host in &document.hosts {
        if host.bytes > 0 {
            out += &format!(
                "\n{}: {} IOPS, {} MB/s; {} blocks compared, {} wrong; {} commands failed",
                host.host,
                host.iops,
                host.bytes_per_s / 1_000_000,
                host.verified_blocks,
                host.mismatches,
                host.failures
            );
            out += &host.reservation_conflicts.map_or_else(String::new, |conflicts| {
                format!(", {conflicts} of them because of another host's reservation")
            });
        }
    }
    for host in &document.hosts {
        out += &host
            .pushed
            .as_ref()
            .map_or_else(String::new, |figures| pushed(document.world, &host.host, figures));
    }
    if document.hosts.iter().filter(|host| host.bytes > 0).count() > 1 {
        let rate = document.bytes_per_s / 1_000_000;
        out += &format!(
            "\nall hosts: {} IOPS, {rate} MB/s, from the first one's beginning to the last one's end",
            document.iops
        );
    }
    for host in &document.hosts {
        out += &host
            .recorded
            .as_ref()
            .map_or_else(String::new, |figures| recorded(&host.host, figures));
    }
    out + "\n"
}

fn pushed(world: World, host: &str, pushed: &SimPush) -> String {
    let SimPush { entries, unpushed_entries, bytes, hits, misses, unused_bytes, .. } = pushed;
    let mut text = format!(
        "\n{host}: {entries} of {} entries pushed, {bytes} bytes with their data",
        entries + unpushed_entries
    );
    // Live, only the device nodes count the use of pushed bytes.
    if world == World::Sim {
        text += &format!(
            "; {hits} reads of drives answered from push, {misses} by the host; {unused_bytes} \
             bytes pushed for nothing"
        );
    }
    let reasons = pushed.not_pushed.iter();
    let reasons: Vec<_> =
        reasons.map(|reason| format!("{} {}", reason.commands, reason.reason)).collect();
    match reasons.is_empty() {
        true => text,
        false => format!("{text}; commands not pushed, or in part: {}", reasons.join(", ")),
    }
}

fn requirements(document: &SimReport) -> String {
    let rows = &document.requirements;
    if rows.is_empty() {
        return String::new();
    }
    let met = rows.iter().filter(|row| row.holds).count();
    let table = requirements::table(rows).text();
    format!("{met} of {} requirements are met\n{table}\n", rows.len())
}

fn flows(document: &SimReport) -> String {
    match &document.flows[..] {
        [] => String::new(),
        rows => format!("\n{}", bulk::table(rows).text()),
    }
}

fn streams(document: &SimReport) -> String {
    let columns: [Column<(String, &Stream, &Listener)>; 12] = [
        ("stream, times in us", Left, |(name, ..)| name.clone()),
        ("sent", Right, |(_, stream, _)| stream.sent.to_string()),
        ("arrived", Right, |(.., own)| own.arrived.to_string()),
        ("lost", Right, |(.., own)| own.lost.to_string()),
        ("min", Right, |(.., own)| us(own.latency_ns.min)),
        ("mean", Right, |(.., own)| us(own.latency_ns.mean)),
        ("p50", Right, |(.., own)| us(own.latency_ns.p50)),
        ("p99", Right, |(.., own)| us(own.latency_ns.p99)),
        ("p99.9", Right, |(.., own)| us(own.latency_ns.p99_9)),
        ("max", Right, |(.., own)| us(own.latency_ns.max)),
        ("max-min", Right, |(.., own)| us(own.latency_ns.peak_to_peak)),
        ("backlog", Right, |(_, stream, _)| format!("{} B", stream.backlog_bytes)),
    ];
    if document.streams.is_empty() {
        return String::new();
    }
    format!("\n{}", Table::from_rows(&columns, &document.stream_rows()).text())
}

fn handled(document: &SimReport) -> String {
    let mut out = String::new();
    if !document.eliminations.is_empty() {
        out += &format!("\n{}", handled::eliminations(&document.eliminations).text());
        out += &format!("data sent again by stations: {}\n", document.retransmitted);
    }
    if !document.policings.is_empty() {
        out += &format!("\n{}", handled::policings(&document.policings).text());
    }
    out
}

/// Formats the queues of ports that shape, interrupt or drop frames.
fn ports(document: &SimReport) -> String {
    type Row<'a> = (&'a Port, &'a PortClass);
    let columns: [Column<Row<'_>>; 7] = [
        ("port", Left, |(port, _)| port.name.clone()),
        ("class", Right, |(_, class)| class.class.to_string()),
        ("most queued", Right, |(_, class)| class.most_frames.to_string()),
        ("bytes", Right, |(_, class)| class.most_bytes.to_string()),
        ("full", Right, |(_, class)| class.full.to_string()),
        ("credit, bits", Right, |(_, class)| {
            let extremes =
                |credit: &Credit| format!("{:.0} to {:.0}", credit.lowest, credit.highest);
            class.credit_bits.as_ref().map_or("-".to_owned(), extremes)
        }),
        ("interrupted", Right, |(port, _)| port.interrupted.to_string()),
    ];
    let tells = |port: &&Port| {
        let shaped = port.classes.iter().any(|class| class.credit_bits.is_some());
        port.dropped > 0 || port.interrupted > 0 || shaped
    };
    let ports = document.ports.iter().filter(tells);
    let rows: Vec<Row<'_>> =
        ports.flat_map(|port| port.classes.iter().map(move |class| (port, class))).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", Table::from_rows(&columns, &rows).text())
}

fn recorded(host: &str, recorded: &Replayed) -> String {
    let Replayed { files, at, commands, left_out, gaps, .. } = recorded;
    let mut out = format!("\n{host}: {commands} commands of {}, seen at the {at}", files[0]);
    if *left_out > 0 {
        out += &format!("; {left_out} left out, which failed or are not simulated");
    }
    if *gaps > 0 {
        out += &format!("; records are missing in {gaps} places");
    }
    out
}

fn latencies(document: &SimReport) -> String {
    let names = document.hosts.iter().map(|host| host.host.chars().count() + 13);
    let width = names.max().unwrap_or(0).max(20);
    let heads = ["min", "mean", "p50", "p90", "p99", "p99.9", "max", "jitter"];
    let cells: String = heads.iter().map(|head| format!(" {head:>10}")).collect();
    let mut out = format!("{:<width$} {:>8}{cells}\n", "latency in us", "n");
    for host in &document.hosts {
        let rows = [
            ("application", &host.latency_ns),
            ("root port", &host.root_port_ns),
            ("config read", &host.config_read_ns),
        ];
        for (name, latency) in rows.into_iter().filter(|(_, latency)| latency.n > 0) {
            out += &row(&format!("{} {name}", host.host), width, latency);
        }
        if let Some(recorded) = &host.recorded {
            out += &row(&format!("{} recorded", host.host), width, &recorded.latency_ns);
        }
    }
    if document.hosts.len() > 1 {
        out += &row("all hosts", width, &document.latency_ns);
    }
    out
}

fn segments(document: &SimReport) -> String {
    let Some(segments) = &document.segments else { return String::new() };
    let mut out = String::from(
        "\nWhere the time of a command goes, in us\n\
         stage                  mean         median            p99\n",
    );
    let column = |parts: &[SimSegment], name| {
        parts.iter().find(|part| part.segment == name).map_or(0, |part| part.ns)
    };
    let columns = [&segments.mean, &segments.median, &segments.p99];
    let totals = segments.total_ns;
    let totals = [totals.mean, totals.median, totals.p99];
    for stage in sim::measure::Stage::ALL {
        let ns = columns.map(|parts| column(parts, stage.name()));
        if ns.iter().any(|ns| *ns > 0) {
            out += &format!("{:<15}", stage.name());
            for (ns, total) in ns.iter().zip(totals) {
                out += &format!(" {:>9} {:>2} %", us(*ns), ns * 100 / total.max(1));
            }
            out.push('\n');
        }
    }
    out += &format!("{:<15}", "total");
    totals.iter().for_each(|total| out += &format!(" {:>9}     ", us(*total)));
    format!("{}\n", out.trim_end())
}

const LINKS: [Column<SimLink>; 4] = [
    ("link", Left, |link| link.link.clone()),
    ("utilisation", Right, |link| {
        format!("{}.{:02} %", link.utilisation_ppm / 10_000, link.utilisation_ppm / 100 % 100)
    }),
    ("packets", Right, |link| link.packets.to_string()),
    ("bytes", Right, |link| link.bytes.to_string()),
];

const TUNNELS: [Column<SimTunnel>; 6] = [
    ("tunnel", Left, |tunnel| tunnel.tunnel.clone()),
    ("frames", Right, |tunnel| tunnel.frames.to_string()),
    ("TLPs", Right, |tunnel| tunnel.tlps.to_string()),
    ("TLPs/frame", Right, |tunnel| format!("{:.2}", tunnel.tlps_per_frame)),
    // Of two paths.
    ("failovers", Right, |tunnel| tunnel.failovers.to_string()),
    ("copies", Right, |tunnel| tunnel.copies.to_string()),
];

fn links(document: &SimReport) -> String {
    let names = document.links.iter().map(|link| link.link.chars().count());
    let widths = [names.max().unwrap_or(0).max(16), 12, 9, 12, 10, 9];
    let mut out = String::new();
    if !document.links.is_empty() {
        out += &format!("\n{}", Table::from_rows(&LINKS, &document.links).fixed(&widths));
    }
    if !document.tunnels.is_empty() {
        let two = document.tunnels.iter().any(|tunnel| tunnel.failovers + tunnel.copies > 0);
        let columns = if two { &TUNNELS[..] } else { &TUNNELS[..4] };
        out += &format!("\n{}", Table::from_rows(columns, &document.tunnels).fixed(&widths));
    }
    out
}

fn runs(document: &SimReport) -> String {
    if document.hosts.is_empty() {
        let mut out = format!("\n{:>8} {:>16}  requirements\n", "seed", "digest");
        for run in std::iter::once(&document.as_run()).chain(&document.runs) {
            let verdict = requirements::verdict(&run.requirements);
            let verdict = verdict.unwrap_or_else(|| "-".to_owned());
            out += &format!("{:>8} {:>16}  {verdict}\n", run.seed, run.digest);
        }
        return out;
    }
    let heads = ["mean", "p50", "p99", "max"];
    let cells: String = heads.iter().map(|head| format!(" {head:>10}")).collect();
    let mut out = format!("\n{:>8}{cells} {:>10} {:>16}\n", "seed", "MB/s", "digest");
    for run in std::iter::once(&document.as_run()).chain(&document.runs) {
        let latency = run.latency_ns;
        let times = [latency.mean, latency.p50, latency.p99, latency.max];
        let cells: String = times.iter().map(|ns| format!(" {:>10}", us(*ns))).collect();
        let rate = run.bytes_per_s / 1_000_000;
        out += &format!("{:>8}{cells} {rate:>10} {:>16}\n", run.seed, run.digest);
    }
    out
}
