//! Clocks that drift, and 802.1AS between them: `[clocks]`, and the clock keys of each station and
//! bridge.

use super::units::{ClockStep, Drift, Frequency, LogInterval, Offset};
use keys::{KeyError, Section, all, both};
use sim::network::{ClockNode, TimeConfig};
use tsn::StepPolicy;
use tsn::gptp::{
    ClockConfig, DomainConfig, NodeConfig, ServoConfig, Stamping, SystemIdentity, Walk,
};
use wire::Duration;

/// Keys of a node's clock that require `[clocks]`.
const OWN: [&str; 10] = [
    "clock_walk",
    "clock_walk_every",
    "clock_walk_limit",
    "clock_steps",
    "clock_priority",
    "standby_priority",
    "stamping",
    "stamp_grain",
    "stamp_noise",
    "on_step",
];

/// meanLinkDelayThresh of copper (IEEE 802.1AS-2020, 11.2.2, table 11-1).
const MOST_DELAY: Duration = Duration::from_ns(800);
/// Interval of offset samples: the default interval of Sync messages.
const SAMPLE: Duration = Duration::from_ms(125);
/// Parts per 10^12 in one part per 10^9.
const PPB: i64 = 1_000;
/// Default priority1 of network equipment and of end stations (IEEE 802.1AS-2020, 8.6.2.1).
const PRIORITIES: [u8; 2] = [246, 248];

/// Reads the clocks of stations and bridges; returns `None` if the plan does not simulate clocks.
pub fn read(
    root: &Section,
    stations: &[&Section],
    bridges: &[&Section],
) -> Result<Option<TimeConfig>, KeyError> {
    if root.find("clocks").is_none() {
        for section in stations.iter().chain(bridges) {
            if let Some(key) = OWN.iter().find(|key| section.find(key).is_some()) {
                let message = format!("'{key}' requires [clocks]");
                return section.fail(key, message);
            }
        }
        return Ok(None);
    }
    let table = root.table("clocks");
    let committed = |sections: &[&Section], first: usize, priority: u8| {
        let each = sections.iter().zip(first..);
        all(each.map(|(section, place)| node(&table, section, place, priority)))
    };
    let [bridge, station] = PRIORITIES;
    let (stations, bridges) =
        both(committed(stations, 0, station), committed(bridges, stations.len(), bridge))?;
    let config = TimeConfig { stations, bridges, sample: table.get("sample").unwrap_or(SAMPLE) };
    masters(&table, &config)?;
    Ok(Some(config))
}

/// Checks that every domain has a clock that can be grandmaster.
fn masters(table: &Section, config: &TimeConfig) -> Result<(), KeyError> {
    let nodes =
        || config.stations.iter().chain(&config.bridges).filter_map(|place| place.node.as_ref());
    for (domain, key) in ["clock_priority", "standby_priority"].into_iter().enumerate() {
        let mut own = nodes().filter_map(|node| node.domains.get(domain)).peekable();
        if own.peek().is_some() && own.all(|domain| domain.own.priority1 == u8::MAX) {
            let message = format!(
                "no clock can be grandmaster of domain {domain}: {key} below 255 at one of them \
                 (802.1AS-2020, 8.6.2.1)"
            );
            return Err(table.origin.fail(message));
        }
    }
    Ok(())
}

fn node(
    table: &Section,
    section: &Section,
    place: usize,
    priority: u8,
) -> Result<ClockNode, KeyError> {
    let stamping = match section.text("stamping") {
        Some("software") => Stamping::Software,
        _ => Stamping::Hardware,
    };
    let steps: Vec<_> = section.list::<ClockStep>("clock_steps").into_iter().collect();
    if let Some(late) = steps.windows(2).find(|pair| pair[0].0.at >= pair[1].0.at) {
        return Err(late[1].1.fail("clock_steps: expected each step later than the one before"));
    }
    let node = (table.text("sync") != Some("off"))
        .then(|| part(table, section, place, priority, stamping));
    Ok(ClockNode {
        node,
        class: table.get("class").unwrap_or(7),
        stamping,
        noise: section.get("stamp_noise").unwrap_or(Duration::ZERO),
        on_step: match section.text("on_step") {
            Some("frozen") => StepPolicy::Frozen,
            Some("burst") => StepPolicy::Burst,
            _ => StepPolicy::Rederived,
        },
        steps: steps.into_iter().map(|(step, _)| (step.at, step.ps)).collect(),
        ..ClockNode::new(clock(section))
    })
}

/// Reads a clock. Its seed is set later together with all other seeds.
fn clock(section: &Section) -> ClockConfig {
    let Frequency(step_ppt) = section.get("clock_walk").unwrap_or(Frequency(0));
    let limit = section.get("clock_walk_limit").unwrap_or(Frequency(100_000 * PPB));
    let walk = Walk {
        step_ppt,
        every: section.get("clock_walk_every").unwrap_or(Duration::from_ms(100)),
        limit_ppt: limit.0,
    };
    let default = ClockConfig::default();
    ClockConfig {
        offset_ps: section.get("clock_offset").map_or(0, |Offset(ps)| ps),
        drift_ppt: section.get("clock_drift").map_or(0, |Drift(ppb)| i64::from(ppb) * PPB),
        walk: (step_ppt > 0).then_some(walk),
        grain: section.get("stamp_grain").unwrap_or(default.grain),
        ..default
    }
}

fn part(
    table: &Section,
    section: &Section,
    place: usize,
    priority: u8,
    stamping: Stamping,
) -> NodeConfig {
    let clock = TimeConfig::identity(place);
    let log = |key: &str, default: i8| table.get(key).map_or(default, |LogInterval(log)| log);
    let domain = |(number, priority): (u8, u8)| {
        let mut domain = DomainConfig::new(number, SystemIdentity::new(priority, clock));
        domain.log_sync = log("sync_interval", domain.log_sync);
        domain.log_announce = log("announce_interval", domain.log_announce);
        domain.sync_timeout = table.get("sync_timeout").unwrap_or(domain.sync_timeout);
        domain.announce_timeout = table.get("announce_timeout").unwrap_or(domain.announce_timeout);
        domain
    };
    let standby = table.text("standby") == Some("on");
    // With hot standby each domain has one grandmaster, which the plan selects.
    let own = section.get("clock_priority").unwrap_or(if standby { u8::MAX } else { priority });
    let mut domains = vec![domain((0, own))];
    if standby {
        domains.push(domain((1, section.get("standby_priority").unwrap_or(u8::MAX))));
    }
    let mut servo = ServoConfig::new(stamping, domains[0].log_sync);
    servo.first_step = table.get("first_step").unwrap_or(servo.first_step);
    servo.step = table.get("step").unwrap_or(servo.step);
    servo.max_ppt = table.get("max_frequency").map_or(servo.max_ppt, |Frequency(ppt)| ppt);
    NodeConfig {
        clock,
        domains,
        log_delay: log("pdelay_interval", 0),
        most_delay: table.get("delay_limit").unwrap_or(MOST_DELAY),
        servo,
    }
}
