//! Where the time of streams goes, as text.

use super::document::{Listener, SimReport};
use super::hops::{StreamTime, WorstFrame, WorstHop};
use super::text::us;
use crate::simulate::stream_hops::{Cause, urgency};
use report::Align::{Left, Right};
use report::Table;
use std::collections::BTreeMap;

/// Maximum number of streams in the table.
const MOST: usize = 20;

type Row<'a> = (String, &'a Listener, &'a StreamTime);

/// Formats the mean time of streams by cause, and the waits of the worst frame of the first one.
pub(super) fn text(document: &SimReport) -> String {
    let rows = rows(document);
    let shown = &rows[..rows.len().min(MOST)];
    let spent =
        |cause: &Cause| shown.iter().any(|(.., time)| time.causes_ns.contains_key(cause.name()));
    let causes: Vec<Cause> = Cause::ALL.into_iter().filter(spent).collect();
    let Some((name, _, first)) = shown.first() else { return String::new() };
    let names: Vec<String> = causes.iter().map(|cause| cause.name().replace('_', " ")).collect();
    let columns = [("where the time of streams goes, mean in us", Left), ("total", Right)];
    let columns = columns.into_iter().chain(names.iter().map(|name| (name.as_str(), Right)));
    let mut table = Table::new(&columns.collect::<Vec<_>>());
    for (name, own, time) in shown {
        let cells = causes.iter().map(|cause| time.causes_ns.get(cause.name()).copied());
        let cells = cells.map(|ns| ns.map_or("-".to_owned(), us));
        table.row([name.clone(), us(own.latency_ns.mean)].into_iter().chain(cells).collect());
    }
    let mut out = format!("\n{}", table.text());
    if rows.len() > MOST {
        out += &format!("  and {} more with more margin\n", rows.len() - MOST);
    }
    out + &first.worst.as_ref().map_or_else(String::new, |worst| frame(name, worst))
}

/// Returns the streams, the most urgent first.
fn rows(document: &SimReport) -> Vec<Row<'_>> {
    let margins = document.requirements.iter();
    let margins: BTreeMap<&str, Option<i64>> =
        margins.map(|row| (row.name.as_str(), row.margin_ns)).collect();
    let rows = document.stream_rows().into_iter();
    let rows = rows.filter_map(|(name, _, own)| {
        let time = own.time.as_ref()?;
        (own.arrived > 0).then_some((name, own, time))
    });
    let mut rows: Vec<Row<'_>> = rows.collect();
    rows.sort_by_cached_key(|(name, own, _)| {
        let margin = margins.get(format!("stream {name}").as_str()).copied().flatten();
        urgency(margin, own.latency_ns.max)
    });
    rows
}

fn frame(name: &str, worst: &WorstFrame) -> String {
    let WorstFrame { number, sent_ns, latency_ns, hops } = worst;
    let mut out = format!(
        "\nThe longest of {name}: frame {number}, sent at {} us, took {} us\n",
        us(*sent_ns),
        us(*latency_ns)
    );
    let waits: String = hops.iter().map(waits).collect();
    out += if waits.is_empty() { "  it waited nowhere\n" } else { &waits };
    out
}

fn waits(hop: &WorstHop) -> String {
    let spent = |cause: Cause| hop.causes_ns.get(cause.name()).copied().unwrap_or(0);
    let words = [
        (Cause::Gate, "for a gate"),
        (Cause::Shaper, "for a shaper"),
        (Cause::RateLimit, "for the rate limit"),
        (Cause::Other, "for other reasons"),
        (Cause::Preempted, "interrupted"),
    ];
    let words = words.into_iter().filter(|(cause, _)| spent(*cause) > 0);
    let mut parts: Vec<String> =
        words.map(|(cause, words)| format!("{words} {} us", us(spent(cause)))).collect();
    let mut behind: Vec<(String, u64)> = Vec::new();
    for frame in &hop.behind {
        let name = format!("{} (class {})", frame.stream, frame.class);
        match behind.iter_mut().find(|(known, _)| *known == name) {
            Some((_, ns)) => *ns += frame.ns,
            None => behind.push((name, frame.ns)),
        }
    }
    parts.extend(behind.iter().map(|(name, ns)| format!("behind {name} {} us", us(*ns))));
    let waited: u64 = WAITS.iter().map(|cause| spent(*cause)).sum();
    if waited == 0 {
        return String::new();
    }
    format!("  waited {} us at {}: {}\n", us(waited), hop.port, parts.join(", "))
}

/// The causes that depend on other frames and on settings of the port.
const WAITS: [Cause; 8] = [
    Cause::OwnClass,
    Cause::HigherClass,
    Cause::LowerClass,
    Cause::Gate,
    Cause::Shaper,
    Cause::RateLimit,
    Cause::Other,
    Cause::Preempted,
];

#[cfg(test)]
mod tests {
    use crate::Plan;
    use crate::run::{RunOptions, Seeds, Watch, run, text};
    use crate::simulate::OutputFiles;
    use crate::simulate::limits::Assumptions;

    /// The frames of the test of `stream_hops` with hand-computed waits.
    #[test]
    fn text_names_port_cause_and_streams_and_document_has_the_same_sums() {
        let plan = "runtime = \"5ms\"\n[nodes.a]\n[nodes.b]\n[nodes.c]\n[bridges.x]\n[link]\n\
                    rate = \"1G\"\nvlan = 1\n[traffic.t]\nfrom = \"a\"\nto = \"c\"\n\
                    start = \"1ms\"\ninterval = \"10ms\"\nlength = \"1000B\"\nburst = 2\n\
                    priority = 3\n[traffic.u]\nfrom = \"b\"\nto = \"c\"\nstart = \"1ms\"\n\
                    interval = \"10ms\"\nlength = \"1500B\"\npriority = 7\ndeadline = \"1ms\"\n";
        let planned = Plan::parse("p.toml", plan).unwrap().build().unwrap();
        let options = RunOptions {
            name: "p.toml".to_owned(),
            requested: OutputFiles::default(),
            assumed: Assumptions::default(),
            text: String::new(),
            phases: None,
            tables: None,
        };
        let watch = Watch { is_stopped: &|| false, progress: &|_| {} };
        let document = run(&planned, &Seeds::default(), &options, &watch);
        let document = document.unwrap_or_else(|_| panic!("it runs"));
        for (name, _, own) in document.stream_rows() {
            let time = own.time.as_ref().expect("the first run has it");
            assert_eq!(time.causes_ns.values().sum::<u64>(), own.latency_ns.mean, "{name}");
            let hops = time.hops.iter().map(|hop| hop.mean_ns).sum::<u64>();
            assert!(hops.abs_diff(own.latency_ns.mean) < time.hops.len() as u64, "{name}");
            let worst = time.worst.as_ref().expect("frames arrived");
            assert_eq!(worst.latency_ns, own.latency_ns.max, "{name}");
        }
        let text = text::text(&document);
        // The stream with a deadline comes first.
        let wait = "  waited 4.192 us at x port 2 to c: behind t (class 3) 4.192 us\n";
        assert!(text.contains("The longest of u: frame 0, ") && text.contains(wait), "{text}");
    }
}
