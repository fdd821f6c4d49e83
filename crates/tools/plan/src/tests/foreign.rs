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
    let station = "tx_delay = \"0ns\"\nrx_delay = \"0ns\"\n";
    let expected = format!(
        "runtime = \"1ms\"\n[nodes.2]\n{station}[nodes.3]\n{station}[nodes.4]\n{station}\
         [bridges.0]\ndelay = \"2us\"\n[bridges.1]\ndelay = \"1.5us\"\nqueues = 4\n\
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
