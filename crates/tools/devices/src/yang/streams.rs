//! The streams of a bridge: per-stream filtering and policing, cyclic queues, asynchronous shaping.

use super::tree::*;
use super::{PRIORITIES, rational, time};
use crate::node::Node;
use crate::script::{cyclic, unassigned};
use sim::ethernet::port::{Algorithm, Ats};
use tsn::psfp::{self, GateConfig, GateEntry, MeterConfig};
use tsn::{Clock, QUEUES};

/// The priority of a filter that does not depend on it, and of a gate that does not set it.
const WILDCARD: &str = "wildcard";
const NULL: &str = "null";
const SET_GATE: &str = "ieee802-dot1q-psfp:set-gate-and-ipv";

/// Returns the component of a bridge, without its name.
pub(super) fn component(node: &Node, notes: &mut Vec<String>) -> Component {
    let mut tables = Tables::default();
    for stream in &node.streams {
        let Some(filter) = &stream.filter else { continue };
        let spec = StreamFilter {
            stream_handle: Some(stream.handle),
            priority_spec: WILDCARD.to_owned(),
            ..StreamFilter::default()
        };
        if let Err(lack) = tables.add(filter, spec) {
            notes.push(format!("stream {}: {lack}", stream.name));
        }
    }
    notes.extend(unassigned(node));
    for (pair, priorities, map) in cyclic(node) {
        let entry = |priority: usize| GateEntry {
            open: true,
            ipv: Some(priority as u8),
            interval: pair.cycle,
            octets: None,
        };
        let gate = GateConfig {
            base: pair.base,
            cycle: pair.cycle + pair.cycle,
            entries: priorities.map(entry).to_vec(),
            close_on_invalid: false,
            close_on_excess: false,
            clock: Clock::default(),
        };
        let filter = psfp::Config { gate: Some(gate), ..psfp::Config::default() };
        for priority in (0..QUEUES).filter(|own| pair.classes.contains(&map[*own])) {
            if let Err(lack) = tables.add(&filter, every(priority)) {
                notes.push(format!("cyclic queues: {lack}"));
            }
        }
    }
    let mut component = tables.component();
    shapers(node, &mut component, notes);
    component
}

/// A filter of all frames with a priority.
fn every(priority: usize) -> StreamFilter {
    StreamFilter {
        wildcard: Some([()]),
        priority_spec: PRIORITIES[priority].to_owned(),
        ..StreamFilter::default()
    }
}

#[derive(Default)]
struct Tables {
    filters: Vec<StreamFilter>,
    gates: Vec<StreamGate>,
    meters: Vec<FlowMeter>,
}

impl Tables {
    /// Adds a filter with its gate and meter.
    fn add(&mut self, filter: &psfp::Config, spec: StreamFilter) -> Result<(), &'static str> {
        let id = self.filters.len() as u32;
        let gate = stream_gate(filter.gate.as_ref(), self.gates.len() as u32)?;
        self.filters.push(StreamFilter {
            stream_filter_instance_id: id,
            max_sdu_size: filter.max_sdu.map_or(0, |most| most as u32),
            stream_blocked_due_to_oversize_frame_enabled: filter.block_on_oversize.then_some(true),
            stream_gate_ref: gate.stream_gate_instance_id,
            flow_meter_ref: filter.meter.map(|_| self.meters.len() as u32),
            flow_meter_enable: filter.meter.map(|_| true),
            ..spec
        });
        self.gates.push(gate);
        self.meters.extend(filter.meter.map(|meter| flow_meter(&meter, self.meters.len() as u32)));
        Ok(())
    }

    fn component(self) -> Component {
        let Self { filters, gates, meters } = self;
        if filters.is_empty() {
            return Component::default();
        }
        let lists = || gates.iter().filter_map(|gate| gate.admin_control_list.as_ref());
        let entries = || lists().flat_map(|list| &list.gate_control_entry);
        let seconds = |time: &Rational| f64::from(time.numerator) / f64::from(time.denominator);
        let cycles = gates.iter().filter_map(|gate| gate.admin_cycle_time.clone());
        let stream_gates = StreamGates {
            supported_list_max: lists().map(|list| list.gate_control_entry.len() as u32).max(),
            supported_cycle_max: cycles.max_by(|a, b| seconds(a).total_cmp(&seconds(b))),
            supported_interval_max: entries().map(|entry| entry.time_interval_value).max(),
            stream_gate_instance_table: gates,
        };
        let flow_meters = FlowMeters {
            max_flow_meter_instances: Some(meters.len() as u32),
            flow_meter_instance_table: meters,
        };
        Component {
            meters: Some(flow_meters),
            gates: Some(stream_gates),
            filters: Some(StreamFilters { stream_filter_instance_table: filters }),
            ..Component::default()
        }
    }
}

/// Returns a stream gate. Without a list, the gate is open.
fn stream_gate(gate: Option<&GateConfig>, id: u32) -> Result<StreamGate, &'static str> {
    let open =
        StreamGate { stream_gate_instance_id: id, gate_enable: Some(false), ..Default::default() };
    let Some(gate) = gate else { return Ok(open) };
    let entry = |(index, entry): (u32, &GateEntry)| ControlEntry {
        index,
        operation_name: SET_GATE.to_owned(),
        time_interval_value: entry.interval.as_ns() as u32,
        gate_state_value: Some(if entry.open { "open" } else { "closed" }.to_owned()),
        ipv_spec: Some(entry.ipv.map_or(NULL, |ipv| PRIORITIES[usize::from(ipv)]).to_owned()),
        interval_octet_max: entry.octets.and_then(|octets| octets.try_into().ok()),
        ..ControlEntry::default()
    };
    let entries = (0..).zip(&gate.entries).map(entry).collect();
    let cycle = rational(gate.cycle).ok_or("a cycle that needs more than 32 bits")?;
    Ok(StreamGate {
        gate_enable: Some(true),
        admin_control_list: Some(ControlList { gate_control_entry: entries }),
        admin_cycle_time: Some(cycle),
        admin_base_time: Some(time(gate.base)),
        gate_closed_due_to_invalid_rx_enable: gate.close_on_invalid.then_some(true),
        gate_closed_due_octets_exceeded_enable: gate.close_on_excess.then_some(true),
        ..open
    })
}

fn flow_meter(meter: &MeterConfig, id: u32) -> FlowMeter {
    FlowMeter {
        flow_meter_instance_id: id,
        committed_information_rate: Number(meter.cir),
        committed_burst_size: meter.cbs as u32,
        excess_information_rate: Number(meter.eir),
        excess_burst_size: meter.ebs as u32,
        coupling_flag: if meter.coupling { "one" } else { "zero" }.to_owned(),
        color_mode: if meter.color_aware { "color-aware" } else { "color-blind" }.to_owned(),
        drop_on_yellow: meter.drop_on_yellow,
        mark_all_frames_red_enable: meter.mark_all_red.then_some(true),
    }
}

/// Adds the asynchronous shapers. A filter assigns the scheduler before the port is known, so all
/// ports of a bridge have the same scheduler for a priority.
fn shapers(node: &Node, component: &mut Component, notes: &mut Vec<String>) {
    let (mut filters, mut schedulers, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    let mut done: [Option<&Ats>; QUEUES] = [None; QUEUES];
    for port in &node.ports {
        for (priority, class) in port.config.queue_of_priority.iter().enumerate() {
            let Algorithm::Ats(ats) = &port.config.classes[usize::from(*class)].algorithm else {
                continue;
            };
            if let Some(other) = done[priority].replace(ats) {
                if other != ats {
                    notes.push(format!("port to {}: another ats of class {class}", port.peer));
                }
                continue;
            }
            if !ats.streams.is_empty() {
                notes.push(format!("port to {}: committed_rate of single streams", port.peer));
            }
            let id = schedulers.len() as u32;
            let most = ats.max_residence.and_then(|most| u32::try_from(most.as_ns()).ok());
            groups.push(SchedulerGroup {
                scheduler_group_instance_id: id,
                max_residence_time: most.unwrap_or(u32::MAX),
            });
            schedulers.push(Scheduler {
                scheduler_instance_id: id,
                committed_information_rate: Number(ats.committed.rate),
                committed_burst_size: ats.committed.burst.try_into().unwrap_or(u32::MAX),
                scheduler_group_ref: id,
            });
            filters.push(StreamFilter {
                stream_filter_instance_id: id,
                scheduler: Some(SchedulerOfFilter { scheduler_ref: id, scheduler_enable: true }),
                ..every(priority)
            });
        }
    }
    if schedulers.is_empty() {
        return;
    }
    let gate = stream_gate(None, 0).expect("a gate without a list");
    component.ats_gates =
        Some(StreamGates { stream_gate_instance_table: vec![gate], ..StreamGates::default() });
    component.ats_filters = Some(StreamFilters { stream_filter_instance_table: filters });
    component.groups = Some(SchedulerGroups { scheduler_group_instance_table: groups });
    component.schedulers = Some(Schedulers { scheduler_instance_table: schedulers });
}
