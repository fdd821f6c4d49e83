//! Cables of the network, and their faults.

use super::tables::ONE_WAY;
use super::units::{Form as _, OpenSpan};
use keys::{KeyError, Origin, Section, set_fields};
use sim::ethernet::Rate;
use sim::ethernet::cable::Faults;
use sim::ethernet::port::RateStep;
use sim::network::{CableConfig, CableEnd};
use stats::random::Probability;
use wire::{Duration, Instant};

/// A cable between two names, before its ports are assigned.
pub struct NamedCable {
    pub ends: [usize; 2],
    pub rate: Rate,
    /// Bytes that MACsec adds to a frame.
    pub security: u8,
    pub config: CableConfig,
    pub origin: Origin,
}

/// Reads a cable between these ends.
pub fn named_cable(section: &Section, ends: [usize; 2]) -> Result<NamedCable, KeyError> {
    let cuts = |key| {
        let cuts = section.parsed_list(key, OpenSpan::parse).into_iter();
        cuts.map(|((from, until), _)| (from, until.unwrap_or(Instant::MAX)))
    };
    let during = section.parsed_list("during", <(Instant, Instant)>::parse).into_iter();
    // The seeds are set later together with all other seeds.
    let share = |key| section.parsed(key, Probability::parse).unwrap_or_default();
    let [loss, corruption, delay] = ["loss", "corruption", "delay"].map(share);
    let mut faults = Faults {
        cuts: cuts("cuts").collect(),
        loss,
        corruption,
        delay,
        reordering: share("reordering"),
        duplication: share("duplication"),
        during: during.map(|(span, _)| span).collect(),
        ..Faults::default()
    };
    set_fields!(faults, section, delay_up_to);
    let steps = section.parsed_list("rate_steps", RateStep::parse);
    if let Some(pair) = steps.windows(2).find(|pair| pair[0].0.at >= pair[1].0.at) {
        return Err(pair[1].1.fail("rate_steps: expected each step later than the one before"));
    }
    let [a, b] = ends.map(CableEnd::station);
    let propagation = section.get("propagation").unwrap_or(Duration::from_ns(10));
    let mut config = CableConfig::new(a, b, propagation);
    config.faults = [faults.clone(), faults];
    for (faults, key) in config.faults.iter_mut().zip(ONE_WAY.into_iter().rev()) {
        if section.knows(key) {
            faults.cuts.extend(cuts(key));
        }
    }
    config.rate_steps = steps.into_iter().map(|(step, _)| step).collect();
    let rate = section.parsed("rate", Rate::parse).unwrap_or(Rate::G1);
    let security = match section.text("macsec") {
        Some("on") => SECTAG + SCI + ICV,
        Some("no-sci") => SECTAG + ICV,
        _ => 0,
    };
    Ok(NamedCable { ends, rate, security, config, origin: section.origin.clone() })
}

/// Bytes of MACsec's SecTAG with its EtherType (IEEE 802.1AE-2018, 9.3).
const SECTAG: u8 = 8;
/// Bytes of an SCI in the SecTAG (9.9).
const SCI: u8 = 8;
/// Bytes of the ICV of GCM-AES (14.5).
const ICV: u8 = 16;
