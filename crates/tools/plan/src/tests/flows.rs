//! Valid and invalid `[flows]`.

use super::*;
use crate::run::once;

/// A plan of a drive over TCP, a stream and a flow from the same station.
fn plan(keys: &str) -> String {
    format!(
        "transport = \"tcp\"\n[workload]\nrw = \"read\"\nruntime = \"20ms\"\ntime_based = \"on\"\n\
         [flows.backup]\nfrom = \"device\"\nto = \"host\"\n{keys}\n[traffic.t]\nfrom = \"device\"\n\
         to = \"host\"\ninterval = \"1ms\"\n"
    )
}

#[test]
fn flow_shares_its_stations_with_tunnel_and_stream() {
    let planned = built(&plan("start = \"1ms\"\nbytes = \"1MiB\"\n"));
    let (document, _) = once(&planned, &|| false).unwrap();
    let [flow] = &document.flows[..] else { panic!("one flow") };
    assert_eq!((&*flow.name, flow.delivered_bytes), ("backup", 1 << 20));
    assert_eq!(flow.interval_bytes.iter().sum::<u64>(), flow.delivered_bytes);
    assert!(flow.bytes_per_s < 125_000_000 && flow.bytes_per_s > 30_000_000, "{flow:?}");
    assert!(document.iops > 0 && document.streams[0].sent > 15);
    let (again, _) = once(&planned, &|| false).unwrap();
    assert_eq!(document.digest, again.digest);
}

const ALONE: &str =
    "runtime = \"1ms\"\n[nodes.a]\n[nodes.b]\n[flows.f]\nfrom = \"a\"\nto = \"b\"\n";

#[test]
fn plan_of_flows_needs_no_stream() {
    let planned = built(ALONE);
    assert_eq!(planned.flows, ["f"]);
    assert_eq!(planned.config.network.bulk[0].stations, [0, 1]);
}

#[test]
fn flow_that_cannot_run_is_an_error() {
    fails(
        &plan("start = \"2ms\"\nstop = \"1ms\""),
        "p.toml:10:8: stop: expected a time later than start",
    );
    fails(
        &plan("").replace("to = \"host\"\n\n", "to = \"device\"\n\n"),
        "p.toml:8:6: 'to' names the sender: expected another station",
    );
    fails(
        &plan("").replace("from = \"device\"\nto = \"host\"\n\n", "to = \"host\"\n\n"),
        "p.toml:6:8: [flows.backup] needs from: a host or node",
    );
    let gates = "[link]\nschedule = \"s\"\n[schedules.s]\nentries = [\"S fe 1ms\"]\n";
    // 1518 bytes, tag and preamble.
    let error = "p.toml:8:12: the schedule at 'a' never opens the gate of priority 0 for 12.240us, \
                 which a frame of the flow from 'a' to 'b' takes there";
    fails(&format!("{ALONE}{gates}"), error);
}
