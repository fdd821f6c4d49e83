//! The comparison as text, and its tables.

use super::{Comparison, METHOD, NO_PLACES, names};
use crate::trace::CommandType;
use crate::trace::compare::{Difference, LEVEL, Pair, sentence};
use report::span::micros;
use report::{Align, Table};
use stats::medians::Estimate;

/// Formats the whole comparison.
pub fn text(report: &Comparison) -> String {
    let mut out = sentence(&report.compared) + "\n\n";
    for (name, traced) in ["A", "B"].iter().zip(&report.runs) {
        let (selected, all) = (traced.selected, traced.all);
        out += &format!("{name}  {}: {selected} of {all} commands\n", names(traced));
    }
    for sentence in &report.unlike {
        out += &format!("\n{}\n", wrapped(sentence));
    }
    let (many, few) = by_time(report);
    for pair in many {
        let heading = heading(pair);
        out += &format!("\n{heading}\n{}\n", "-".repeat(heading.chars().count()));
        out += &table(pair).text();
    }
    if !few.is_empty() {
        out += &format!("\n{TOO_FEW}\n{}\n", "-".repeat(TOO_FEW.len()));
        out += &few_table(&few).text();
    }
    for (name, alone) in ["A", "B"].iter().zip(&report.compared.alone) {
        for one in alone {
            out += &format!("\nOnly in {name}: {}, {} commands", one.kind, one.commands);
        }
        out += if alone.is_empty() { "" } else { "\n" };
    }
    if !report.places {
        out += &format!("\n{NO_PLACES}\n");
    }
    out + "\n" + &wrapped(METHOD) + "\n"
}

/// Formats type, number of commands, and numbers of failed and lost commands.
pub fn heading(pair: &Pair) -> String {
    let [a, b] = &pair.kinds;
    let mut out = format!("{}: {} commands in A, {} in B", a.kind, a.commands, b.commands);
    for (name, counts) in [
        ("failed", [a.failed, b.failed]),
        ("lost", [a.lost, b.lost]),
        ("unacknowledged", [a.unacknowledged, b.unacknowledged]),
    ] {
        if counts != [0, 0] {
            out += &format!("; {name}: {} in A, {} in B", counts[0], counts[1]);
        }
    }
    out
}

/// The heading of types with fewer than six independent commands.
pub const TOO_FEW: &str = "Too few commands to compare";

fn spent(pair: &Pair) -> u128 {
    let time = |kind: &CommandType| u128::from(kind.latency.n) * u128::from(kind.latency.mean_ns);
    pair.kinds.iter().map(time).sum()
}

/// Returns the types of both runs, the types with the most time first: types with comparisons, and
/// types without.
pub fn by_time(report: &Comparison) -> (Vec<&Pair>, Vec<&Pair>) {
    let mut pairs: Vec<&Pair> = report.compared.pairs.iter().collect();
    pairs.sort_by_key(|pair| u128::MAX - spent(pair));
    pairs.into_iter().partition(|pair| pair.differences.iter().any(|one| one.p.is_some()))
}

/// Returns a table of the median durations, in microseconds.
pub fn few_table(pairs: &[&Pair]) -> Table {
    use Align::{Left, Right};
    let names = ["A", "B", "median A, us", "median B, us", "failed A", "failed B"];
    let columns = [("type", Left)].into_iter().chain(names.map(|name| (name, Right)));
    let mut table = Table::new(&columns.collect::<Vec<_>>());
    for pair in pairs {
        let [a, b] = &pair.kinds;
        let [counts, failed] = [[a.commands, b.commands], [a.failed, b.failed]];
        let medians = [a, b].map(|kind| match kind.latency.n {
            0 => "-".to_owned(),
            _ => micros(kind.latency.p50_ns),
        });
        let [counts, failed] =
            [counts, failed].map(|numbers| numbers.map(|number| number.to_string()));
        table.row(
            [vec![a.kind.clone()], counts.to_vec(), medians.to_vec(), failed.to_vec()].concat(),
        );
    }
    table
}

/// Returns a table with one row per measure that differs; times in microseconds.
pub fn table(pair: &Pair) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("medians, times in us", Left),
        ("A", Right),
        ("B", Right),
        ("A - B", Right),
        ("95 % interval", Right),
        ("A / B", Right),
        ("95 % interval", Right),
        ("p", Right),
        ("", Left),
    ]);
    let differs = |one: &&Difference| one.p.is_some() || one.medians.difference.value != 0.0;
    pair.differences.iter().filter(differs).for_each(|one| table.row(row(one)));
    table
}

fn row(one: &Difference) -> Vec<String> {
    let Difference { measure, medians, p, .. } = one;
    let time = measure.kind.is_time();
    let value = |value: u64| if time { micros(value) } else { value.to_string() };
    let signed = |value: f64| {
        let number = value.abs().round() as u64;
        let sign = if value < 0.0 && number > 0 { "-" } else { "" };
        format!("{sign}{}", if time { micros(number) } else { number.to_string() })
    };
    let difference = medians.difference;
    // An interval of equal values is not printed.
    let interval = |estimate: Estimate, text: &dyn Fn(f64) -> String| {
        let (low, high) = estimate.interval.filter(|_| p.is_some())?;
        Some(format!("{} .. {}", text(low), text(high)))
    };
    let ratio = |value: f64| format!("{value:.3}");
    let of_ratio = medians.ratio.and_then(|estimate| interval(estimate, &ratio));
    vec![
        measure.words(),
        value(medians.medians[1]),
        value(medians.medians[0]),
        signed(difference.value),
        interval(difference, &signed).unwrap_or_default(),
        medians.ratio.map_or_else(String::new, |estimate| ratio(estimate.value)),
        of_ratio.unwrap_or_default(),
        p.map_or_else(String::new, chance),
        if one.is_significant() { "*" } else { "" }.to_owned(),
    ]
}

fn chance(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// Wraps text at 100 columns.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 {
            let fits = column + 1 + length <= 100;
            out.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        out += word;
        column += length;
    }
    out
}

/// Formats a remark about all comparisons together.
pub fn tests(report: &Comparison) -> String {
    let significant = report.compared.pairs.iter().flat_map(|pair| &pair.differences);
    let found = significant.filter(|one| one.is_significant()).count();
    let (tests, level) = (report.compared.tests, LEVEL * 100.0);
    format!("{found} of {tests} comparisons, with at most {level} % for any false one")
}
