//! The largest difference between two runs as one sentence.

use super::{Compared, Difference, Pair};
use crate::trace::measures::MeasureKind;
use report::span::micros;

/// Formats a signed number of nanoseconds in microseconds.
pub(super) fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { '-' } else { '+' };
    format!("{sign}{}", micros(ns.abs().round() as u64))
}

/// Returns the share of a difference in the time or traffic of all commands.
fn weight(difference: &Difference) -> f64 {
    difference.medians.difference.value.abs() * difference.n.iter().sum::<usize>() as f64
}

/// Returns the significant difference with the greatest weight among measures of these kinds.
fn greatest<'a>(
    pairs: impl Iterator<Item = &'a Pair>,
    has_kind: fn(MeasureKind) -> bool,
) -> Option<(&'a Pair, &'a Difference)> {
    let all = pairs.flat_map(|pair| pair.differences.iter().map(move |one| (pair, one)));
    let found = all.filter(|(_, one)| one.is_significant() && has_kind(one.measure.kind));
    found.max_by(|(_, one), (_, other)| weight(one).total_cmp(&weight(other)))
}

fn per_cent(difference: &Difference) -> String {
    let text = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    match difference.medians.ratio {
        Some(ratio) => match ratio.interval {
            Some((low, high)) => format!(
                " ({} %, with 95 % confidence {} to {} %)",
                text(ratio.value),
                text(low),
                text(high)
            ),
            None => format!(" ({} %)", text(ratio.value)),
        },
        None => String::new(),
    }
}

fn longer(ns: f64) -> &'static str {
    if ns < 0.0 { "shorter" } else { "longer" }
}

/// Describes the largest difference: first of whole commands, else of segments, else of stages and
/// parts, else of TLPs and bytes. The largest difference has the greatest product of the difference
/// of medians and the number of commands.
pub fn sentence(compared: &Compared) -> String {
    let pairs = || compared.pairs.iter();
    let orders: [fn(MeasureKind) -> bool; 4] = [
        |kind| kind == MeasureKind::Duration,
        |kind| kind == MeasureKind::Segment,
        MeasureKind::is_time,
        |kind| !kind.is_time(),
    ];
    let found = orders.into_iter().find_map(|has_kind| greatest(pairs(), has_kind));
    let mut text = match found {
        Some((pair, one)) => differs(pair, one),
        None if compared.pairs.is_empty() => "A and B have no type of command in common".to_owned(),
        None => format!("Nothing differs significantly in {} comparisons", compared.tests),
    };
    let names = ["A", "B"].into_iter().zip(&compared.alone);
    for (name, alone) in names.filter(|(_, alone)| !alone.is_empty()) {
        let types = if alone.len() == 1 { "type" } else { "types" };
        text += &format!("; {} {types} of command only in {name}", alone.len());
    }
    text + "."
}

fn differs(pair: &Pair, one: &Difference) -> String {
    let kind = &pair.kinds[0].kind;
    let value = one.medians.difference.value;
    let (measured, name) = (one.measure.kind, one.measure.name);
    if !measured.is_time() {
        let (amount, more) = (value.abs(), if value < 0.0 { "fewer" } else { "more" });
        return format!(
            "{kind} has {amount} {more} {measured} {name} in A than in B{}",
            per_cent(one)
        );
    }
    let amount = format!("{} us {}", micros(value.abs().round() as u64), longer(value));
    let per_cent = per_cent(one);
    if measured != MeasureKind::Duration {
        let words = one.measure.words();
        return format!("{kind}: '{words}' is {amount} in A than in B{per_cent}");
    }
    let mut text = format!("{kind} takes {amount} in A than in B{per_cent}");
    let most = greatest(std::iter::once(pair), |measured| measured == MeasureKind::Segment);
    if let Some((_, part)) = most {
        let value = signed(part.medians.difference.value);
        text += &format!(", most of all in '{}': {value} us", part.measure.name);
    }
    text
}
