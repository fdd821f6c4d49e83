//! Switch nodes between a host and its drives.

use super::{built, fails};
use crate::simulate::node_name;
use sim::World;

/// Two drives behind `middle`, which has a drive of its own.
const CASCADE: &str = "[workload]\nrw = \"randrw\"\nsize = \"64KiB\"\nstripe = \"4KiB\"\n\
                       [bridges.br]\n[nodes.far]\nswitch = \"middle\"\n[nodes.middle]\n\
                       [drives.behind]\nnode = \"far\"\ncount = 2\n[drives.near]\n\
                       node = \"middle\"\n";

#[test]
fn drives_behind_a_switch_node_follow_the_others() {
    let planned = built(CASCADE);
    assert_eq!(planned.links, ["near", "middle@host", "behind.0", "behind.1"]);
    let host = &planned.config.hosts[0];
    let links: Vec<_> = host
        .links()
        .iter()
        .map(|link| {
            let ([from, to], _) = link.transport.stations().unwrap();
            let names = [from, to].map(|at| planned.stations[at].as_str());
            (link.above, link.port, names, link.drive.map(|(drive, _)| drive))
        })
        .collect();
    let expected = [
        (None, 0, ["host", "middle"], Some(0)),
        (None, 1, ["host", "middle"], None),
        (Some(1), 0, ["middle", "far"], Some(1)),
        (Some(1), 1, ["middle", "far"], Some(2)),
    ];
    assert_eq!(links, expected);
    let names: Vec<_> = (0..4).map(|link| node_name(host, link)).collect();
    assert_eq!(names, ["device0", "switch0", "device1", "device2"]);
    let report = World::new(&planned.config).unwrap().run().unwrap();
    let bytes = &report.hosts[0].drive_bytes;
    assert!(bytes.iter().all(|one| *one > 0) && bytes.len() == 3, "{bytes:?}");
    assert_eq!((report.hosts[0].mismatches, report.hosts[0].failures), (0, 0));
}

/// A host reaches a drive through a switch node at the cost of one more node.
#[test]
fn processor_of_a_switch_node_takes_its_time() {
    let median = |text: &str, tlp: &str| {
        let text =
            text.replace("[nodes.middle]\n", &format!("[nodes.middle]\ntlp_time = \"{tlp}\"\n"));
        let machine = format!("machine = \"farlane\"\n{text}");
        let report = World::new(&built(&machine).config).unwrap().run().unwrap();
        report.hosts[0].latency.summary().p50_ns
    };
    let reads = "[link]\nprocessor = \"serial\"\nwake_time = \"5us\"\n[host]\npush = \"off\"\n[workload]\nrw = \"randread\"\nsize = \"64KiB\"\n\
                 [bridges.br]\n[nodes.middle]\n";
    let direct = format!("{reads}[nodes.far]\n[drives.d]\nnode = \"far\"\n");
    let behind = format!("{reads}[nodes.far]\nswitch = \"middle\"\n[drives.d]\nnode = \"far\"\n");
    let (near, far) = (median(&direct, "0ns"), median(&behind, "0ns"));
    assert!(far > near * 3 / 2 && far < near * 5 / 2, "{near} ns, {far} ns behind the switch node");
    let slow = median(&behind, "10us");
    // Doorbell, fetch, entry, data, completion entry and interrupt cross it one after the other.
    assert!((40_000..80_000).contains(&(slow - far)), "{far} ns, {slow} ns with 10 us per TLP");
}

#[test]
fn switch_node_that_cannot_be_is_an_error() {
    let with = |from: &str, to: &str| CASCADE.replace(from, to);
    let place = "p.toml:7:10";
    fails(
        &with("\"middle\"\n[nodes", "\"midle\"\n[nodes"),
        &format!("{place}: unknown node 'midle'; did you mean 'middle'? There are: far, middle"),
    );
    fails(
        &with("\"middle\"\n[nodes", "\"far\"\n[nodes"),
        &format!("{place}: switch: expected another node"),
    );
    fails(
        &with("[nodes.middle]\n", "[nodes.middle]\nswitch = \"top\"\n[nodes.top]\n"),
        &format!(
            "{place}: switch: 'middle' is behind a switch node itself; a drive can be behind only one"
        ),
    );
    fails(
        &with("[nodes.middle]\n", "[nodes.middle]\ncount = 2\n"),
        &format!("{place}: switch: node 'middle' has copies"),
    );
    fails(
        &with("[nodes.middle]\n", "[nodes.middle]\noutages = [\"1ms..2ms\"]\n"),
        "p.toml:9:11: 'outages' does not apply to switch nodes",
    );
    fails(
        &with("node = \"far\"", "node = \"middle\""),
        &format!("{place}: 'switch' applies only to nodes with drives"),
    );
    let moves = "[hosts.two]\n[hosts.host]\ndrives = [\"near\", \"behind\"]\n[moves.m]\n\
                 drive = \"near\"\nto = \"two\"\nat = \"1ms\"\n";
    let place = "p.toml:17:2";
    fails(
        &format!("{CASCADE}{moves}"),
        &format!("{place}: drives cannot move in a plan with switch nodes"),
    );
}
