//! The ports of a node as `bridge-port`.

use super::tree::*;
use super::{rational, time};
use crate::node::Port;
use sim::ethernet::port::{Algorithm as Selection, Config, Counted, Preemption};
use std::collections::BTreeMap;
use tsn::preemption::verification;
use tsn::{Entry, GateControlList, Operation, QUEUES};
use wire::{Duration, Instant};

/// Identities of ieee802-dot1q-types.
pub(super) const STRICT: &str = "ieee802-dot1q-types:strict-priority";
pub(super) const CREDIT: &str = "ieee802-dot1q-types:credit-based-shaper";
pub(super) const ATS: &str = "ieee802-dot1q-types:asynchronous-traffic-shaping";
pub(super) const ETS: &str = "ieee802-dot1q-types:enhanced-transmission-selection";

/// Operations of gates by their identities.
pub(super) const OPERATIONS: [(Operation, &str); 3] = [
    (Operation::SetGateStates, "ieee802-dot1q-sched:set-gate-states"),
    (Operation::SetAndHoldMac, "ieee802-dot1q-sched:set-and-hold-mac"),
    (Operation::SetAndReleaseMac, "ieee802-dot1q-sched:set-and-release-mac"),
];

pub(super) fn port(port: &Port, notes: &mut Vec<String>) -> BridgePort {
    let config = &port.config;
    let mut note = |text: String| notes.push(format!("port to {}: {text}", port.peer));
    BridgePort {
        pvid: Some(config.pvid),
        traffic_class: Some(TrafficClass { traffic_class_table: classes(config) }),
        transmission_selection_algorithm_table: Some(AlgorithmTable {
            transmission_selection_algorithm_map: algorithms(config, &mut note),
        }),
        gates: Some(gates(config, &mut note)),
        preemption: config.preemption.as_ref().map(|own| preemption(own, config, &mut note)),
        cbsa: cbsa(config),
    }
}

fn classes(config: &Config) -> BTreeMap<String, u8> {
    let count = config
        .queue_of_priority
        .iter()
        .max()
        .map(|last| ("number-of-traffic-classes".to_owned(), last + 1));
    by_priority(config.queue_of_priority).chain(count).collect()
}

/// Returns the names of priorities with their values.
fn by_priority<T>(values: [T; QUEUES]) -> impl Iterator<Item = (String, T)> {
    (0..).zip(values).map(|(priority, value)| (format!("priority{priority}"), value))
}

fn algorithms(config: &Config, note: &mut impl FnMut(String)) -> Vec<AlgorithmOfClass> {
    if !config.vlans.is_empty() {
        note("the VLANs of which it is a member".to_owned());
    }
    let each = config.classes.iter().enumerate().map(|(number, class)| {
        let name = match &class.algorithm {
            Selection::StrictPriority | Selection::Own(_) => STRICT,
            Selection::CreditBased(shaper) => {
                if shaper.counted == Counted::FrameOnly || !shaper.rises_in_guard_band {
                    note(format!("counted and guard_band_credit of class {number}"));
                }
                CREDIT
            }
            Selection::Ats(_) => ATS,
            Selection::Ets { .. } => {
                note(format!("the weight of class {number}"));
                ETS
            }
        };
        AlgorithmOfClass {
            traffic_class: number as u8,
            transmission_selection_algorithm: name.to_owned(),
        }
    });
    each.collect()
}

/// Returns the table of gates and longest payloads. Its maxima are those of the list: the module
/// requires maxima, even without a list.
fn gates(config: &Config, note: &mut impl FnMut(String)) -> GateParameters {
    let sdu = |(number, bytes): (usize, usize)| QueueMaxSdu {
        traffic_class: number as u8,
        queue_max_sdu: bytes as u32,
    };
    let limits = config.classes.iter().enumerate().filter_map(|(at, one)| Some((at, one.max_sdu?)));
    let limits: Vec<_> = limits.map(sdu).collect();
    let list = config.gates.as_ref().and_then(|gates| {
        if gates.next_list(Instant::ZERO).is_some() {
            note("the schedules that follow the first one (then)".to_owned());
        }
        let merged = gates.merged();
        if merged.is_none() {
            note("gates, because their lists do not fit into one list".to_owned());
        }
        merged
    });
    let entries = list.iter().flat_map(GateControlList::entries).zip(0..);
    let entries: Vec<_> = entries.map(|(entry, index)| control_entry(entry, index)).collect();
    let cycle = list.as_ref().map_or(Duration::from_ms(1), GateControlList::cycle_time);
    let cycle = rational(cycle).expect("cycles of ports have 31 bits of nanoseconds");
    GateParameters {
        queue_max_sdu_table: limits,
        gate_enabled: list.is_some(),
        admin_gate_states: Some(u8::MAX),
        supported_list_max: Some(entries.len() as u32),
        supported_interval_max: entries.iter().map(|entry| entry.time_interval_value).max(),
        supported_cycle_max: Some(cycle.clone()),
        admin_control_list: ControlList { gate_control_entry: entries },
        admin_cycle_time: cycle,
        admin_base_time: list.as_ref().map(|list| time(list.base_time())),
        config_change: list.as_ref().map(|_| true),
    }
}

fn control_entry(entry: &Entry, index: u32) -> ControlEntry {
    let named = OPERATIONS.iter().find(|(operation, _)| *operation == entry.operation);
    ControlEntry {
        index,
        operation_name: named.map_or_else(String::new, |(_, name)| (*name).to_owned()),
        time_interval_value: entry.interval.as_ns() as u32,
        gate_states_value: Some(entry.states.0),
        ..ControlEntry::default()
    }
}

fn preemption(
    own: &Preemption,
    config: &Config,
    note: &mut impl FnMut(String),
) -> PreemptionParameters {
    if own.verify != verification::Config::default() || own.fragment != Default::default() {
        note("add_frag_size, verify and verify_time".to_owned());
    }
    let status = |priority: usize| match own.express >> config.queue_of_priority[priority] & 1 {
        1 => Status::Express,
        _ => Status::Preemptable,
    };
    let all = std::array::from_fn(status);
    PreemptionParameters { frame_preemption_status_table: by_priority(all).collect() }
}

fn cbsa(config: &Config) -> Option<Cbsa> {
    let parameters = config.classes.iter().enumerate().filter_map(|(number, class)| {
        let Selection::CreditBased(shaper) = &class.algorithm else { return None };
        Some(CbsaParameters {
            traffic_class: number as u8,
            admin_idle_slope: Number(shaper.idle_slope),
        })
    });
    let cbsa_parameter_table: Vec<_> = parameters.collect();
    (!cbsa_parameter_table.is_empty()).then_some(Cbsa { cbsa_parameter_table })
}
