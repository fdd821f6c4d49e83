//! The results as one self-contained page: tables, distributions, time series, data.

use super::compare;
use super::document::{IoDocument, IoSection};
use super::print::{drives, outages, sentence, table, title};
use crate::commands::finish_with_data;
use report::{Axis, Page, Plot, Scale, distribution, time};

/// The page.
pub fn page(document: &IoDocument) -> String {
    let mut page = Page::new("farlane io");
    drives(document).iter().for_each(|line| page.text(&format!("{line}.")));
    if let Some(why) = &document.why {
        page.warning(&format!("The run stopped: {why}."));
    }
    for section in &document.sections {
        page.section(&title(document, section));
        section.errors.iter().for_each(|error| {
            page.warning(&format!("Failed: {} ({}).", error.n, error.cause));
        });
        outages(section).iter().for_each(|line| page.warning(&format!("{line}.")));
        section.wrong.iter().for_each(|wrong| page.warning(&sentence(wrong)));
        page.table(&table(section));
        let name = format!("latency distribution of {}", section.name);
        let lines = [(section.name.clone(), &section.latency)];
        let mut figures =
            vec![("Latency".to_owned(), String::new(), distribution(&name, &lines).html())];
        if section.timeline.len() > 1 {
            figures.push(("IOPS".to_owned(), each(section), iops(section).html()));
            figures.push(("Latency along time".to_owned(), each(section), course(section).html()));
        }
        page.figures(&figures);
    }
    for (name, table) in compare::tables(document) {
        page.section(&format!("{name}, compared"));
        page.table(&table);
    }
    finish_with_data(page, "JSON, with percentiles", document)
}

fn each(section: &IoSection) -> String {
    format!("A point every {}.", time(section.interval_ns as f64))
}

/// The middle of each interval in nanoseconds.
fn middles(section: &IoSection) -> impl Iterator<Item = f64> {
    let interval = section.interval_ns as f64;
    (0..section.timeline.len()).map(move |at| (at as f64 + 0.5) * interval)
}

fn along(section: &IoSection) -> Axis {
    let end = section.interval_ns as f64 * section.timeline.len() as f64;
    Axis::new("time", Scale::Linear, time, (0.0, end))
}

fn iops(section: &IoSection) -> Plot {
    let most = section.timeline.iter().map(|bin| bin.iops).fold(1.0, f64::max);
    let whole = |value: f64| format!("{value:.0}");
    let axis = Axis::new("IOPS", Scale::Linear, whole, (0.0, most));
    let mut plot = Plot::new(&format!("IOPS of {} along time", section.name), along(section), axis);
    plot.line("IOPS", middles(section).zip(section.timeline.iter().map(|bin| bin.iops)));
    plot
}

fn course(section: &IoSection) -> Plot {
    let filled = || section.timeline.iter().zip(middles(section)).filter(|(bin, _)| bin.max_ns > 0);
    let least = filled().map(|(bin, _)| bin.mean_ns).min().unwrap_or(1);
    let most = filled().map(|(bin, _)| bin.max_ns).max().unwrap_or(2);
    let axis = Axis::new("latency", Scale::Log, time, (least as f64, (most + 1) as f64));
    let name = format!("latency of {} along time", section.name);
    let mut plot = Plot::new(&name, along(section), axis);
    plot.line("mean", filled().map(|(bin, at)| (at, bin.mean_ns as f64)));
    plot.line("longest", filled().map(|(bin, at)| (at, bin.max_ns as f64)));
    plot
}
