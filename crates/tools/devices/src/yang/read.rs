//! Reads instance data.

use super::ports::{ATS, CREDIT, OPERATIONS, STRICT};
use super::tree::*;
use super::{PRIORITIES, SECOND};
use crate::import::{Found, credit_based};
use crate::json;
use serde_json::Value;
use sim::ethernet::port::{Algorithm as Selection, Ats, Committed, Config, Counted};
use std::collections::BTreeMap;
use tsn::psfp::{self, GateConfig, GateEntry, MeterConfig};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates, QUEUES, taprio};
use wire::{Duration, Instant};

type Warnings = Vec<String>;

/// Nodes that a plan does not need, because they follow from others or describe the device.
const UNNEEDED: [&str; 14] = [
    "type",
    "enabled",
    "description",
    "admin-gate-states",
    "config-change",
    "supported-list-max",
    "supported-cycle-max",
    "supported-interval-max",
    "max-flow-meter-instances",
    "oper-status",
    "admin-status",
    "statistics",
    "phys-address",
    "bridge-type",
];

/// Reads the data of a node.
pub(crate) fn read(value: Value, found: &mut Found, warnings: &mut Warnings) -> Result<(), String> {
    let Instance { interfaces, bridges, streams, frer } =
        json::read(value, "", &UNNEEDED, warnings)?;
    let mut selections = BTreeMap::new();
    for (number, own) in interfaces.interface.into_iter().enumerate() {
        let path = format!("ietf-interfaces:interfaces.interface[{number}]");
        let Some(data) = own.port else { continue };
        let Some(port) = found.port(&own.name) else {
            warnings.push(format!("{path}: '{}' is no port", own.name));
            continue;
        };
        let asynchronous = bridge_port(data, port, &path, warnings)?;
        selections.insert(own.name, asynchronous);
    }
    let components = bridges.into_iter().flat_map(|all| all.bridge).flat_map(|one| one.component);
    for component in components {
        let path = format!("component '{}'", component.name);
        policing(&component, &streams, found, &path)?;
        shapers(&component, &selections, found, &path, warnings);
    }
    if frer.is_some_and(|frer| frer != Frer::default()) {
        warnings.push("ieee802-dot1cb-frer:frer: streams of a plan need paths".to_owned());
    }
    Ok(())
}

/// Reads a port. Returns its classes with asynchronous shaping.
fn bridge_port(
    data: BridgePort,
    port: &mut Config,
    path: &str,
    warnings: &mut Warnings,
) -> Result<Vec<usize>, String> {
    port.pvid = data.pvid.unwrap_or(port.pvid);
    for (name, class) in data.traffic_class.into_iter().flat_map(|all| all.traffic_class_table) {
        match priority(&name).filter(|_| usize::from(class) < QUEUES) {
            Some(priority) => port.queue_of_priority[priority] = class,
            None if name == "number-of-traffic-classes" => {}
            None => {
                return Err(format!("{path}: invalid {name} '{class}': expected a class, 0 to 7"));
            }
        }
    }
    let mut asynchronous = Vec::new();
    let table = data.transmission_selection_algorithm_table.into_iter();
    for own in table.flat_map(|all| all.transmission_selection_algorithm_map) {
        match own.transmission_selection_algorithm.as_str() {
            ATS => asynchronous.push(usize::from(own.traffic_class)),
            STRICT | CREDIT => {}
            other => warnings.push(format!("{path}: {other} of class {}", own.traffic_class)),
        }
    }
    for own in data.cbsa.into_iter().flat_map(|all| all.cbsa_parameter_table) {
        let class = port.classes.get_mut(usize::from(own.traffic_class));
        let class = class.ok_or_else(|| format!("{path}: cbsa of class {}", own.traffic_class))?;
        class.algorithm = credit_based(own.admin_idle_slope.0);
    }
    if let Some(gates) = data.gates {
        port_gates(gates, port).map_err(|message| format!("{path}: gates: {message}"))?;
    }
    let table = data.preemption.map(|all| all.frame_preemption_status_table).unwrap_or_default();
    if table.values().any(|status| *status == Status::Preemptable) {
        let classes = table.iter().filter(|(_, status)| **status == Status::Express);
        let classes = classes.filter_map(|(name, _)| Some(port.queue_of_priority[priority(name)?]));
        let express = classes.fold(0, |mask, class| mask | 1 << class);
        Found::preemption(port).express = express;
    }
    Ok(asynchronous)
}

/// Returns the number of `priority0` and so on.
fn priority(name: &str) -> Option<usize> {
    name.strip_prefix("priority")?.parse().ok().filter(|priority| *priority < QUEUES)
}

fn port_gates(gates: GateParameters, port: &mut Config) -> Result<(), String> {
    for own in &gates.queue_max_sdu_table {
        let class = port.classes.get_mut(usize::from(own.traffic_class));
        let class = class.ok_or_else(|| format!("max SDU of class {}", own.traffic_class))?;
        class.max_sdu = (own.queue_max_sdu > 0).then_some(own.queue_max_sdu as usize);
    }
    if !gates.gate_enabled {
        return Ok(());
    }
    let mut entries = gates.admin_control_list.gate_control_entry;
    entries.sort_by_key(|entry| entry.index);
    let entry = |own: &ControlEntry| {
        let known = OPERATIONS.iter().find(|(_, name)| *name == own.operation_name);
        let (operation, _) =
            known.ok_or_else(|| format!("unknown operation '{}'", own.operation_name))?;
        let states = own.gate_states_value.ok_or("an entry without gate-states-value")?;
        let interval = Duration::from_ns(own.time_interval_value.into());
        Ok::<_, String>(Entry { operation: *operation, states: GateStates(states), interval })
    };
    let entries = entries.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    let cycle = duration(&gates.admin_cycle_time).ok_or("a cycle of a fraction of a nanosecond")?;
    let base = instant(gates.admin_base_time.as_ref(), cycle);
    let list = GateControlList::new(base, cycle, &entries).map_err(|error| error.to_string())?;
    port.gates = Some(Gates::new(list, Clock::default()));
    Ok(())
}

fn instant(time: Option<&PtpTime>, cycle: Duration) -> Instant {
    let ns = time.map_or(0, |time| {
        time.seconds.0.saturating_mul(SECOND).saturating_add(time.nanoseconds.into())
    });
    taprio::base_time(ns, cycle)
}

fn duration(time: &Rational) -> Option<Duration> {
    let (numerator, denominator) = (u64::from(time.numerator) * SECOND, time.denominator.into());
    let whole = denominator > 0 && numerator.is_multiple_of(denominator);
    whole.then(|| Duration::from_ns(numerator / denominator))
}

/// Reads filters of streams, with gates and meters.
fn policing(
    component: &Component,
    streams: &[StreamIdentity],
    found: &mut Found,
    path: &str,
) -> Result<(), String> {
    let filters = component.filters.iter().flat_map(|all| &all.stream_filter_instance_table);
    let gates = || component.gates.iter().flat_map(|all| &all.stream_gate_instance_table);
    let meters = || component.meters.iter().flat_map(|all| &all.flow_meter_instance_table);
    for own in filters {
        let path = format!("{path}: stream filter {}", own.stream_filter_instance_id);
        let wrong = |text: String| format!("{path}: {text}");
        let listed = gates().find(|gate| gate.stream_gate_instance_id == own.stream_gate_ref);
        let gate = listed.map(stream_gate).transpose().map_err(wrong)?.flatten();
        let meter = own.flow_meter_ref.filter(|_| own.flow_meter_enable == Some(true));
        let meter = meter.and_then(|id| meters().find(|meter| meter.flow_meter_instance_id == id));
        let config = psfp::Config {
            max_sdu: (own.max_sdu_size > 0).then_some(own.max_sdu_size.into()),
            block_on_oversize: own.stream_blocked_due_to_oversize_frame_enabled == Some(true),
            gate,
            meter: meter.map(flow_meter),
        };
        psfp::Filter::new(&config).map_err(|error| wrong(error.to_string()))?;
        found.filter(frames(own, streams), config);
    }
    Ok(())
}

fn frames(filter: &StreamFilter, streams: &[StreamIdentity]) -> String {
    let Some(handle) = filter.stream_handle else {
        return format!("priority {}", filter.priority_spec);
    };
    let stream = streams.iter().find(|stream| stream.handle == handle);
    let known = stream.and_then(|own| {
        let by = own.null_stream_identification.as_ref();
        by.or(own.smac_vlan_stream_identification.as_ref())
            .or(own.ip_stream_identification.as_ref())
    });
    let Some(AddressAndVlan { destination_mac, source_mac, vlan, .. }) = known else {
        return format!("stream {handle}");
    };
    let parts = [("to", destination_mac), ("from", source_mac)];
    let parts = parts.iter().filter_map(|(word, mac)| Some(format!(" {word} {}", mac.as_ref()?)));
    let vlan = vlan.map_or_else(String::new, |vlan| format!(" VLAN {vlan}"));
    format!("stream {handle}{}{vlan}", parts.collect::<String>())
}

fn stream_gate(own: &StreamGate) -> Result<Option<GateConfig>, String> {
    let (Some(list), Some(true)) = (&own.admin_control_list, own.gate_enable) else {
        return Ok(None);
    };
    let mut entries: Vec<_> = list.gate_control_entry.iter().collect();
    entries.sort_by_key(|entry| entry.index);
    let entry = |own: &&ControlEntry| {
        let open = own.gate_state_value.as_deref() == Some("open");
        let ipv = own.ipv_spec.as_deref();
        GateEntry {
            open,
            ipv: ipv
                .and_then(|ipv| PRIORITIES.iter().position(|name| *name == ipv))
                .map(|at| at as u8),
            interval: Duration::from_ns(own.time_interval_value.into()),
            octets: own.interval_octet_max.map(u64::from),
        }
    };
    let cycle = own.admin_cycle_time.as_ref().and_then(duration);
    let cycle = cycle.ok_or("a gate without a cycle of whole nanoseconds")?;
    Ok(Some(GateConfig {
        base: instant(own.admin_base_time.as_ref(), cycle),
        cycle,
        entries: entries.iter().map(entry).collect(),
        close_on_invalid: own.gate_closed_due_to_invalid_rx_enable == Some(true),
        close_on_excess: own.gate_closed_due_octets_exceeded_enable == Some(true),
        clock: Clock::default(),
    }))
}

fn flow_meter(own: &FlowMeter) -> MeterConfig {
    MeterConfig {
        cir: own.committed_information_rate.0,
        cbs: own.committed_burst_size.into(),
        eir: own.excess_information_rate.0,
        ebs: own.excess_burst_size.into(),
        coupling: own.coupling_flag == "one",
        color_aware: own.color_mode == "color-aware",
        drop_on_yellow: own.drop_on_yellow,
        mark_all_red: own.mark_all_frames_red_enable == Some(true),
    }
}

/// Gives the classes with asynchronous shaping the scheduler of their priority.
fn shapers(
    component: &Component,
    selections: &BTreeMap<String, Vec<usize>>,
    found: &mut Found,
    path: &str,
    warnings: &mut Warnings,
) {
    let filters = component.ats_filters.iter().flat_map(|all| &all.stream_filter_instance_table);
    for own in filters {
        let id =
            own.scheduler.as_ref().filter(|own| own.scheduler_enable).map(|own| own.scheduler_ref);
        let schedulers = component.schedulers.iter().flat_map(|all| &all.scheduler_instance_table);
        let scheduler =
            id.and_then(|id| schedulers.into_iter().find(|own| own.scheduler_instance_id == id));
        let priority = PRIORITIES.iter().position(|name| *name == own.priority_spec);
        let (Some(scheduler), Some(priority), None) = (scheduler, priority, own.stream_handle)
        else {
            let number = own.stream_filter_instance_id;
            warnings.push(format!("{path}: stream filter {number}: its scheduler has no key"));
            continue;
        };
        let groups = component.groups.iter().flat_map(|all| &all.scheduler_group_instance_table);
        let group = groups
            .into_iter()
            .find(|group| group.scheduler_group_instance_id == scheduler.scheduler_group_ref);
        let most = group.map(|group| group.max_residence_time).filter(|most| *most < u32::MAX);
        let ats = Ats {
            committed: Committed {
                rate: scheduler.committed_information_rate.0,
                burst: scheduler.committed_burst_size.into(),
            },
            streams: Vec::new(),
            max_residence: most.map(|ns| Duration::from_ns(ns.into())),
            counted: Counted::WithGap,
        };
        for (interface, asynchronous) in selections {
            let Some(port) = found.port(interface) else { continue };
            let class = usize::from(port.queue_of_priority[priority]);
            if asynchronous.contains(&class) {
                port.classes[class].algorithm = Selection::Ats(ats.clone());
            }
        }
    }
}
