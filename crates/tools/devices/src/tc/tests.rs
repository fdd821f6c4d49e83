//! Tests with output of iproute2 6.15, recorded on Debian's Linux 6.12.117.

use super::*;

/// `tc -j qdisc show dev out` with a taprio. Seven of eight pfifos are left out.
const TAPRIO: &str = r#"[{"kind":"taprio","handle":"100:","root":true,"refcnt":9,"options":{"tc":2,"map":[0,1,2,3,4,5,6,7,0,0,0,0,0,0,0,0],"queues":[{"offset":0,"count":1},{"offset":1,"count":1}],"clockid":"TAI","base_time":0,"cycle_time":20000000,"cycle_time_extension":0,"schedule":[{"index":0,"cmd":"S","gatemask":"0x1","interval":10000000},{"index":1,"cmd":"S","gatemask":"0x2","interval":10000000}],"max-sdu":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"fp":["E","E","E","E","E","E","E","E","E","E","E","E","E","E","E","E"]}},{"kind":"pfifo","handle":"0:","parent":"100:8","options":{"limit":1000}}]"#;

/// The same command with an mqprio, an etf and a cbs below it, and fq_codels left out.
const MQPRIO: &str = r#"[{"kind":"mqprio","handle":"100:","dev":"pa","root":true,"options":{"tc":4,"map":[0,0,1,1,2,2,3,3,0,0,0,0,0,0,0,0],"queues":[[0,0],[1,1],[2,2],[3,3]],"mode":"dcb","shaper":"dcb","fp":["E","E","E","E","E","E","E","E","E","E","E","E","E","E","E","E"]}},{"kind":"etf","handle":"104:","dev":"pa","parent":"100:4","options":{"clockid":"TAI","delta":500000,"offload":"off","deadline_mode":"off","skip_sock_check":"off"}},{"kind":"cbs","handle":"103:","dev":"pa","parent":"100:3","options":{"hicredit":31,"locredit":-1539,"sendslope":-9980000,"idleslope":20000,"offload":0}}]"#;

/// `tc -j filter show dev pb ingress` with the actions police, gate and skbedit.
const FILTERS: &str = r#"[{"protocol":"802.1Q","pref":1,"kind":"flower","chain":0},{"protocol":"802.1Q","pref":1,"kind":"flower","chain":0,"options":{"handle":1,"keys":{"vlan_id":5,"dst_mac":"03:00:00:00:01:02"},"not_in_hw":true,"actions":[{"order":1,"kind":"police","index":1,"control_action":{"type":"drop"},"control_action":{"type":"pipe"},"overhead":0,"ref":1,"bind":1},{"order":2,"priority":1,"clockid":"TAI","flags":"0","base_time":0,"cycle_time":110000000,"cycle_time_ext":0,"schedule":[{"number":0,"gate_state":"open","interval":20000000,"ipv":5,"max_octets":1500},{"number":1,"gate_state":"close","interval":80000000,"ipv":-1,"max_octets":-1}],"control_action":{"type":"continue"},"index":1,"ref":1,"bind":1}]}},{"protocol":"802.1Q","pref":10,"kind":"flower","chain":0,"options":{"handle":1,"keys":{"vlan_prio":4},"not_in_hw":true,"actions":[{"order":1,"kind":"skbedit","priority":":4","control_action":{"type":"pipe"},"index":2,"ref":1,"bind":1}]}}]"#;

fn read(json: &str) -> (Result<Vec<Qdisc>, String>, Vec<String>) {
    let mut unread = Vec::new();
    (qdiscs(json, &mut unread), unread)
}

#[test]
fn classes_gates_and_slopes_are_read() {
    let (found, unread) = read(TAPRIO);
    let found = found.unwrap();
    let Options::Taprio(classes, gates) = &found[0].options else { panic!("{found:?}") };
    assert_eq!((&classes.map[..3], &classes.queues[..]), (&[0, 1, 2][..], &[(0, 1), (1, 1)][..]));
    let words = gates.in_force.as_ref().map(taprio::words).unwrap();
    let expected = "base-time 0 sched-entry S 01 10000000 sched-entry S 02 10000000";
    assert_eq!((words, &*gates.clock), (format!("{expected} cycle-time 20000000"), "TAI"));
    assert_eq!((found[1].queue, &*found[1].kind, unread), (Some(7), "pfifo", vec![]));

    let (found, unread) = read(MQPRIO);
    let found = found.unwrap();
    assert!(matches!(&found[0].options, Options::Mqprio(classes) if classes.queues[3] == (3, 1)));
    assert!(matches!(&found[2], Qdisc { queue: Some(2), options: Options::Cbs(20_000), .. }));
    assert_eq!((found[0].device.as_deref(), unread), (Some("pa"), vec![]));
}

#[test]
fn mistakes_have_a_path_and_new_members_are_named() {
    let (found, unread) = read(&TAPRIO.replace("\"clockid\"", "\"color\":1,\"clockid\""));
    assert!(found.is_ok());
    assert_eq!(unread, ["[0].options.color: not read"]);
    for (from, to, expected) in [
        ("\"S\"", "\"X\"", "[0].options.schedule: invalid sched-entry 'X 0x1 10000000'"),
        ("20000000", "\"soon\"", "[0].options.cycle_time: invalid type: string"),
        ("\"kind\"", "\"sort\"", "[0]: missing field `kind`"),
    ] {
        let error = read(&TAPRIO.replace(from, to)).0.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(read("Cannot find device").0.unwrap_err().starts_with("not JSON: "));
}

#[test]
fn actions_of_filters_are_read() {
    let found = filters(FILTERS, &mut Vec::new()).unwrap();
    assert_eq!(found[0].keys["dst_mac"], "03:00:00:00:01:02");
    let [Action::Police, Action::Gate(gate)] = &found[0].actions[..] else { panic!("{found:?}") };
    assert_eq!((gate.cycle_time, gate.schedule.len()), (110_000_000, 2));
    assert_eq!((gate.schedule[0].ipv, gate.schedule[0].max_octets), (5, 1500));
    assert_eq!((found[1].number("vlan_prio"), found[1].priority()), (Some(4), Some(4)));
}

#[test]
fn classes_are_hexadecimal() {
    let classes = ["none", ":1", "1:", "1:a", ":ffff"].map(class);
    assert_eq!(classes, [0, 1, 0x1_0000, 0x1_000a, 0xffff].map(Some));
    assert_eq!(["", "1", ":g", "1:2:3", ":10000"].map(class), [None; 5]);
}
