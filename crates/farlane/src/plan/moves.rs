//! `[moves.NAME]`: drives that go from one host to another.

use super::host::Built;
use super::section::{Section, unknown};
use super::value::Origin;
use super::{PlanError, keys, units};
use sim::world::Move;
use wire::Instant;

/// A drive that goes to another host.
pub struct MovePlan<'a> {
    /// Its name, and that of the host.
    pub drive: &'a str,
    pub to: &'a str,
    at: Instant,
    origin: Origin,
    /// The places of `drive` and `to`.
    places: [Origin; 2],
}

/// Reads all of them.
pub fn read<'a>(root: &Section<'a>) -> Result<Vec<MovePlan<'a>>, PlanError> {
    let moves = root.named("moves", keys::MOVE, &Section::none())?;
    let read = |(_, section): (String, Section<'a>)| {
        let word = |key: &str, what: &str| {
            let found = section.text(key)?;
            let missing = || section.origin.fail(format!("[{}] needs {key}: {what}", section.name));
            found.map(|(text, _)| text).ok_or_else(missing)
        };
        let (drive, to) = (word("drive", "a drive")?, word("to", "a host")?);
        let Some(at) = section.within("at", &units::LONG)? else {
            let what = format!("[{}] needs at, such as \"5ms\"", section.name);
            return Err(section.origin.fail(what));
        };
        let at = Instant::from_ps(at.as_ps());
        let places = ["drive", "to"].map(|key| section.place(key));
        Ok(MovePlan { drive, to, at, origin: section.origin.clone(), places })
    };
    moves.into_iter().map(read).collect()
}

/// Whether drives and hosts that are named are there.
pub fn check(moves: &[MovePlan], drives: &[&str], hosts: &[&str]) -> Result<(), PlanError> {
    for MovePlan { drive, to, places: [of_drive, of_host], .. } in moves {
        if !drives.contains(drive) {
            return Err(of_drive.fail(unknown("drive", drive, drives)));
        }
        if !hosts.contains(to) {
            return Err(of_host.fail(unknown("host", to, hosts)));
        }
    }
    Ok(())
}

/// The ports between which the drives go.
pub fn places(moves: &[MovePlan], built: &Built) -> Result<Vec<Move>, PlanError> {
    let place = |planned: &MovePlan| {
        let fail = |what: String| Err(planned.origin.fail(what));
        let port = |name: &str| {
            built.hosts.iter().enumerate().find_map(|(number, host)| {
                let at = host.drives.iter().position(|at| built.drives[*at].name == name)?;
                let before = host.drives[..at].iter();
                let ports: usize = before.map(|at| built.drives[*at].count).sum();
                (built.drives[host.drives[at]].count == 1).then_some([number, ports])
            })
        };
        let (from, to) = (port(planned.drive), port(&name(planned)));
        let (Some(from), Some(to)) = (from, to) else {
            let what = format!(
                "'{}' is no single drive of a single host, with transport tcp, tsn or raw",
                planned.drive
            );
            return fail(what);
        };
        Ok(Move { at: planned.at, from, to })
    };
    moves.iter().map(place).collect()
}

/// What a drive is called at the host that it goes to.
pub fn name(planned: &MovePlan) -> String {
    format!("{}@{}", planned.drive, planned.to)
}
