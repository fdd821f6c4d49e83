//! `[variants.NAME]`: several keys set at once, under a name.

use super::tables::ROOT;
use super::{Plan, section};
use keys::{KeyError, Origin, Section, all, allowed, unknown};

/// The key of `--set` and `--sweep` that names a variant.
pub const KEY: &str = "variant";

/// A setting `KEY=VALUE`, as in `--set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The dotted path of a key.
    pub path: String,
    /// The key's value as text.
    pub value: String,
}

/// Sets every key that the variant `name` contains.
///
/// # Errors
/// If the plan has no such variant, or as [`Plan::with`](super::Plan::with), at the place of the
/// variant's setting.
pub fn set(plan: &mut Plan, name: &str, option: &str) -> Result<(), KeyError> {
    let variants = section::root(&plan.value).named("variants");
    let Some((_, section)) = variants.iter().find(|(variant, _)| variant == name) else {
        let names: Vec<&str> = variants.iter().map(|(name, _)| name.as_str()).collect();
        let message = match names[..] {
            [] => "the plan has no [variants.NAME]".to_owned(),
            _ => unknown("variant", name, &names),
        };
        return Err(Origin::Option(format!("{option} {KEY}={name}")).fail(message));
    };
    let settings = section.list("set");
    for (Setting { path, value }, origin) in settings {
        plan.set(&path, &value, option).map_err(|error| origin.fail(error.message))?;
    }
    Ok(())
}

/// Checks every variant on its own.
///
/// # Errors
/// Each key or value that is not allowed.
pub fn check(plan: &Plan) -> Result<(), KeyError> {
    let check = |(name, _): (String, Section<'_>)| {
        let mut with = plan.clone();
        set(&mut with, &name, "--set")?;
        allowed::check(ROOT, &with.value)
    };
    all(section::root(&plan.value).named("variants").into_iter().map(check)).map(drop)
}
