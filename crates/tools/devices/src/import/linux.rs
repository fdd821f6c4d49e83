//! The output of `tc -j`, `ethtool --json --show-mm` and `bridge -j vlan show`.

use super::{File, Found};
use crate::json;
use crate::tc::{self, Action, Classes, Filter, Options, StreamEntry, StreamList};
use serde::Deserialize;
use serde_json::Value;
use sim::ethernet::port::{Algorithm, Config, Counted, CreditBased};
use tsn::preemption::FragmentSize;
use tsn::psfp::{self, GateConfig, GateEntry};
use tsn::{Clock, Gates, QUEUES, taprio};
use wire::Duration;

type Warnings = Vec<String>;

/// Disciplines that hold the frames of a class, without a key in plans.
const PLAIN: [&str; 8] =
    ["pfifo", "pfifo_fast", "fq_codel", "fq", "noqueue", "mq", "clsact", "ingress"];
/// VLANs of a port that is a member of all.
const ALL_VLANS: usize = 4094;

/// Reads queueing disciplines.
pub(super) fn qdiscs(
    file: &File,
    found: &mut Found,
    warnings: &mut Warnings,
) -> Result<(), String> {
    let all = tc::qdiscs(&file.text, warnings)?;
    let interface = |own: &tc::Qdisc| own.device.clone().or_else(|| file.interface.clone());
    for (number, own) in all.iter().enumerate().filter(|(_, own)| !PLAIN.contains(&&*own.kind)) {
        let Some(interface) = interface(own) else {
            return Err(format!(
                "[{number}]: the interface is missing; expected tc -j qdisc show without dev, or \
                 INTERFACE=FILE"
            ));
        };
        let Some(port) = found.port(&interface) else {
            warnings.push(format!("[{number}]: {} of '{interface}', which is no port", own.kind));
            continue;
        };
        match &own.options {
            Options::Taprio(classes, gates) => {
                set_classes(port, classes);
                let list = gates.pending.as_ref().or(gates.in_force.as_ref());
                port.gates = list.map(|list| Gates::new(list.clone(), Clock::default()));
            }
            Options::Mqprio(classes) => set_classes(port, classes),
            Options::Cbs(kilobits) => {
                let root =
                    |one: &&tc::Qdisc| one.is_root && self::interface(one, file) == interface;
                let queues = all.iter().find(root).and_then(|root| match &root.options {
                    Options::Taprio(classes, _) | Options::Mqprio(classes) => Some(&classes.queues),
                    _ => None,
                });
                let class = own.queue.zip(queues).and_then(|(queue, queues)| {
                    queues.iter().position(|(first, count)| {
                        queue.checked_sub(*first).is_some_and(|at| at < *count)
                    })
                });
                match class.filter(|class| *class < QUEUES) {
                    Some(class) => {
                        port.classes[class].algorithm = credit_based(kilobits.saturating_mul(1000))
                    }
                    None => warnings.push(format!("[{number}]: cbs of no class of '{interface}'")),
                }
            }
            Options::Other => {
                warnings.push(format!("[{number}]: {} of '{interface}' has no key", own.kind));
            }
        }
    }
    Ok(())
}

fn interface(qdisc: &tc::Qdisc, file: &File) -> String {
    qdisc.device.clone().or_else(|| file.interface.clone()).unwrap_or_default()
}

/// Returns a credit-based shaper with a slope in bit/s.
pub(crate) const fn credit_based(idle_slope: u64) -> Algorithm {
    let (counted, rises_in_guard_band) = (Counted::WithGap, true);
    Algorithm::CreditBased(CreditBased { idle_slope, counted, rises_in_guard_band })
}

fn set_classes(port: &mut Config, classes: &Classes) {
    for (own, class) in port.queue_of_priority.iter_mut().zip(&classes.map) {
        *own = *class & 7;
    }
    for (class, most) in port.classes.iter_mut().zip(&classes.max_sdu) {
        class.max_sdu = (*most > 0).then_some(*most);
    }
    let used = classes.queues.len();
    if classes.preemptable.iter().take(used).any(|preemptable| *preemptable) {
        let express = classes.preemptable.iter().take(QUEUES).map(|preemptable| !preemptable);
        let bits = express.take(used).enumerate();
        let mask = bits.fold(0, |mask, (class, express)| mask | u8::from(express) << class);
        Found::preemption(port).express = mask;
    }
}

/// Reads filters at the ingress of a port. Filters that only give frames the priority of their tag
/// are how a Linux bridge works, and have no key.
pub(super) fn filters(
    file: &File,
    found: &mut Found,
    warnings: &mut Warnings,
) -> Result<(), String> {
    for filter in tc::filters(&file.text, warnings)? {
        let frames = frames(&filter);
        let mut config = psfp::Config::default();
        for action in &filter.actions {
            match action {
                Action::Priority(priority) => {
                    if filter.number("vlan_prio") != Some(u64::from(*priority)) {
                        warnings.push(format!("{frames}: priority {priority} has no key"));
                    }
                }
                Action::Gate(list) => config.gate = Some(gate(list)),
                Action::Police => {
                    warnings.push(format!("{frames}: tc -j prints no rate and MTU of police"));
                }
                Action::Other(kind) => warnings.push(format!("{frames}: {kind} has no key")),
            }
        }
        if config != psfp::Config::default() {
            psfp::Filter::new(&config).map_err(|error| format!("{frames}: {error}"))?;
            found.filter(frames, config);
        }
    }
    Ok(())
}

fn frames(filter: &Filter) -> String {
    let key = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name} {text}"),
        value => format!("{name} {value}"),
    };
    let keys: Vec<String> = filter.keys.iter().map(key).collect();
    keys.join(" ")
}

fn gate(list: &StreamList) -> GateConfig {
    let entry = |entry: &StreamEntry| GateEntry {
        open: entry.gate_state == "open",
        ipv: u8::try_from(entry.ipv).ok(),
        interval: Duration::from_ns(entry.interval),
        octets: u64::try_from(entry.max_octets).ok(),
    };
    let cycle = Duration::from_ns(list.cycle_time);
    GateConfig {
        base: taprio::base_time(list.base_time, cycle),
        cycle,
        entries: list.schedule.iter().map(entry).collect(),
        close_on_invalid: false,
        close_on_excess: false,
        clock: Clock::default(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MergeLayer {
    ifname: String,
    tx_enabled: bool,
    tx_min_frag_size: usize,
    verify_enabled: bool,
    verify_time: u64,
}

/// Reads the MAC merge layer of ports.
pub(super) fn merge_layer(
    value: Value,
    found: &mut Found,
    warnings: &mut Warnings,
) -> Result<(), String> {
    let unneeded = [
        "pmac-enabled",
        "tx-active",
        "rx-min-frag-size",
        "max-verify-time",
        "verify-status",
        "statistics",
    ];
    let all: Vec<MergeLayer> = json::read(value, "", &unneeded, warnings)?;
    for (number, own) in all.into_iter().enumerate().filter(|(_, own)| own.tx_enabled) {
        let Some(port) = found.port(&own.ifname) else {
            warnings.push(format!("[{number}]: '{}' is no port", own.ifname));
            continue;
        };
        let preemption = Found::preemption(port);
        // A first fragment has 64 (1 + addFragSize) - 4 bytes.
        let add = own.tx_min_frag_size.saturating_add(4).div_ceil(64).saturating_sub(1);
        let fragment = u8::try_from(add).ok().and_then(FragmentSize::new);
        preemption.fragment = fragment.ok_or_else(|| {
            format!(
                "[{number}].tx-min-frag-size: invalid size '{}': expected 60 to 252",
                own.tx_min_frag_size
            )
        })?;
        preemption.verify.enabled = own.verify_enabled;
        if own.verify_enabled {
            preemption.verify.time = Duration::from_ms(own.verify_time);
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct VlansOfPort {
    ifname: String,
    vlans: Vec<Vlan>,
}

#[derive(Deserialize)]
struct Vlan {
    vlan: u16,
    #[serde(rename = "vlanEnd")]
    end: Option<u16>,
    #[serde(default)]
    flags: Vec<String>,
}

/// Reads the VLANs of ports. A bridge whose ports all have VLAN 1 alone does not filter.
pub(super) fn vlans(
    value: Value,
    found: &mut Found,
    warnings: &mut Warnings,
) -> Result<(), String> {
    let all: Vec<VlansOfPort> = json::read(value, "", &[], warnings)?;
    let plain = |own: &VlansOfPort| matches!(&own.vlans[..], [Vlan { vlan: 1, end: None, .. }]);
    if all.iter().all(plain) {
        return Ok(());
    }
    for own in all {
        let Some(port) = found.port(&own.ifname) else { continue };
        let range = |own: &Vlan| own.vlan..=own.end.unwrap_or(own.vlan);
        let members: Vec<u16> = own.vlans.iter().flat_map(range).collect();
        let pvid = own.vlans.iter().find(|own| own.flags.iter().any(|flag| flag == "PVID"));
        port.pvid = pvid.map_or(port.pvid, |own| own.vlan);
        port.vlans = if members.len() >= ALL_VLANS { Vec::new() } else { members };
    }
    Ok(())
}
