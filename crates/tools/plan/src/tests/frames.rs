//! Addresses, VLANs, classes, long frames and MACsec.

use super::*;
use sim::ethernet::traffic::StreamId;
use sim::ethernet::{Mac, Tag};
use sim::world::Report;

/// A star of nodes `a`, `b` and `c` with these keys of the bridge, of the link, and of a stream from
/// `a`, from line 14 on.
fn star(bridge: &str, link: &str, stream: &str) -> String {
    format!(
        "runtime = \"10ms\"\n[nodes.a]\n[nodes.b]\n[nodes.c]\n[link]\nrate = \"1G\"\n\
         tx_delay = \"0ns\"\nrx_delay = \"0ns\"\n{link}[bridges.s]\n{bridge}[traffic.t]\n\
         from = \"a\"\ninterval = \"1ms\"\n{stream}"
    )
}

fn run(text: &str) -> (sim::Config, Report) {
    let planned = built(text);
    let report = sim::World::new(&planned.config).unwrap().run().unwrap();
    (planned.config, report)
}

#[test]
fn macsec_and_jumbo_frames_take_their_bytes_from_every_line() {
    let longest = |link: &str, length: &str| {
        let stream = format!("to = \"b\"\nlength = \"{length}\"\n");
        run(&star("", link, &stream)).1.streams[0].latency().longest()
    };
    let plain = longest("", "1000B");
    // 8 ns per byte on two lines.
    assert_eq!(longest("macsec = \"on\"\n", "1000B"), plain + Duration::from_ns(2 * 32 * 8));
    assert_eq!(longest("macsec = \"no-sci\"\n", "1000B"), plain + Duration::from_ns(2 * 24 * 8));
    assert_eq!(longest("", "9018B"), plain + Duration::from_ns(2 * 8_018 * 8));
}

#[test]
fn streams_have_their_own_vlan_code_point_and_group() {
    let own = "to = [\"b\", \"c\"]\nvlan = 20\npcp = 6\naddress = \"01:00:5e:00:00:07\"\n";
    let (config, report) = run(&star("", "", own));
    let id = StreamId::new(0, 0);
    assert_eq!(config.network.stream_tag(id), Some(Tag { vid: 20, pcp: 6 }));
    assert_eq!(config.network.destination(id), Mac([1, 0, 0x5e, 0, 0, 7]));
    assert_eq!(report.streams[0].arrived(), 20);
    let most =
        |class: usize| report.queues.iter().map(|port| port.classes[class].most_frames).max();
    assert_eq!((most(6), most(0)), (Some(1), Some(0)));
    // Without a tag of the station, the code point alone makes a priority tag.
    let (config, _) = run(&star("", "vlan = \"none\"\n", "to = \"b\"\npcp = 3\n"));
    assert_eq!(config.network.stream_tag(id), Some(Tag { vid: 0, pcp: 3 }));
}

#[test]
fn queues_map_priorities_as_recommended_or_given() {
    let table = |keys: &str| {
        let (config, _) = run(&star(keys, "", "to = \"b\"\n"));
        config.network.bridges[0].ports[0].queue_of_priority
    };
    assert_eq!(table(""), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(table("queues = 4\n"), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(table("queues = 8\n"), [1, 0, 2, 3, 4, 5, 6, 7]);
    assert_eq!(table("class_of_pcp = [0, 0, 0, 0, 3, 3, 7, 7]\n"), [0, 0, 0, 0, 3, 3, 7, 7]);
    fails(
        &star("class_of_pcp = [0, 1]\n", "", ""),
        "p.toml:10:16: class_of_pcp: expected a class for each of 8 PCPs; found 2",
    );
    fails(
        &star("queues = 2\nclass_of_pcp = [0, 0, 0, 0, 1, 1, 1, 2]\n", "", ""),
        "p.toml:11:16: class_of_pcp: classes 0 to 1",
    );
}

/// Only ports that are members of a VLAN carry its frames.
#[test]
fn vlans_keep_a_broadcast_from_ports_that_are_no_members() {
    let member = "[bridges.s.ports.a]\nvlans = [1, 20]\n[bridges.s.ports.b]\nvlans = [1, 20]\n";
    let others = "[bridges.s.ports.c]\nvlans = [1]\n";
    let stream = "to = \"b\"\nvlan = 20\n";
    let (_, report) = run(&star(&format!("{member}{others}"), "", stream));
    assert_eq!(report.streams[0].arrived(), 10);
    let refused = star(&format!("{member}{others}"), "", "to = \"all\"\nvlan = 20\n");
    fails(
        &refused,
        "p.toml:14:18: s port 2 to c is no member of VLAN 20, which frames of background traffic from 'a' \
         have there",
    );
    // The same network, built without the check.
    let mut config = built(&refused.replace("vlan = 20\n", "")).config;
    config.network.stations[0].traffic[0].vlan = Some(20);
    let report = sim::World::new(&config).unwrap().run().unwrap();
    let arrived: Vec<_> = report.streams[0].listeners.iter().map(|own| own.arrived).collect();
    assert_eq!(arrived, [10, 0]);
}

#[test]
fn given_addresses_identify_stations() {
    let text = star("", "", "to = \"b\"\n")
        .replace("[nodes.b]\n", "[nodes.b]\nmac = \"02:00:00:00:aa:01\"\n");
    let (config, report) = run(&text);
    assert_eq!(config.network.destination(StreamId::new(0, 0)), Mac([2, 0, 0, 0, 0xaa, 1]));
    assert_eq!(report.streams[0].arrived(), 10);
    let twice = text.replace("[nodes.c]\n", "[nodes.c]\nmac = \"02:00:00:00:aa:01\"\n");
    fails(&twice, "p.toml:6:7: mac: 'b' has this address already");
    let group = text.replace("\"02:", "\"03:");
    fails(&group, "p.toml:4:7: mac: expected a unicast address: its first byte even");
}
