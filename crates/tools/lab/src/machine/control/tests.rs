//! Tests with output of iproute2 6.15, recorded on Debian's Linux 6.12.117.

use super::*;
use devices::tc;
use tsn::taprio;

/// Output after `tc qdisc replace dev out root handle 100: taprio num_tc 2 map 0 1 2 3 4 5 6 7
/// queues 1@0 1@1 base-time 0 sched-entry S 01 10000000 sched-entry S 02 10000000 clockid
/// CLOCK_TAI`. Seven of eight pfifos are left out.
const TAPRIO: &str = r#"[{"kind":"taprio","handle":"100:","root":true,"refcnt":9,"options":{"tc":2,"map":[0,1,2,3,4,5,6,7,0,0,0,0,0,0,0,0],"queues":[{"offset":0,"count":1},{"offset":1,"count":1}],"clockid":"TAI","base_time":0,"cycle_time":20000000,"cycle_time_extension":0,"schedule":[{"index":0,"cmd":"S","gatemask":"0x1","interval":10000000},{"index":1,"cmd":"S","gatemask":"0x2","interval":10000000}],"max-sdu":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"fp":["E","E","E","E","E","E","E","E","E","E","E","E","E","E","E","E"]}},{"kind":"pfifo","handle":"0:","parent":"100:8","options":{"limit":1000}}]"#;

/// The additional options after a second list was installed, with base time 4000000000000000000 and
/// entries of 5 ms and 15 ms.
const ADMIN: &str = r#""admin":{"base_time":4000000000000000000,"cycle_time":20000000,"cycle_time_extension":0,"schedule":[{"index":0,"cmd":"S","gatemask":"0x1","interval":5000000},{"index":1,"cmd":"S","gatemask":"0x2","interval":15000000}]},"max-sdu""#;

const NOQUEUE: &str = r#"[{"kind":"noqueue","handle":"0:","root":true,"refcnt":2,"options":{}},{"kind":"clsact","handle":"ffff:","parent":"ffff:fff1","options":{}}]"#;

/// Output after `tc filter add dev in ingress protocol 802.1Q flower vlan_prio 3 action skbedit
/// priority 1`, and after the same command with `vlan_id 5 vlan_prio 5` and priority 2.
const FLOWER: &str = r#"[{"protocol":"802.1Q","pref":49151,"kind":"flower","chain":0},{"protocol":"802.1Q","pref":49151,"kind":"flower","chain":0,"options":{"handle":1,"keys":{"vlan_id":5,"vlan_prio":5},"not_in_hw":true,"actions":[{"order":1,"kind":"skbedit","priority":":2","control_action":{"type":"pipe"},"index":2,"ref":1,"bind":1}]}},{"protocol":"802.1Q","pref":49152,"kind":"flower","chain":0},{"protocol":"802.1Q","pref":49152,"kind":"flower","chain":0,"options":{"handle":1,"keys":{"vlan_prio":3},"not_in_hw":true,"actions":[{"order":1,"kind":"skbedit","priority":":1","control_action":{"type":"pipe"},"index":1,"ref":1,"bind":1}]}}]"#;

fn qdiscs(json: &str) -> Result<Vec<Qdisc>, String> {
    tc::qdiscs(json, &mut Vec::new())
}

fn filters(json: &str) -> Vec<Filter> {
    tc::filters(json, &mut Vec::new()).unwrap()
}

fn gate_list(text: &str) -> GateControlList {
    taprio::parse(text).unwrap()
}

#[test]
fn gates_in_force_are_compared_with_those_that_were_asked_for() {
    let found = qdiscs(TAPRIO).unwrap();
    let halves = "sched-entry S 01 10ms sched-entry S 02 10ms";
    assert_eq!(gated(&found, &gate_list(halves)), Ok(()));
    let other = Err("another list is in force: 2 entries, a cycle of 20000000 ns".to_owned());
    for wrong in [
        "sched-entry S 01 10ms sched-entry S 03 10ms",
        "sched-entry S 01 5ms sched-entry S 02 15ms",
        "sched-entry S 01 10ms sched-entry H 02 10ms",
        "base-time 1ms sched-entry S 01 10ms sched-entry S 02 10ms",
        "sched-entry S 01 10ms sched-entry S 02 10ms cycle-time 30ms",
    ] {
        assert_eq!(gated(&found, &gate_list(wrong)), other, "{wrong}");
    }
    let differs = |from, to| gated(&qdiscs(&TAPRIO.replace(from, to)).unwrap(), &gate_list(halves));
    let class = differs("1,2,3,4", "1,2,0,4").unwrap_err();
    assert_eq!(class, "priority 3 has traffic class 0; expected class 3");
    assert_eq!(differs("TAI", "REALTIME").unwrap_err(), "its clock is REALTIME");
}

#[test]
fn a_list_that_begins_later_is_not_in_force() {
    let found = qdiscs(&TAPRIO.replace("\"max-sdu\"", ADMIN)).unwrap();
    let later = "base-time 4000000000000000000 sched-entry S 01 5ms sched-entry S 02 15ms";
    let pending = gated(&found, &gate_list(later)).unwrap_err();
    assert!(pending.starts_with("the list is pending"), "{pending}");
    assert_eq!(gated(&found, &gate_list("sched-entry S 01 10ms sched-entry S 02 10ms")), Ok(()));
}

#[test]
fn entry_too_short_for_software_gates_is_named() {
    let list = gate_list("sched-entry S 01 200us sched-entry S 02 99us sched-entry S 04 5us");
    let says = keepable(&list, 100_000).unwrap_err();
    assert!(
        says.starts_with("entry 1 lasts 99000 ns: software gates here need 100000 ns"),
        "{says}"
    );
    assert_eq!(keepable(&gate_list("sched-entry S 01 100us"), 100_000), Ok(()));
}

#[test]
fn other_queueing_disciplines_are_named() {
    let list = gate_list("sched-entry S 01 10ms sched-entry S 02 10ms");
    let says = |json| gated(&qdiscs(json).unwrap(), &list).unwrap_err();
    assert_eq!(says(NOQUEUE), "the queueing discipline is noqueue, not taprio");
    assert_eq!(says("[]"), "there is no queueing discipline");
}

#[test]
fn filters_assign_priorities_to_frames() {
    let found = filters(FLOWER);
    let kept = filters(&FLOWER.replace("\":1\"", "\":3\""));
    assert_eq!(set_again(&kept, 5, 3), Ok(()));
    assert_eq!(set_again(&found, 5, 3), Err("it becomes priority 1".to_owned()));
    let none = Err("there is no filter for VLAN 6, priority 5".to_owned());
    assert_eq!(set_again(&found, 6, 5), none, "its VLAN is 5");
}

#[test]
fn entries_last_twice_a_wake_up_and_100_us_at_least() {
    let shortest = |least, slack| shortest_entry_of(Overslept { least, most: 10 * least }, slack);
    // 2 * (58 - 50) us is less than 100 us; 2 * (450 - 50) us is not.
    assert_eq!((shortest(58_000, 50_000), shortest(450_000, 50_000)), (100_000, 800_000));
    assert_eq!((shortest(10_000, 50_000), shortest(60_000, 0)), (100_000, 120_000));
    assert!(shortest_entry() >= 100_000);
}
