//! Scripts and files of linuxptp: the lines for each part of a plan.

use super::{node, planned};
use farlane_devices::node::Node;
use farlane_devices::ptp;
use farlane_devices::script::{Options, Script, script};
use plan::Plan;

const OFFLOAD: Options = Options { offload: true, launch_times: false };

/// Returns the script of a node of a plan's text.
fn of(text: &str, name: &str, options: &Options) -> Script {
    let planned = Plan::parse("plan.toml", text).and_then(|plan| plan.build()).unwrap();
    let found = Node::all(&planned).into_iter().find(|node| node.name == name).unwrap();
    script(&found, "plan.toml", options)
}

/// A bridge with a port to each of two stations, which have keys.
fn star(tables: &str) -> String {
    format!(
        "runtime = \"1ms\"\n[link]\nrate = \"100M\"\nvlan = 5\n[nodes.a]\n[nodes.z]\n[bridges.b]\n\
         [traffic.t]\nfrom = \"a\"\nto = \"z\"\ninterval = \"1ms\"\n{tables}"
    )
}

fn lacks(script: &Script, line: &str) -> bool {
    !script.text.lines().any(|own| own.trim() == line)
}

#[test]
fn script_of_a_bridge_is_the_golden_one() {
    let front = node(&planned("tsn-network", &[]), "front");
    let script = script(&front, "tsn-network.toml", &OFFLOAD);
    assert_eq!(script.text, include_str!("golden/front.sh"));
    assert_eq!(script.notes, ["port to rear: shaper ats of class 4"]);
}

/// 20 Mb/s of 100 Mb/s, above a class of the same largest frames.
#[test]
fn credits_are_those_of_annex_l() {
    let ports = "class_of_pcp = [0, 0, 0, 1, 0, 0, 0, 0]\nshapers = [\"1 a\"]\n[shapers.a]\n\
                 algorithm = \"cbs\"\nidle_slope = \"20Mb/s\"\n";
    let script = of(&star(&format!("[bridges.b.ports.z]\n{ports}")), "b", &Options::default());
    // Frames of 1542 bytes with preamble and gap: 1542 * 20 / 100 and 1542 * 80 / 100.
    let line = "tc qdisc replace dev \"$PORT_z\" parent 100:2 handle 102 cbs idleslope 20000 \
                sendslope -80000 hicredit 309 locredit -1234 offload 0";
    assert!(!lacks(&script, line), "{}", script.text);
}

#[test]
fn periodic_streams_behind_gates_get_launch_times_on_request() {
    let gated = "[bridges.b.ports.z]\nschedule = \"s\"\n[schedules.s]\n\
                 entries = [\"S 01 200us\", \"S fe 800us\"]\n";
    let options = Options { launch_times: true, ..Options::default() };
    let etf = "tc qdisc replace dev \"$PORT_b\" parent 100:1 handle 101 etf clockid CLOCK_TAI \
               delta \"${ETF_DELTA:-500000}\"";
    let script = of(&star(gated), "a", &options);
    assert!(!lacks(&script, etf), "{}", script.text);
    let times = "# t: a frame at 0 ns and every 1000000 ns, by SO_TXTIME.";
    assert!(!lacks(&script, times), "{}", script.text);
    for (text, options) in [
        (star(gated), &Options::default()),
        (star(""), &options),
        (star(gated).replace("1ms\"\n[bridges", "1ms\"\njitter = \"1us\"\n[bridges"), &options),
        // Another stream of the class would be dropped.
        (
            star(&format!(
                "{gated}[traffic.u]\nfrom = \"a\"\nto = \"z\"\ninterval = \"1ms\"\npattern = \"poisson\"\n"
            )),
            &options,
        ),
    ] {
        assert!(lacks(&of(&text, "a", options), etf), "{text}");
    }
}

/// A further discipline of an interface stops the timer of its gates.
#[test]
fn gates_of_the_kernel_start_after_all_other_disciplines() {
    let gated = "schedule = \"s\"\n[schedules.s]\nentries = [\"S 01 200us\", \"S fe 800us\"]\n";
    let bridge = star(&format!("[bridges.b.ports.z]\n{gated}"));
    let station = star(&format!("[bridges.b.ports.a]\n[nodes.a.ports.b]\n{gated}"));
    for (text, name, device, times) in
        [(&bridge, "b", "\"$PORT_z\"", 2), (&station, "a", "\"$PORT_b\"", 1)]
    {
        let count = |options: &Options| {
            let script = of(text, name, options);
            let device = format!("tc qdisc replace dev {device} ");
            let own: Vec<String> = script.text.lines().map(|line| line.trim().to_owned()).collect();
            let own: Vec<_> = own.into_iter().filter(|line| line.starts_with(&device)).collect();
            let gates = own.iter().filter(|line| line.contains("taprio")).count();
            (gates, own.last().is_some_and(|line| line.contains("taprio")))
        };
        assert_eq!(count(&Options::default()), (times, true), "{name}");
        assert_eq!(count(&OFFLOAD), (1, times == 1), "{name}");
    }
}

#[test]
fn streams_are_policed_where_they_arrive() {
    let streams = "[streams.s]\ntraffic = \"t\"\npolice = [\"b f\"]\n[filters.f]\nmax_sdu = \"500B\"\n\
                   entries = [\"open 1ms ipv=2\", \"closed 3ms\"]\nrate = \"8Mb/s\"\nburst = \"2000B\"\n\
                   excess_rate = \"1Mb/s\"\nexcess_burst = \"2000B\"\nblock_closed = \"on\"\n";
    let script = of(&star(streams), "b", &Options::default());
    let filter = "ingress pref 1 protocol 802.1Q flower vlan_id 5 dst_mac 02:00:00:00:00:02 \
                  action police mtu 500 conform-exceed drop/pipe \
                  action gate base-time 0 clockid CLOCK_TAI sched-entry open 1000000 2 -1 \
                  sched-entry close 3000000 -1 -1 cycle-time 4000000 pipe \
                  action police rate 8000000bit burst 2000b mtu 65535 overhead 22 \
                  conform-exceed drop/continue";
    let line = format!("tc filter add dev \"$PORT_a\" {filter}");
    assert!(!lacks(&script, &line), "{}", script.text);
    assert!(lacks(&script, &line.replace("PORT_a", "PORT_z")));
    assert_eq!(script.notes, ["stream s: the permanent blocks", "stream s: the excess rate"]);
}

#[test]
fn groups_and_vlans_have_static_entries() {
    let text = star(
        "[traffic.g]\nfrom = \"a\"\nto = [\"z\"]\naddress = \"03:00:00:00:00:09\"\n\
                     interval = \"1ms\"\n[bridges.b.ports.z]\nvlans = [5, 7]\npvid = 7\n",
    );
    let script = of(&text, "b", &Options::default());
    for line in [
        "ip link set dev \"$BRIDGE\" type bridge vlan_filtering 1",
        "bridge vlan add dev \"$PORT_z\" vid 5",
        "bridge vlan add dev \"$PORT_z\" vid 7 pvid untagged",
        "quietly bridge vlan del dev \"$PORT_z\" vid 1",
        "bridge vlan add dev \"$PORT_a\" vid 2-4094",
        "bridge mdb replace dev \"$BRIDGE\" port \"$PORT_z\" grp 03:00:00:00:00:09 permanent vid 5",
        "quietly bridge mdb del dev \"$BRIDGE\" port \"$PORT_z\" grp 03:00:00:00:00:09 vid 5",
    ] {
        assert!(!lacks(&script, line), "{line}\n{}", script.text);
    }
    let station = of(&text, "a", &Options::default());
    let vlan = "ip link add link \"$PORT_b\" name \"$VLAN_5\" type vlan id 5 egress-qos-map 0:0 1:1 \
                2:2 3:3 4:4 5:5 6:6 7:7 ingress-qos-map 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7";
    assert!(!lacks(&station, vlan), "{}", station.text);
}

#[test]
fn what_programs_lack_is_noted() {
    let text = star(
        "[bridges.b.ports.z]\nexpress = [7]\nshapers = [\"5 w\", \"4 s\"]\n[nodes.a.ports.b]\n\
                     express = [7]\n[shapers.w]\nalgorithm = \"ets\"\nweight = 100\n[shapers.s]\n\
                     max_sdu = \"100B\"\n",
    );
    let notes = of(&text, "b", &Options::default()).notes;
    let port = "port to z: ";
    assert_eq!(
        notes,
        [
            "preemption, which Linux has only with offload",
            "max_sdu of class 4, which tc has only with a schedule",
            "shaper ets of class 5",
        ]
        .map(|note| format!("{port}{note}"))
    );
}

#[test]
fn files_of_linuxptp_have_the_values_of_clocks() {
    let text = star(
        "[clocks]\nsync_interval = \"31.25ms\"\ndelay_limit = \"900ns\"\nstep = \"1ms\"\n\
                     [nodes.a.ports.b]\n",
    );
    let text =
        text.replace("[nodes.z]", "clock_priority = 100\n[nodes.z]\nstamping = \"software\"");
    let planned = Plan::parse("plan.toml", &text).and_then(|plan| plan.build()).unwrap();
    let [a, z, ..] = &Node::all(&planned)[..] else { panic!("two stations") };
    let files = ptp::files(a).unwrap();
    for line in [
        "[b]",
        "time_stamping hardware",
        "priority1 100",
        "gmCapable 1",
        "logSyncInterval -5",
        "neighborPropDelayThresh 900",
        "step_threshold 0.001",
        "first_step_threshold 0.00002",
        "socket_priority 7",
    ] {
        assert!(files.ptp4l.lines().any(|own| own == line), "{line}\n{}", files.ptp4l);
    }
    assert!(files.phc2sys.unwrap().contains("\nstep_threshold 0.001\n"));
    let software = ptp::files(z).unwrap();
    assert!(software.phc2sys.is_none() && software.ptp4l.contains("time_stamping software"));
}
