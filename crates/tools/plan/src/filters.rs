//! `[filters.NAME]`: how bridges police streams.

use super::schedule::clock;
use super::shapers::BITS;
use super::units::Form as _;
use keys::{KeyError, Section, all, unknown};
use tsn::psfp::{Config, GateConfig, GateEntry, MeterConfig};
use tsn::{Clock, psfp};
use wire::{Duration, Instant};

/// A bridge and the name of the filter that it applies: `"left camera"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policing {
    /// The bridge.
    pub bridge: String,
    /// The filter.
    pub filter: String,
}

/// All filters by name, for a clock without drift.
#[derive(Clone, Debug, Default)]
pub struct Filters(Vec<(String, Config)>);

impl Filters {
    /// Reads `[filters]`.
    ///
    /// # Errors
    /// A filter whose keys are invalid.
    pub fn read(root: &Section) -> Result<Self, KeyError> {
        let read = |(name, section): (String, Section)| Ok((name, filter(&section)?));
        all(root.named("filters").into_iter().map(read)).map(Self)
    }

    /// Returns the filter with this name for a bridge.
    ///
    /// # Errors
    /// If no filter has this name. The message lists the names of all filters.
    pub fn at(&self, name: &str, bridge: &Section) -> Result<Config, String> {
        let names: Vec<&str> = self.0.iter().map(|(filter, _)| filter.as_str()).collect();
        let found = self.0.iter().find(|(filter, _)| filter == name);
        let (_, config) = found.ok_or_else(|| unknown("filter", name, &names))?;
        let gate = config.gate.clone().map(|gate| GateConfig { clock: clock(bridge), ..gate });
        Ok(Config { gate, ..config.clone() })
    }
}

fn filter(section: &Section) -> Result<Config, KeyError> {
    let on = |key| section.text(key) == Some("on");
    let goes_with = |key: &str, other: &str| match section.find(key).is_some() {
        true if section.find(other).is_none() => {
            section.fail(key, format!("'{key}' requires '{other}'"))
        }
        _ => Ok(()),
    };
    for (key, other) in [
        ("block_oversize", "max_sdu"),
        ("base", "entries"),
        ("cycle", "entries"),
        ("block_closed", "entries"),
        ("block_octets", "entries"),
        ("rate", "burst"),
        ("burst", "rate"),
        ("excess_rate", "excess_burst"),
        ("coupling", "excess_burst"),
        ("yellow", "excess_burst"),
        ("excess_burst", "burst"),
        ("block_red", "burst"),
    ] {
        goes_with(key, other)?;
    }
    let bits = |key| section.get(key).map_or(0, |bytes: u64| bytes * BITS);
    let meter = section.find("burst").map(|_| MeterConfig {
        cir: bits("rate"),
        cbs: section.get("burst").unwrap_or(0),
        eir: bits("excess_rate"),
        ebs: section.get("excess_burst").unwrap_or(0),
        coupling: on("coupling"),
        // Frames carry no drop eligible bit.
        color_aware: false,
        drop_on_yellow: section.text("yellow") == Some("drop"),
        mark_all_red: on("block_red"),
    });
    let entries = section.parsed_list("entries", GateEntry::parse);
    let entries: Vec<GateEntry> = entries.into_iter().map(|(entry, _)| entry).collect();
    let sum = entries.iter().fold(Duration::ZERO, |sum, entry| sum + entry.interval);
    let gate = (!entries.is_empty()).then(|| GateConfig {
        base: Instant::ZERO + section.get("base").unwrap_or(Duration::ZERO),
        cycle: section.get("cycle").unwrap_or(sum),
        entries,
        close_on_invalid: on("block_closed"),
        close_on_excess: on("block_octets"),
        clock: Clock::default(),
    });
    let max_sdu = section.get("max_sdu");
    let config = Config { max_sdu, block_on_oversize: on("block_oversize"), gate, meter };
    match psfp::Filter::new(&config) {
        Ok(_) => Ok(config),
        Err(psfp::FilterError::Gate(error)) => section.fail("entries", error.to_string()),
        Err(psfp::FilterError::Meter(error)) => section.fail("burst", error.to_string()),
    }
}
