//! When a stream of `[traffic]` sends.

use super::tables::PATTERNS;
use keys::allowed::time;
use keys::{KeyError, Section};
use sim::ethernet::frame::{GAP, PREAMBLE};
use sim::ethernet::traffic::{OnOff, Pattern};
use wire::{Duration, Instant};

/// Reads the mean interval of bursts. A `rate` counts preamble and gap of each frame of `length`
/// bytes, header to FCS.
fn interval(section: &Section, length: usize, burst: u32) -> Result<Duration, KeyError> {
    match (section.get("interval"), section.get::<u64>("rate")) {
        (Some(_), Some(_)) => section.fail("rate", "'interval' and 'rate' exclude each other"),
        (Some(interval), None) => Ok(interval),
        (None, Some(rate)) => {
            let bytes = (length + PREAMBLE + GAP) as u128 * u128::from(burst);
            let ps = (bytes * 1_000_000_000_000).div_ceil(u128::from(rate));
            Ok(Duration::from_ps(ps.try_into().unwrap_or(u64::MAX)))
        }
        (None, None) => {
            let message = format!("[{}] needs interval, such as \"100us\", or rate", section.name);
            Err(section.origin.fail(message))
        }
    }
}

/// Reads length, pattern and burst of generated frames. A tag has `tag` bytes.
pub fn generated(section: &Section, tag: usize) -> Result<(usize, Pattern, u32), KeyError> {
    let length = section.get("length").unwrap_or(1518);
    let frames = section.get("burst").unwrap_or(1);
    // The frames of an envelope are single ones after the burst at its start.
    let burst = if section.text("pattern") == Some("envelope") { 1 } else { frames };
    let interval = interval(section, length + tag, burst)?;
    Ok((length, pattern(section, interval, frames)?, burst))
}

/// Reads the distribution of the intervals. `frames` is the burst of an envelope.
fn pattern(section: &Section, mean: Duration, frames: u32) -> Result<Pattern, KeyError> {
    let own = section.text("pattern").unwrap_or("periodic");
    for (name, key) in PATTERNS {
        if (own == name) != section.find(key).is_some() {
            let message = format!("'{key}' and pattern = \"{name}\" go together");
            return section.fail(key, message);
        }
    }
    let below = |key: &str| match section.get(key).unwrap_or_default() {
        value if value < mean => Ok(value),
        _ => section
            .fail(key, format!("{key}: expected less than the mean interval, {}", time(mean))),
    };
    Ok(match own {
        "poisson" => Pattern::Poisson(mean),
        "normal" => {
            Pattern::Normal { mean, deviation: section.get("deviation").unwrap_or_default() }
        }
        "uniform" => Pattern::Uniform { mean, spread: below("spread")? },
        "sporadic" => Pattern::Sporadic { mean, least: below("least")? },
        "envelope" => Pattern::Envelope { interval: mean, frames },
        _ => Pattern::Periodic(mean),
    })
}

/// Reads the jitter, which only periodic streams have.
pub fn jitter(section: &Section, pattern: &Pattern) -> Result<Duration, KeyError> {
    let Some(jitter) = section.get("jitter") else { return Ok(Duration::ZERO) };
    match pattern {
        Pattern::Periodic(interval) if jitter <= *interval => Ok(jitter),
        Pattern::Periodic(interval) => {
            section.fail("jitter", format!("jitter: at most the interval, {}", time(*interval)))
        }
        _ => section.fail("jitter", "'jitter' applies only to pattern = \"periodic\""),
    }
}

/// Reads start and stop.
pub fn span(section: &Section) -> Result<(Instant, Option<Instant>), KeyError> {
    let time = |key| section.get(key).map(|time: Duration| Instant::ZERO + time);
    let (start, stop) = (time("start").unwrap_or_default(), time("stop"));
    match stop {
        Some(stop) if stop <= start => {
            section.fail("stop", "stop: expected a time later than start")
        }
        _ => Ok((start, stop)),
    }
}

/// Reads the pauses.
pub fn on_off(section: &Section) -> Result<Option<OnOff>, KeyError> {
    match (section.get("on"), section.get("off")) {
        (None, None) => Ok(None),
        (Some(on), Some(off)) => Ok(Some(OnOff { on, off })),
        (Some(_), None) => section.fail("on", "'on' requires 'off'"),
        (None, Some(_)) => section.fail("off", "'off' requires 'on'"),
    }
}
