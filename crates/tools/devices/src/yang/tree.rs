//! The nodes of YANG instance data that farlane writes and reads, in JSON (RFC 7951): ietf-interfaces
//! and IEEE 802.1Q's modules of bridges, schedules (802.1Qcw-2023), preemption (802.1Qcw-2023),
//! credit-based shapers (802.1Qdx-2024), per-stream filtering (802.1Qcw-2023), asynchronous shaping
//! (802.1Qcr-2020), and 802.1CB's (802.1CBcv-2021). Fields have the names of their nodes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Declares structures of YANG nodes. Every node may be absent.
macro_rules! nodes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
            #[serde(rename_all = "kebab-case", default)]
            pub(super) struct $name { $($(#[$attribute])* pub $field: $type,)* }
        )*
    };
}

nodes! {
    /// The data of a node.
    Instance {
        #[serde(rename = "ietf-interfaces:interfaces")]
        interfaces: Interfaces,
        #[serde(rename = "ieee802-dot1q-bridge:bridges")]
        bridges: Option<Bridges>,
        #[serde(rename = "ieee802-dot1cb-stream-identification:stream-identity")]
        streams: Vec<StreamIdentity>,
        #[serde(rename = "ieee802-dot1cb-frer:frer")]
        frer: Option<Frer>,
    }
    Interfaces { interface: Vec<Interface>, }
    Interface {
        name: String,
        r#type: Option<String>,
        #[serde(rename = "ieee802-dot1q-bridge:bridge-port")]
        port: Option<BridgePort>,
    }
    BridgePort {
        pvid: Option<u16>,
        traffic_class: Option<TrafficClass>,
        transmission_selection_algorithm_table: Option<AlgorithmTable>,
        #[serde(rename = "ieee802-dot1q-sched-bridge:gate-parameter-table")]
        gates: Option<GateParameters>,
        #[serde(rename = "ieee802-dot1q-preemption-bridge:frame-preemption-parameters")]
        preemption: Option<PreemptionParameters>,
        #[serde(rename = "ieee802-dot1q-cbsa-bridge:cbsa")]
        cbsa: Option<Cbsa>,
    }
    /// `number-of-traffic-classes`, and the class of each priority as `priority0` and so on.
    TrafficClass { traffic_class_table: BTreeMap<String, u8>, }
    AlgorithmTable { transmission_selection_algorithm_map: Vec<AlgorithmOfClass>, }
    AlgorithmOfClass { traffic_class: u8, transmission_selection_algorithm: String, }
    GateParameters {
        queue_max_sdu_table: Vec<QueueMaxSdu>,
        gate_enabled: bool,
        admin_gate_states: Option<u8>,
        admin_control_list: ControlList,
        admin_cycle_time: Rational,
        admin_base_time: Option<PtpTime>,
        config_change: Option<bool>,
        supported_list_max: Option<u32>,
        supported_cycle_max: Option<Rational>,
        supported_interval_max: Option<u32>,
    }
    QueueMaxSdu { traffic_class: u8, queue_max_sdu: u32, }
    ControlList { gate_control_entry: Vec<ControlEntry>, }
    /// An entry of the gates of a port, or of a stream gate.
    ControlEntry {
        index: u32,
        operation_name: String,
        time_interval_value: u32,
        gate_states_value: Option<u8>,
        gate_state_value: Option<String>,
        ipv_spec: Option<String>,
        interval_octet_max: Option<u32>,
    }
    /// Seconds.
    Rational { numerator: u32, denominator: u32, }
    PtpTime { seconds: Number, nanoseconds: u32, }
    /// The status of each priority as `priority0` and so on.
    PreemptionParameters { frame_preemption_status_table: BTreeMap<String, Status>, }
    Cbsa { cbsa_parameter_table: Vec<CbsaParameters>, }
    CbsaParameters { traffic_class: u8, admin_idle_slope: Number, }

    Bridges { bridge: Vec<Bridge>, }
    Bridge { name: String, address: String, bridge_type: String, component: Vec<Component>, }
    Component {
        name: String,
        r#type: String,
        #[serde(rename = "ieee802-dot1q-psfp-bridge:flow-meters")]
        meters: Option<FlowMeters>,
        #[serde(rename = "ieee802-dot1q-psfp-bridge:stream-gates")]
        gates: Option<StreamGates>,
        #[serde(rename = "ieee802-dot1q-psfp-bridge:stream-filters")]
        filters: Option<StreamFilters>,
        #[serde(rename = "ieee802-dot1q-stream-filters-gates:stream-gates")]
        ats_gates: Option<StreamGates>,
        #[serde(rename = "ieee802-dot1q-stream-filters-gates:stream-filters")]
        ats_filters: Option<StreamFilters>,
        #[serde(rename = "ieee802-dot1q-ats:scheduler-groups")]
        groups: Option<SchedulerGroups>,
        #[serde(rename = "ieee802-dot1q-ats:schedulers")]
        schedulers: Option<Schedulers>,
    }
    FlowMeters {
        flow_meter_instance_table: Vec<FlowMeter>,
        max_flow_meter_instances: Option<u32>,
    }
    FlowMeter {
        flow_meter_instance_id: u32,
        committed_information_rate: Number,
        committed_burst_size: u32,
        excess_information_rate: Number,
        excess_burst_size: u32,
        coupling_flag: String,
        color_mode: String,
        drop_on_yellow: bool,
        mark_all_frames_red_enable: Option<bool>,
    }
    StreamGates {
        stream_gate_instance_table: Vec<StreamGate>,
        supported_list_max: Option<u32>,
        supported_cycle_max: Option<Rational>,
        supported_interval_max: Option<u32>,
    }
    StreamGate {
        stream_gate_instance_id: u32,
        gate_enable: Option<bool>,
        admin_gate_states: Option<String>,
        admin_control_list: Option<ControlList>,
        admin_cycle_time: Option<Rational>,
        admin_base_time: Option<PtpTime>,
        gate_closed_due_to_invalid_rx_enable: Option<bool>,
        gate_closed_due_octets_exceeded_enable: Option<bool>,
    }
    StreamFilters { stream_filter_instance_table: Vec<StreamFilter>, }
    StreamFilter {
        stream_filter_instance_id: u32,
        wildcard: Option<[(); 1]>,
        stream_handle: Option<u32>,
        priority_spec: String,
        max_sdu_size: u32,
        stream_blocked_due_to_oversize_frame_enabled: Option<bool>,
        stream_gate_ref: u32,
        flow_meter_ref: Option<u32>,
        flow_meter_enable: Option<bool>,
        #[serde(rename = "ieee802-dot1q-ats:scheduler")]
        scheduler: Option<SchedulerOfFilter>,
    }
    SchedulerOfFilter { scheduler_ref: u32, scheduler_enable: bool, }
    SchedulerGroups { scheduler_group_instance_table: Vec<SchedulerGroup>, }
    SchedulerGroup { scheduler_group_instance_id: u32, max_residence_time: u32, }
    Schedulers { scheduler_instance_table: Vec<Scheduler>, }
    Scheduler {
        scheduler_instance_id: u32,
        committed_information_rate: Number,
        committed_burst_size: u32,
        scheduler_group_ref: u32,
    }

    StreamIdentity {
        index: u32,
        handle: u32,
        out_facing: Option<Facing>,
        null_stream_identification: Option<AddressAndVlan>,
        smac_vlan_stream_identification: Option<AddressAndVlan>,
        ip_stream_identification: Option<AddressAndVlan>,
    }
    Facing { input_port: Vec<String>, }
    AddressAndVlan {
        destination_mac: Option<String>,
        source_mac: Option<String>,
        tagged: Option<String>,
        vlan: Option<u16>,
        ip_source: Option<String>,
        ip_destination: Option<String>,
    }
    Frer {
        sequence_generation: Vec<Generation>,
        sequence_recovery: Vec<Recovery>,
        sequence_identification: Vec<SequenceIdentification>,
    }
    Generation { index: u32, stream: Vec<u32>, direction_out_facing: bool, }
    Recovery {
        index: u32,
        stream: Vec<u32>,
        port: Vec<String>,
        direction_out_facing: bool,
        algorithm: Algorithm,
        history_length: Option<u32>,
        reset_timeout: Option<u32>,
        take_no_sequence: Option<bool>,
        individual_recovery: Option<bool>,
        latent_error_detection: Option<bool>,
        latent_error_detection_parameters: Option<Latent>,
    }
    /// A choice of containers with presence.
    Algorithm { vector: Option<Present>, r#match: Option<Present>, }
    Latent { difference: i32, period: u32, paths: u16, reset_period: u32, }
    SequenceIdentification {
        port: String,
        direction_out_facing: bool,
        stream: Vec<u32>,
        active: bool,
        encapsulation: Encapsulation,
    }
    Encapsulation { r_tag: Option<Present>, }
    Present {}
}

/// frame-preemption-status-enum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Status {
    #[default]
    Express,
    Preemptable,
}

/// A number of 64 bits, which is a string in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct Number(pub u64);

impl From<Number> for String {
    fn from(number: Number) -> Self {
        number.0.to_string()
    }
}

impl TryFrom<String> for Number {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = |_| format!("invalid value '{text}': expected a number of 64 bits in quotes");
        text.parse().map(Self).map_err(wrong)
    }
}
