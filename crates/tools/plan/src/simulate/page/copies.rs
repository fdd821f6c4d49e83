//! The section about copies of frames on their paths, over time.

use super::Subject;
use crate::simulate::copies::{Bin, Copies};
use crate::simulate::places;
use report::{Axis, Page, Plot, Scale, round_time, time};

/// Adds two pictures for each place with a recovery function.
pub(super) fn section(page: &mut Page, subject: &Subject<'_>) {
    let seen = |copies: &&Copies| copies.wires.values().any(|bins| !bins.is_empty());
    let all: Vec<&Copies> = subject.copies.0.iter().filter(seen).collect();
    if all.is_empty() {
        return;
    }
    page.section("Copies on their paths");
    page.text(
        "What was sent over the last cable of each path to a node that eliminates. Beside it, how much \
         later than the first copy of its frame a copy arrives there: the history has to cover the \
         frames of that time.",
    );
    for copies in all {
        page.figures(&plots(copies, subject));
    }
}

fn plots(copies: &Copies, subject: &Subject<'_>) -> [(String, String, String); 2] {
    let named = |words: &str| (subject.words.named)(words);
    let stream = subject.words.identified.get(copies.stream).map_or("", String::as_str);
    let place = named(&copies.place.to_string());
    let bins = || copies.wires.values().flatten();
    let end = copies.wires.values().map(Vec::len).max().unwrap_or(1);
    let width = copies.width.as_ns() as f64;
    let along = || {
        let range = (0.0, end as f64 * width);
        Axis::new("time", Scale::Linear, round_time, range)
    };
    let most = bins().map(|bin| bin.copies).max().unwrap_or(1).max(1) as f64;
    let count = Axis::new(
        &format!("copies in {}", time(width)),
        Scale::Whole,
        |n| format!("{n:.0}"),
        (0.0, most),
    );
    let worst = bins().map(|bin| bin.behind.as_ns()).max().unwrap_or(0).max(1) as f64;
    let behind = Axis::new("behind the first", Scale::Linear, round_time, (0.0, worst));
    let title = format!("{stream} to {place}");
    let [copied, skew] = [format!("copies of {title}"), format!("skew of {title}")];
    let mut counts = Plot::new(&copied, along(), count);
    let mut delays = Plot::new(&skew, along(), behind);
    for (wire, bins) in &copies.wires {
        let from = places::wire(&subject.config.network, *wire);
        let from = from.map_or_else(String::new, |(from, _)| named(&from.node().to_string()));
        let points = |frames: &dyn Fn(&Bin) -> f64| {
            let all = (0..end).map(|at| bins.get(at).copied().unwrap_or_default());
            let at = |at: usize| (at as f64 + 0.5) * width;
            all.enumerate().map(|(n, bin)| (at(n), frames(&bin))).collect::<Vec<_>>()
        };
        counts.line(&format!("from {from}"), points(&|bin| bin.copies as f64));
        delays.line(&format!("from {from}"), points(&|bin| bin.behind.as_ns() as f64));
    }
    [(copied, String::new(), counts.html()), (skew, String::new(), delays.html())]
}
