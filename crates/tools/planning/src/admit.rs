//! Whether one more stream fits into a network without a change of the others.

use crate::bound::document::StreamRow;
use crate::bound::{Method, bound_with, known_commands};
use crate::schedule::document::MissedRow;
use crate::schedule::{Deadlines, Missed, missed};
use plan::{Plan, Planned};
use report::Table;
use schemars::JsonSchema;
use serde::Serialize;

/// Whether a stream fits (`farlane tsn admit --json`).
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct AdmitReport {
    /// Version of this format.
    pub schema: u32,
    /// The plan's file.
    pub plan: String,
    /// Whether the stream has a bound below its deadline, and no other stream or command misses its
    /// deadline because of it.
    pub admitted: bool,
    /// The bound of the new stream.
    pub stream: StreamRow,
    /// Deadlines that are missed with the new stream, and not without it.
    pub missed: Vec<MissedRow>,
}

/// The text of a plan with one more stream. `stream` is its keys: `name=N,from=A,to=B,length=64B`,
/// with `to` for each listener.
///
/// # Errors
/// What is wrong with the words.
pub fn with_stream(plan: &Plan, stream: &str) -> Result<(String, String), String> {
    let mut text = plan.dump();
    let mut name = None;
    let (mut keys, mut listeners) = (String::new(), Vec::new());
    for word in stream.split(',') {
        let expected = "expected KEY=VALUE,…, such as name=N,from=A,to=B,interval=1ms,length=100B";
        let (key, value) =
            word.split_once('=').ok_or_else(|| format!("invalid stream '{stream}': {expected}"))?;
        match key {
            "name" => name = Some(value.to_owned()),
            "to" => listeners.push(value),
            _ => {
                let number = value.parse::<u64>().is_ok();
                let quoted = if number { value.to_owned() } else { format!("{value:?}") };
                keys += &format!("{key} = {quoted}\n");
            }
        }
    }
    match &listeners[..] {
        [] => {}
        [one] => keys += &format!("to = {one:?}\n"),
        all => keys += &format!("to = {all:?}\n"),
    }
    let name = name.ok_or_else(|| format!("invalid stream '{stream}': 'name' is missing"))?;
    text += &format!("\n[traffic.{name:?}]\n{keys}");
    Ok((text, name))
}

/// Compares a plan with the plan that has the stream `name` in addition.
pub fn admit(file: String, before: &Planned, after: &Planned, name: &str) -> AdmitReport {
    // The commands do not depend on streams.
    let commands = known_commands(before);
    let late = |planned: &Planned| {
        let bounds = bound_with(planned, &commands, Method::Tfa);
        let missed: Vec<Missed> = missed(planned, &bounds, Deadlines::default());
        (bounds, missed)
    };
    let (_, known) = late(before);
    let (bounds, missed) = late(after);
    let new = |missed: &&Missed| known.iter().all(|known| known.name != missed.name);
    let missed: Vec<MissedRow> = missed.iter().filter(new).map(MissedRow::from).collect();
    let stream = bounds.streams.iter().find(|stream| stream.name == name).map(StreamRow::from);
    let stream = stream.expect("the plan has the stream");
    let admitted = missed.is_empty() && stream.bound_ns.is_some();
    AdmitReport { schema: 1, plan: file, admitted, stream, missed }
}

impl AdmitReport {
    /// The report for people.
    pub fn text(&self) -> String {
        use report::Align::{Left, Right};
        let us = |ns: Option<u64>| match ns {
            Some(ns) => format!("{:.3}", ns as f64 / 1e3),
            None => "none".to_owned(),
        };
        let answer = if self.admitted { "fits" } else { "does not fit" };
        let bound = us(self.stream.bound_ns);
        let why = self.stream.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let mut text = format!("{} {answer}; bound us: {bound}{why}\n", self.stream.name);
        let columns = [("missed", Left), ("deadline us", Right), ("bound us", Right), ("", Left)];
        let mut table = Table::new(&columns);
        for row in &self.missed {
            let why = row.why.clone().unwrap_or_default();
            table.row(vec![row.name.clone(), us(Some(row.deadline_ns)), us(row.bound_ns), why]);
        }
        if table.rows() > 0 {
            text += &format!("\n{}", table.text());
        }
        text
    }
}
