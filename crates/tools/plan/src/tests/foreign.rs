//! Files of other programs: tsnkit and GraphML.

use super::built;
use super::expansion::{config, folder, refused};
use crate::{Plan, Planned};
use wire::Duration;

const PLAN: (&str, &str) =
    ("plan.toml", "runtime = \"1ms\"\ninclude = [\"topo.csv\", \"task.csv\"]\n");

/// Two bridges with a station each, and a further station.
const TOPOLOGY: &str = "link,q_num,rate,t_proc,t_prop\n\"(0, 1)\",8,1,2000,100\n\"(0, 2)\",8,1,2000,0\n\
    \"(1, 0)\",4,1,1500,100\n\"(1, 3)\",4,1,1500,0\n\"(1, 4)\",4,10,1500,7\n\"(2, 0)\",8,1,2000,0\n\
    \"(3, 1)\",8,1,2000,0\n\"(4, 1)\",8,10,2000,7\n";
const STREAMS: &str = "stream,src,dst,size,period,deadline,jitter\n0,2,[3],1000,400000,31000,31000\n\
    7,3,\"[4, 2]\",50,250000,250000,0\n";

fn read(files: &[(&str, &str)]) -> Planned {
    let (_folder, file) = folder(files);
    let plan = Plan::read(&file).unwrap();
    let alone = Plan::parse("elsewhere.toml", &plan.text).unwrap().build().unwrap();
    let planned = plan.build().unwrap();
    assert_eq!(config(&alone), config(&planned), "the text in documents");
    planned
}

#[test]
fn instances_of_tsnkit_become_tables() {
    let planned = read(&[PLAN, ("topo.csv", TOPOLOGY), ("task.csv", STREAMS)]);
    let station = "tx_delay = \"0ns\"\nrx_delay = \"0ns\"\nqueues = 8\n";
    let expected = format!(
        "runtime = \"1ms\"\n[nodes.2]\n{station}[nodes.3]\n{station}[nodes.4]\n{station}\
         [bridges.0]\ndelay = \"2us\"\nqueues = 8\n[bridges.1]\ndelay = \"1.5us\"\nqueues = 4\n\
         [cables]\n0-1 = {{ a = \"0\", b = \"1\", propagation = \"100ns\" }}\n\
         0-2 = {{ a = \"0\", b = \"2\", propagation = \"0ns\" }}\n\
         1-3 = {{ a = \"1\", b = \"3\", propagation = \"0ns\" }}\n\
         1-4 = {{ a = \"1\", b = \"4\", propagation = \"7ns\", rate = \"10G\" }}\n\
         [traffic.0]\nfrom = \"2\"\nto = \"3\"\nlength = \"1000B\"\ninterval = \"400us\"\n\
         deadline = \"31us\"\npaths = [\"shortest\"]\n\
         [traffic.7]\nfrom = \"3\"\nto = [\"4\", \"2\"]\nlength = \"64B\"\ninterval = \"250us\"\n\
         deadline = \"250us\"\npaths = [\"shortest\"]\n"
    );
    assert_eq!(config(&planned), config(&built(&expected)));
    assert_eq!(planned.streams[1].0, "7");
}

/// Three lines of 1 Gb/s carry preamble, frame and tag; two bridges wait 2 us and 1.5 us.
#[test]
fn streams_of_tsnkit_have_the_latency_of_the_arithmetic() {
    let planned = read(&[PLAN, ("topo.csv", TOPOLOGY), ("task.csv", STREAMS)]);
    let report = sim::World::new(&planned.config).unwrap().run().unwrap();
    let listener = &report.streams[0].listeners[0];
    let expected = Duration::from_ns(3 * 8 * (8 + 1000 + 4) + 2_000 + 1_500 + 100);
    assert_eq!((listener.arrived, listener.latency.longest()), (3, expected));
}

#[test]
fn mistakes_in_tsnkit_files_have_file_and_line() {
    for (topology, streams, expected) in [
        (
            "link,rate\n\"(0, 1)\",1\n",
            STREAMS,
            "topo.csv:1:1: include: expected a CSV file of tsnkit",
        ),
        ("", STREAMS, "topo.csv:1:1: expected a first line"),
        (&TOPOLOGY[..30], STREAMS, "topo.csv:1:1: include: expected a CSV file of tsnkit"),
        (
            &TOPOLOGY.replace("(1, 0)\",4,1,", "(1, 0)\",4,10,"),
            STREAMS,
            "topo.csv:4:3: rate: expected the same value as at topo.csv:2:3",
        ),
        (
            &TOPOLOGY.replace("1,1500,100", "1,1500,50"),
            STREAMS,
            "topo.csv:4:5: propagation: expected the same value as at topo.csv:2:5",
        ),
        (
            &TOPOLOGY.replace("1,1500,0", "1,900,0"),
            STREAMS,
            "topo.csv:5:4: delay: expected the same value as at topo.csv:4:4",
        ),
        (
            &TOPOLOGY.replace("\"(3, 1)\",8,1,2000,0\n", ""),
            STREAMS,
            "topo.csv:5:1: link: the opposite direction has no row",
        ),
        (
            &TOPOLOGY.replace("\"(1, 0)\",4,1,1500,100\n", ""),
            STREAMS,
            "topo.csv:2:1: link: the opposite direction has no row",
        ),
        (
            &TOPOLOGY.replace("(0, 2)", "0-2"),
            STREAMS,
            "topo.csv:3:1: link: expected two nodes such as (0, 1); found '0-2'",
        ),
        (&TOPOLOGY.replace(",10,", ",3,"), STREAMS, "topo.csv:6:3: rate: expected"),
        (
            &TOPOLOGY.replacen(",8,", ",7,", 1),
            STREAMS,
            "topo.csv:3:2: queues: expected the same value as at topo.csv:2:2",
        ),
        (&TOPOLOGY.replace(",4,", ",9,"), STREAMS, "topo.csv:4:2: queues: expected a whole number"),
        (TOPOLOGY, &STREAMS.replace("[3]", "3"), "task.csv:2:3: dst: expected a list such as [3]"),
        (TOPOLOGY, &STREAMS.replace("[3]", "[9]"), "task.csv:2:3: unknown host or node '9'"),
        (TOPOLOGY, &STREAMS.replace(",1000,", ",-4,"), "task.csv:2:4: length: expected"),
        (TOPOLOGY, &STREAMS.replace(",400000,", ",x,"), "task.csv:2:5: interval: expected"),
        (TOPOLOGY, &STREAMS.replace("\n7,", "\n0,"), "task.csv:3:1: '0' is already the name"),
    ] {
        let found = refused(&[PLAN, ("topo.csv", topology), ("task.csv", streams)]);
        assert!(found.starts_with(expected), "{found}");
    }
}

/// A plan that sends from the first to the last station of a network.
fn graph_plan(from: &str, to: &str) -> String {
    format!(
        "runtime = \"1ms\"\ninclude = \"net.graphml\"\n[traffic.t]\nfrom = '{from}'\nto = '{to}'\n\
         interval = \"1ms\"\n"
    )
}

#[test]
fn graphs_become_tables() {
    let graph = r#"<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="type"/>
  <key id="d1" for="edge" attr.name="bandwidth"><default>1000000000</default></key>
  <key id="d2" for="edge" attr.name="delay"/>
  <key id="d3" for="all" attr.name="queues"/>
  <key id="d4" for="node" attr.name="express"/>
  <key id="d5" for="node" attr.name="ports"/>
  <key id="d6" for="node" attr.name="delay"/>
  <graph edgedefault="undirected">
    <node id="{a}"><data key="d6">5us</data><data key="d5">1</data></node>
    <node id="b"><data key="d0">Switch</data><data key="d3">8</data></node>
    <node id="c"><data key="d6">1us</data><data key="d4">[7]</data></node>
    <node id="d"/>
    <node id="e"><data key="d0">host</data></node>
    <edge source="{a}" target="b"><data key="d2">50ns</data></edge>
    <edge source="b" target="c"><data key="d1">10G</data></edge>
    <edge source="c" target="b"/>
    <edge source="c" target="d"/>
    <edge source="c" target="e"/>
    <edge source="b" target="e"/>
  </graph>
</graphml>
"#;
    let expected = "runtime = \"1ms\"\n[nodes.'{{a}']\n[nodes.d]\n[nodes.e]\n\
        [bridges.b]\nqueues = 8\n[bridges.c]\ndelay = \"1us\"\nexpress = [7]\n[cables]\n\
        1 = { a = '{{a}', b = \"b\", propagation = \"50ns\" }\n\
        2 = { a = \"b\", b = \"c\", rate = \"10G\" }\n3 = { a = \"c\", b = \"b\" }\n\
        4 = { a = \"c\", b = \"d\" }\n5 = { a = \"c\", b = \"e\" }\n6 = { a = \"b\", b = \"e\" }\n\
        [traffic.t]\nfrom = '{{a}'\nto = \"d\"\ninterval = \"1ms\"\n";
    let planned = read(&[("plan.toml", &graph_plan("{{a}", "d")), ("net.graphml", graph)]);
    assert_eq!(config(&planned), config(&built(expected)));
    assert_eq!(
        (&planned.stations[..], planned.bridges.len()),
        (&["{a}", "d", "e"].map(String::from)[..], 2)
    );
}

/// Builds a directed graph with these edges, from line 8 on; their attributes are `r` (rate) and
/// `w` (bandwidth).
fn directed(edges: &str) -> Result<Planned, String> {
    let graph = format!(
        "<graphml>\n<key id=\"r\" for=\"edge\" attr.name=\"rate\"/>\n\
         <key id=\"w\" for=\"edge\" attr.name=\"bandwidth\"/>\n\
         <key id=\"k\" for=\"node\" attr.name=\"kind\"/>\n<graph edgedefault=\"directed\">\n\
         <node id=\"a\"><data key=\"k\">end</data></node><node id=\"b\"/>\n\
         <node id=\"c\"><data key=\"k\">end</data></node>\n{edges}</graph></graphml>\n"
    );
    let plan = graph_plan("a", "c");
    let files = [("plan.toml", &*plan), ("net.graphml", &*graph)];
    let (_folder, file) = folder(&files);
    match Plan::read(&file).map(|plan| plan.build()) {
        Ok(Ok(planned)) => Ok(planned),
        _ => Err(refused(&files)),
    }
}

const EDGES: &str = "<edge source=\"a\" target=\"b\"><data key=\"r\">1G</data></edge>\n\
    <edge source=\"b\" target=\"c\"/>\n\
    <edge source=\"b\" target=\"a\"><data key=\"r\">1G</data></edge>\n\
    <edge source=\"c\" target=\"b\"><data key=\"r\">10G</data></edge>\n";

#[test]
fn two_directions_are_one_cable() {
    let network = directed(EDGES).unwrap().config.network;
    let rates = network.cables.iter().map(|cable| network.port(cable.a).rate.name());
    assert_eq!(rates.collect::<Vec<_>>(), ["1G", "10G"]);
    let undirected = EDGES.replace("<edge", "<edge directed=\"false\"");
    let parallel = directed(&format!("{undirected}{undirected}")).unwrap();
    assert_eq!(parallel.config.network.cables.len(), 8);
}

#[test]
fn mistakes_in_graphs_have_file_and_line() {
    for (edges, expected) in [
        (
            EDGES.replacen("1G", "10G", 1),
            "net.graphml:10:29: rate: expected the same value as at net.graphml:8:29",
        ),
        (EDGES.replace("1G", "1Q"), "net.graphml:8:29: rate: expected"),
        (
            EDGES.replacen("1G</data>", "1G</data><data key=\"w\">2G</data>", 1),
            "net.graphml:8:52: rate: expected the same value as at net.graphml:8:29",
        ),
        (EDGES.replace("target=\"c\"", "target=\"x\""), "net.graphml:9:1: unknown node 'x'"),
        (EDGES.replace("target=\"c\"", ""), "net.graphml:9:1: the attribute 'target' is missing"),
        (format!("{EDGES}<node id=\"a\"/>"), "net.graphml:12:1: two nodes have the id 'a'"),
        (format!("{EDGES}<hyperedge/>"), "net.graphml:12:1: hyperedges are not supported"),
        (format!("{EDGES}<edge"), "net.graphml:12:6: "),
        (
            format!("{EDGES}<node id=\"d\"><data key=\"k\">brigde</data></node>"),
            "net.graphml:12:14: unknown kind of a node 'brigde'; did you mean 'bridge'?",
        ),
        (format!("{EDGES}<node id=\"d\"/>"), "net.graphml:12:1: no cable leads to 'd'"),
    ] {
        let found = directed(&edges).unwrap_err();
        assert!(found.starts_with(expected), "{found}");
    }
}
