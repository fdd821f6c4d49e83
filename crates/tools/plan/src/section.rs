//! The tables of a plan.

use super::tables::ROOT;
use keys::{Key, KeyError, Mistakes, Section, Value};
use std::sync::LazyLock;

/// The name of the machine of farlane's own nodes.
pub const FARLANE: &str = "farlane";

/// Defaults for farlane's own nodes. Their processors have all costs.
static MACHINE: LazyLock<Value> =
    LazyLock::new(|| keys::parse("machine.toml", include_str!("machine.toml")).expect("a plan"));

/// Returns the root table of a plan.
pub fn root(value: &Value) -> Section<'_> {
    Section::root(ROOT, value)
}

/// Tables with defaults for all parts of a kind.
pub struct Defaults<'a> {
    /// `[pcie]`.
    pub pcie: Section<'a>,
    /// `[link]`.
    pub link: Section<'a>,
    /// `[host]`.
    pub host: Section<'a>,
    /// `[drive]`.
    pub drive: Section<'a>,
}

impl<'a> Defaults<'a> {
    /// Reads the defaults of a plan.
    pub fn read(root: &Section<'a>) -> Self {
        let farlane = root.text("machine") == Some(FARLANE);
        let machine = farlane.then(|| self::root(&MACHINE));
        let [pcie, link, host, drive] = ["pcie", "link", "host", "drive"].map(|key| {
            let own = root.table(key);
            match &machine {
                Some(machine) => own.with_defaults(&machine.table(key)),
                None => own,
            }
        });
        Self { pcie, link, host, drive }
    }
}

/// Checks that a transport in `present` uses every key that is set and that `concerns` selects.
/// A plan without hosts has no transport.
///
/// # Errors
/// Each unused key.
pub fn check_used(
    section: &Section,
    present: &[&str],
    concerns: impl Fn(&Key) -> bool,
) -> Result<(), KeyError> {
    let mut mistakes = Mistakes::default();
    for Key { name, with, .. } in section.keys_set().filter(|key| concerns(key)) {
        let of_all = with.is_empty();
        if !(of_all || present.iter().any(|used| with.contains(used))) {
            let mut names = present.to_vec();
            names.dedup();
            let found = if names.is_empty() { "no hosts".into() } else { names.join(" and ") };
            let with = with.join(", ");
            let message = format!("'{name}' applies only to transport {with}; found {found}");
            mistakes.note(section.place(name).fail(message));
        }
    }
    mistakes.or(())
}
