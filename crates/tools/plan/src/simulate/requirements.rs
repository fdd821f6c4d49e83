//! Checks whether a simulation met the requirements of its plan.

use super::limits::signed_time;
use crate::{Bound, Requirement, Subject};
use report::{Align, Column, FAIL, Table, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::measure::{CommandRecord, Observer};
use sim::world::Report;
use wire::Duration;

/// Compares commands with the deadlines of hosts and drives.
#[derive(Clone, Debug)]
pub struct Deadlines {
    requirements: Vec<Requirement>,
    /// By requirement; none for streams, whose frames the simulator counts.
    seen: Vec<Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    count: u64,
    late: u64,
    worst: Duration,
}

impl Deadlines {
    /// Creates the comparison for these requirements.
    pub fn new(requirements: &[Requirement]) -> Self {
        let seen = vec![Seen::default(); requirements.len()];
        Self { requirements: requirements.to_vec(), seen }
    }
}

impl Observer for Deadlines {
    fn command(&mut self, record: &CommandRecord) {
        for (requirement, seen) in self.requirements.iter().zip(&mut self.seen) {
            let label = match requirement.subject {
                Subject::Host(host) => host == usize::from(record.host),
                Subject::Drive { host, drive } => {
                    (host, drive) == (record.host.into(), record.drive.into())
                }
                Subject::Stream { .. } => false,
            };
            let Bound::Deadline(deadline) = requirement.bound else { continue };
            if label {
                let took = record.until.since(record.since);
                seen.count += 1;
                seen.late += u64::from(took > deadline);
                seen.worst = seen.worst.max(took);
            }
        }
    }
}

/// A requirement of the plan and the observed value. If a requirement does not hold, the exit
/// status is 3; with `--sweep` if it does not hold in any combination.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "Requirement")]
pub struct Row {
    /// `host NAME`, `drive NAME`, `stream NAME` or `stream NAME loss`; of a stream with several
    /// listeners `stream NAME at LISTENER`.
    pub name: String,
    /// The deadline; null for a loss.
    pub limit_ns: Option<u64>,
    /// The largest latency observed; null if none was observed, and for a loss.
    pub worst_ns: Option<u64>,
    /// `limit_ns` less `worst_ns`, negative if the deadline was missed; null if either is null.
    pub margin_ns: Option<i64>,
    /// Commands, or frames sent.
    pub count: u64,
    /// Commands or frames that missed the deadline, including frames that were lost. For a loss,
    /// the lost frames.
    pub late: u64,
    /// Whether nothing was late, at least one command or frame was counted, and no command of the
    /// host failed. For a loss: whether the share of lost frames is permitted.
    pub holds: bool,
    /// Only for a loss: frames that may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permitted: Option<u64>,
}

/// Returns every requirement with the observed value.
pub fn rows(deadlines: &Deadlines, report: &Report) -> Vec<Row> {
    let all = deadlines.requirements.iter().zip(&deadlines.seen);
    all.map(|(requirement, seen)| row(requirement, *seen, report)).collect()
}

fn row(requirement: &Requirement, seen: Seen, report: &Report) -> Row {
    let (name, subject) = (requirement.name.clone(), requirement.subject);
    let stream = match subject {
        Subject::Stream { id, listener } => {
            report.stream(id).map(|stream| (stream.sent, &stream.listeners[listener]))
        }
        Subject::Host(_) | Subject::Drive { .. } => None,
    };
    match (requirement.bound, stream) {
        (Bound::Loss(share), stream) => {
            let (sent, lost) = stream.map_or((0, 0), |(sent, own)| (sent, own.lost));
            let holds = sent > 0 && lost <= share.part_of(sent);
            let permitted = Some(share.part_of(sent));
            Row { count: sent, late: lost, holds, permitted, ..Row::new(name) }
        }
        (Bound::Deadline(deadline), stream) => {
            let seen = stream.map_or(seen, |(sent, own)| Seen {
                count: sent,
                late: own.late,
                worst: own.latency.longest(),
            });
            let failed = match subject {
                Subject::Host(host) => report.hosts[host].failures,
                _ => 0,
            };
            let worst = (seen.worst > Duration::ZERO).then(|| seen.worst.as_ns());
            let limit = deadline.as_ns();
            Row {
                limit_ns: Some(limit),
                worst_ns: worst,
                margin_ns: worst.map(|worst| limit as i64 - worst as i64),
                count: seen.count,
                late: seen.late,
                holds: seen.count > 0 && seen.late == 0 && failed == 0,
                ..Row::new(name)
            }
        }
    }
}

impl Row {
    fn new(name: String) -> Self {
        let (limit_ns, worst_ns, margin_ns, count, late) = (None, None, None, 0, 0);
        Self { name, limit_ns, worst_ns, margin_ns, count, late, holds: false, permitted: None }
    }

    /// Returns a key that is larger for a row that is further beyond its limit.
    pub fn badness(&self) -> impl Ord + use<> {
        (!self.holds, self.worst_ns, self.late)
    }

    /// Returns pass or fail.
    pub fn verdict(&self) -> &'static str {
        if self.holds { "pass" } else { FAIL }
    }
}

/// Summarises all requirements of a run: `met by 417 us`, `missed by 27 us: stream t`, `missed: 3
/// lost: stream t and 1 more`. The named requirement is the one furthest beyond its limit, or else
/// closest to its limit. Returns `None` without requirements.
pub fn verdict<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<String> {
    let rows: Vec<&Row> = rows.into_iter().collect();
    rows.first()?;
    let words = |ns: i64| time(ns.unsigned_abs() as f64);
    let missed: Vec<&Row> = rows.iter().filter(|row| !row.holds).copied().collect();
    // The largest excess first; then the most losses; then a failed command, a frame that never
    // arrived, or no command at all.
    let badness = |row: &&Row| {
        let late = row.margin_ns.filter(|ns| *ns < 0);
        (late.map_or(0, i64::unsigned_abs), if row.limit_ns.is_none() { row.late } else { 0 })
    };
    let Some(worst) =
        missed.iter().copied().reduce(|a, b| if badness(&b) > badness(&a) { b } else { a })
    else {
        let margin = rows.iter().filter_map(|row| row.margin_ns).min();
        return Some(margin.map_or_else(|| "met".to_owned(), |ns| format!("met by {}", words(ns))));
    };
    let how = match (worst.margin_ns, badness(&worst)) {
        (Some(ns), (1.., _)) => format!(" by {}", words(ns)),
        (_, (_, lost @ 1..)) => format!(": {lost} lost"),
        _ => String::new(),
    };
    let others = match missed.len() - 1 {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Some(format!("missed{how}: {}{others}", worst.name))
}

/// Returns the rows as a table: requirement, limit, largest observed value, margin, count.
pub fn table(rows: &[Row]) -> Table {
    Table::from_rows(&COLUMNS, rows)
}

/// Returns the rows of several trials as a table, each with the trial's number.
pub fn table_of_trials<'a>(rows: impl Iterator<Item = (&'a Row, usize)>) -> Table {
    const AT: usize = COLUMNS.len() - 1;
    let mut heads = COLUMNS.map(|(name, align, _)| (name, align)).to_vec();
    heads.insert(AT, ("trial", Align::Right));
    let mut table = Table::new(&heads);
    for (row, trial) in rows {
        let mut cells: Vec<_> = COLUMNS.iter().map(|(.., text)| text(row)).collect();
        cells.insert(AT, trial.to_string());
        table.row(cells);
    }
    table
}

const COLUMNS: [Column<Row>; 7] = {
    use Align::{Left, Right};
    [
        ("requirement", Left, |row| row.name.clone()),
        ("at most", Right, |row| match (row.limit_ns, row.permitted) {
            (Some(ns), _) => time(ns as f64),
            (None, permitted) => format!("{} lost", permitted.unwrap_or(0)),
        }),
        ("largest observed", Right, |row| match (row.limit_ns, row.worst_ns) {
            (None, _) => format!("{} lost", row.late),
            (_, Some(ns)) => time(ns as f64),
            _ => "–".to_owned(),
        }),
        ("margin", Right, |row| {
            row.margin_ns.map_or_else(|| "–".to_owned(), |ns| signed_time(i128::from(ns) * 1000))
        }),
        ("of", Right, |row| row.count.to_string()),
        ("late or lost", Right, |row| row.late.to_string()),
        ("", Left, |row| row.verdict().to_owned()),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline(margin_ns: Option<i64>, holds: bool) -> Row {
        let (limit_ns, count) = (Some(1_000), 1);
        Row { limit_ns, margin_ns, count, holds, ..Row::new("host a".into()) }
    }

    fn loss(late: u64) -> Row {
        Row { late, holds: late == 0, ..Row::new("stream s loss".into()) }
    }

    #[test]
    fn requirement_verdict_names_the_worst_row() {
        let verdict = |rows: &[Row]| verdict(rows).expect("requirements");
        assert_eq!(super::verdict(&[]), None);
        let met = deadline(Some(400), true);
        assert_eq!(verdict(&[met.clone(), deadline(Some(7), true), loss(0)]), "met by 7 ns");
        assert_eq!(verdict(&[loss(0)]), "met");
        let missed = [met.clone(), deadline(Some(-30), false), deadline(Some(-9), false), loss(4)];
        assert_eq!(verdict(&missed), "missed by 30 ns: host a and 2 more");
        assert_eq!(verdict(&[met.clone(), loss(4)]), "missed: 4 lost: stream s loss");
        // In time, but a command failed or none was counted.
        assert_eq!(verdict(&[met.clone(), deadline(Some(5), false)]), "missed: host a");
        assert_eq!(verdict(&[met, deadline(None, false)]), "missed: host a");
    }
}
