//! The comparison as an HTML page.

use super::{Comparison, METHOD, NO_PLACES, names, text};
use crate::trace::compare::{Pair, sentence};
use crate::trace::measures::MeasureKind;
use report::{Align, Bar, Page, Stack, Table, distribution, time};

/// Number of command types with pictures. Types with the most total time come first.
const MOST_TYPES: usize = 4;

/// Formats the whole page.
pub fn page(report: &Comparison) -> String {
    let mut page = Page::new("farlane trace: two runs compared");
    page.text(&sentence(&report.compared));
    runs(&mut page, report);
    report.unlike.iter().for_each(|sentence| page.warning(sentence));
    let (pairs, few) = text::by_time(report);
    pictures(&mut page, report, &pairs[..pairs.len().min(MOST_TYPES)]);
    page.section("Measures");
    page.text(&text::tests(report));
    page.text(METHOD);
    if !report.places {
        page.text(NO_PLACES);
    }
    for pair in pairs {
        page.note(&text::heading(pair));
        page.table(&text::table(pair));
    }
    if !few.is_empty() {
        page.section(text::TOO_FEW);
        page.table(&text::few_table(&few));
    }
    alone(&mut page, report);
    let version = env!("CARGO_PKG_VERSION");
    page.finish(&format!(
        "Written by farlane {version}. Medians of parts do not add up to the median of the whole."
    ))
}

fn runs(page: &mut Page, report: &Comparison) {
    use Align::{Left, Right, Wrap};
    let mut table =
        Table::new(&[("run", Left), ("traces", Wrap), ("commands", Right), ("selected", Right)]);
    for (name, traced) in ["A", "B, the base"].iter().zip(&report.runs) {
        let numbers = [traced.all, traced.selected].map(|number| number.to_string());
        table.row([vec![(*name).to_owned(), names(traced)], numbers.to_vec()].concat());
    }
    page.table(&table);
}

fn pictures(page: &mut Page, report: &Comparison, pairs: &[&Pair]) {
    for pair in pairs {
        let kind = &pair.kinds[0].kind;
        let latency = |side: usize| report.runs[side].side.statistics.latency(kind);
        let [Some(a), Some(b)] = [latency(0), latency(1)] else { continue };
        page.section(kind);
        let lines = [("A".to_owned(), a), ("B".to_owned(), b)];
        let small = "the slowest one in a thousand is beyond the right end".to_owned();
        let caption = "Share of commands that took at most so long".to_owned();
        let mut figures = vec![(caption, small, distribution(kind, &lines).html())];
        let note = "medians of each part; the bars have the same width";
        for (title, kind) in [
            ("What it waits for", MeasureKind::Segment),
            ("Where the time passes", MeasureKind::Stage),
        ] {
            if let Some(stack) = stack(pair, title, kind) {
                figures.push((title.to_owned(), note.to_owned(), stack.html()));
            }
        }
        page.figures(&figures);
    }
}

/// Draws the medians of the measures of a kind, A above B.
fn stack(pair: &Pair, title: &str, kind: MeasureKind) -> Option<Stack> {
    let parts: Vec<_> = pair.differences.iter().filter(|one| one.measure.kind == kind).collect();
    let whole = pair.differences.iter().find(|one| one.measure.kind == MeasureKind::Duration)?;
    let bar = |(name, side): (&str, usize)| Bar {
        name: name.to_owned(),
        total: time(whole.medians.medians[side] as f64),
        parts: parts.iter().map(|one| one.medians.medians[side]).collect(),
    };
    (!parts.is_empty()).then(|| Stack {
        title: title.to_owned(),
        note: String::new(),
        parts: parts.iter().map(|one| one.measure.name.to_owned()).collect(),
        // B is the base of the comparison, its first series.
        bars: [("A", 1), ("B", 0)].map(bar).to_vec(),
        format: |ns| time(ns as f64),
    })
}

fn alone(page: &mut Page, report: &Comparison) {
    let all = ["A", "B"].iter().zip(&report.compared.alone);
    let rows: Vec<_> =
        all.flat_map(|(name, alone)| alone.iter().map(move |one| (name, one))).collect();
    if rows.is_empty() {
        return;
    }
    page.section("Types of one run alone");
    let columns = [("type", Align::Left), ("run", Align::Left), ("commands", Align::Right)];
    let mut table = Table::new(&columns);
    for (name, one) in rows {
        table.row(vec![one.kind.clone(), (*name).to_string(), one.commands.to_string()]);
    }
    page.table(&table);
}
