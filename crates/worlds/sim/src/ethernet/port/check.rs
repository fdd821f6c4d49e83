//! Checks of a port's configuration for contradictions.

use tsn::credit::Slopes;
use tsn::preemption::verification;
use wire::Instant;

use super::config::{Algorithm, Committed, Config};
use crate::ensure;

impl Config {
    /// Checks for contradictions.
    ///
    /// # Errors
    /// The first contradiction, with its class.
    pub fn check(&self) -> Result<(), String> {
        self.ets().map_err(|error| error.to_string())?;
        let mut reserved = 0;
        for (number, class) in self.classes.iter().enumerate() {
            let at = |reason: String| format!("class {number}: {reason}");
            ensure(
                class.queue_frames > 0,
                at("its queue has room for 0 frames; the minimum is 1".to_owned()),
            )?;
            match &class.algorithm {
                Algorithm::CreditBased(shaper) => {
                    reserved += shaper.idle_slope;
                    self.check_slopes(number, shaper.idle_slope).map_err(at)?;
                }
                Algorithm::Ats(shaper) => {
                    let streams = shaper.streams.iter().map(|(_, committed)| committed);
                    let right = |committed: &Committed| committed.rate > 0 && committed.burst > 0;
                    let right = streams.chain([&shaper.committed]).all(right);
                    ensure(right, at("committed rate and burst must be above 0".to_owned()))?;
                }
                Algorithm::StrictPriority | Algorithm::Ets { .. } | Algorithm::Own(_) => {}
            }
        }
        let rate = self.rate.bits_per_second();
        let reason = format!("the idle slopes' sum of {reserved} b/s exceeds its {rate} b/s");
        ensure(reserved <= rate, reason)?;
        self.check_pairs()?;
        self.check_verification()
    }

    /// Checks the slopes of a class, also within the open time of its gates.
    fn check_slopes(&self, class: usize, idle_slope: u64) -> Result<(), String> {
        let slopes = Slopes::new(idle_slope, self.rate.bits_per_second());
        let slopes = slopes.map_err(|error| error.to_string())?;
        let Some(gates) = &self.gates else { return Ok(()) };
        let mut list = Some(Instant::ZERO);
        while let Some(from) = list {
            let (open, cycle) = gates.open_share_of(class, from);
            slopes.scaled(open, cycle).map_err(|error| {
                let (open, cycle) = (open.exact(), cycle.exact());
                format!("its gates are open for {open} of {cycle}: {error}")
            })?;
            list = gates.next_list(from);
        }
        Ok(())
    }

    fn check_pairs(&self) -> Result<(), String> {
        let mut classes = Vec::new();
        for pair in &self.cqf {
            pair.check().map_err(|error| error.to_string())?;
            classes.extend(pair.classes);
        }
        let count = classes.len();
        classes.sort_unstable();
        classes.dedup();
        let reason = "a class is in two pairs of cyclic queues";
        ensure(classes.len() == count, reason.to_owned())
    }

    fn check_verification(&self) -> Result<(), String> {
        let Some(preemption) = self.preemption else { return Ok(()) };
        let time = preemption.verify.time;
        let right = verification::Config::TIMES.contains(&time) && preemption.verify.attempts > 0;
        ensure(
            right,
            format!(
                "verify time '{time}' or attempts: allowed are 1 to 128 ms, at least 1 attempt"
            ),
        )
    }
}
