//! Files of running nodes: answers, mistakes, and what has no place in a plan.

use farlane_devices::import::{File, Imported, Kind, Target, import};

/// Reads files of the bridge `left`; each file with its interface, or an empty name.
fn read(files: &[(&str, &str)], peers: &[(&str, &str)]) -> Result<Imported, String> {
    let peers = peers.iter().map(|(own, peer)| ((*own).to_owned(), (*peer).to_owned())).collect();
    let target = Target { kind: Kind::Bridge, name: "left".to_owned(), peers };
    let file = |(at, (interface, text)): (usize, &(&str, &str))| File {
        name: format!("file{at}.json"),
        interface: (!interface.is_empty()).then(|| (*interface).to_owned()),
        text: (*text).to_owned(),
    };
    import(&target, &files.iter().enumerate().map(file).collect::<Vec<_>>())
}

/// An answer of `ethtool --include-statistics --json --show-mm`, as the author of the driver of
/// DWMAC 5.10a published it for Linux 6.12. Unproved: no machine of the
/// tests has a MAC merge layer.
const MERGE_LAYER: &str = r#"[ {
        "ifname": "eth1",
        "pmac-enabled": true,
        "tx-enabled": true,
        "tx-active": true,
        "tx-min-frag-size": 60,
        "rx-min-frag-size": 60,
        "verify-enabled": true,
        "verify-time": 100,
        "max-verify-time": 128,
        "verify-status": "SUCCEEDED",
        "statistics": {
            "MACMergeFrameAssErrorCount": 0,
            "MACMergeFrameSmdErrorCount": 0,
            "MACMergeFrameAssOkCount": 0,
            "MACMergeFragCountRx": 0,
            "MACMergeFragCountTx": 17837,
            "MACMergeHoldCount": 18639
        }
    } ]"#;

/// The taprio that was in force then (`fp P E E E`), as iproute2 6.15 prints one.
const PREEMPTED: &str = r#"[{"kind":"taprio","handle":"100:","dev":"eth1","root":true,"options":{"tc":4,"map":[0,1,2,3,2,2,2,2,2,2,2,2,2,2,2,3],"queues":[{"offset":0,"count":1},{"offset":1,"count":1},{"offset":2,"count":1},{"offset":3,"count":1}],"clockid":"invalid","base_time":1000000000,"cycle_time":20000000,"cycle_time_extension":0,"schedule":[{"index":0,"cmd":"S","gatemask":"0x3","interval":10000000},{"index":1,"cmd":"S","gatemask":"0xe","interval":10000000}],"flags":"0x2","fp":["P","E","E","E","E","E","E","E","E","E","E","E","E","E","E","E"]}}]"#;

#[test]
fn merge_layer_and_gates_of_hardware_are_one_port() {
    let found = read(&[("", MERGE_LAYER), ("", PREEMPTED)], &[("eth1", "right")]).unwrap();
    assert_eq!(found.warnings, Vec::<String>::new());
    let expected = "[bridges.left.ports.right]\nschedule = \"left-right\"\n\
                    class_of_pcp = [0, 1, 2, 3, 2, 2, 2, 2]\nexpress = [1, 2, 3]\n\
                    verify_time = \"100ms\"\n\n[schedules.left-right]\nbase = \"1s\"\n\
                    cycle = \"20ms\"\nentries = [\"S 03 10ms\", \"S 0e 10ms\"]\n";
    assert_eq!(found.text, expected);
    let off = MERGE_LAYER.replace("\"tx-enabled\": true", "\"tx-enabled\": false");
    assert_eq!(read(&[("", &off)], &[("eth1", "right")]).unwrap().text, "");
    let wrong = MERGE_LAYER.replace("\"tx-min-frag-size\": 60", "\"tx-min-frag-size\": 600");
    let error = read(&[("", &wrong)], &[]).unwrap_err();
    assert!(error.starts_with("file0.json: [0].tx-min-frag-size: invalid size '600'"), "{error}");
}

#[test]
fn mistakes_name_file_and_path() {
    let interfaces = |port: &str| {
        format!(
            "{{\"ietf-interfaces:interfaces\":{{\"interface\":[{{\"name\":\"right\",\"ieee802-dot1q-bridge:bridge-port\":{port}}}]}}}}"
        )
    };
    let gates = |gates: &str| {
        interfaces(&format!("{{\"ieee802-dot1q-sched-bridge:gate-parameter-table\":{gates}}}"))
    };
    let entry = "\"admin-control-list\":{\"gate-control-entry\":[{\"index\":0,\"operation-name\":\"x:y\"}]}";
    for (text, expected) in [
        ("{", "not JSON: EOF"),
        ("7", "expected the output of tc -j, ethtool"),
        ("[{\"x\":1}]", "expected the output of tc -j, ethtool"),
        (
            &interfaces("{\"pvid\":\"one\"}"),
            "ietf-interfaces:interfaces.interface[0].ieee802-dot1q-bridge:bridge-port.pvid: invalid type: string \"one\"",
        ),
        (
            &interfaces("{\"traffic-class\":{\"traffic-class-table\":{\"priority9\":0}}}"),
            "ietf-interfaces:interfaces.interface[0]: invalid priority9 '0'",
        ),
        (&gates("{\"gate-enabled\":true}"), "ietf-interfaces:interfaces.interface[0]: gates: "),
        (
            &gates(&format!("{{\"gate-enabled\":true,{entry}}}")),
            "ietf-interfaces:interfaces.interface[0]: gates: unknown operation 'x:y'",
        ),
        (
            "[{\"kind\":\"taprio\",\"root\":true,\"options\":{}}]",
            "[0].options: missing field `map`",
        ),
        (
            "[{\"kind\":\"cbs\",\"parent\":\"100:1\",\"options\":{\"idleslope\":1}}]",
            "[0]: the interface is missing",
        ),
    ] {
        let error = read(&[("", text)], &[]).unwrap_err();
        assert!(error.starts_with(&format!("file0.json: {expected}")), "{error}");
    }
}

#[test]
fn what_has_no_key_is_a_warning() {
    let yang = r#"{"ietf-interfaces:interfaces":{"interface":[{"name":"right","ietf-ip:ipv4":{},
        "ieee802-dot1q-bridge:bridge-port":{"default-priority":3}}]},"ietf-system:system":{},
        "ieee802-dot1cb-frer:frer":{"sequence-generation":[{"index":0,"stream":[1]}]}}"#;
    let htb = "[{\"kind\":\"htb\",\"dev\":\"right\",\"root\":true,\"new\":1}]";
    let filter = r#"[{"protocol":"802.1Q","pref":1,"kind":"flower","options":{"keys":{"vlan_prio":2},
        "actions":[{"kind":"skbedit","priority":":5"},{"kind":"mirred"}]}},{"protocol":"ip","pref":2,"kind":"u32","options":{}}]"#;
    let found = read(&[("", yang), ("", htb), ("right", filter)], &[]).unwrap();
    let warnings = [
        "file0.json: ietf-interfaces:interfaces.interface.0.ieee802-dot1q-bridge:bridge-port.default-priority: not read",
        "file0.json: ietf-interfaces:interfaces.interface.0.ietf-ip:ipv4: not read",
        "file0.json: ietf-system:system: not read",
        "file0.json: ieee802-dot1cb-frer:frer: streams of a plan need paths",
        "file1.json: [0].new: not read",
        "file1.json: [0]: htb of 'right' has no key",
        "file2.json: [1]: filter u32 has no key",
        "file2.json: vlan_prio 2: priority 5 has no key",
        "file2.json: vlan_prio 2: mirred has no key",
    ];
    assert_eq!(found.warnings, warnings);
    let other = read(&[("", PREEMPTED)], &[("eth0", "right")]).unwrap();
    assert_eq!(other.warnings, ["file0.json: [0]: taprio of 'eth1', which is no port"]);
    assert_eq!(other.text, "");
}

#[test]
fn vlans_of_a_bridge_that_filters_are_read() {
    let show = |right: &str| {
        format!(
            "[{{\"ifname\":\"right\",\"vlans\":[{right}]}},{{\"ifname\":\"left\",\"vlans\":[{{\"vlan\":1,\"flags\":[\"PVID\",\"Egress Untagged\"]}}]}}]"
        )
    };
    let vlans = show("{\"vlan\":5},{\"vlan\":7,\"vlanEnd\":9},{\"vlan\":11,\"flags\":[\"PVID\"]}");
    let text = read(&[("", &vlans)], &[]).unwrap().text;
    assert_eq!(text, "[bridges.left.ports.right]\nvlans = [5, 7, 8, 9, 11]\npvid = 11\n");
    let default = show("{\"vlan\":1,\"flags\":[\"PVID\",\"Egress Untagged\"]}");
    assert_eq!(read(&[("", &default)], &[]).unwrap().text, "");
}

/// A parser of foreign text never panics.
#[test]
fn damaged_files_are_errors_or_warnings() {
    let front = super::node(&super::planned("tsn-network", &[]), "front");
    let data = farlane_devices::yang::data(&front, 6).text;
    for text in [MERGE_LAYER, PREEMPTED, &data] {
        for at in (0..text.len()).step_by(text.len() / 150) {
            let _ = read(&[("", &text[..at])], &[]);
            for letter in ["9", "-", "\"", "[", "null"] {
                let damaged = format!("{}{letter}{}", &text[..at], &text[at + 1..]);
                let _ = read(&[("", &damaged)], &[]);
            }
        }
    }
}
