//! Streams with several listeners and with paths of their own.

use super::*;
use sim::ethernet::Mac;
use sim::ethernet::traffic::StreamId;
use sim::network::mac;

/// Four bridges in a ring, a node `nN` at each bridge `bN`, and a stream from `n0` with these keys,
/// from line 28 on.
fn ring(keys: &str) -> String {
    let mut text = "runtime = \"10ms\"\n".to_owned();
    for at in 0..4 {
        let next = (at + 1) % 4;
        text += &format!("[nodes.n{at}]\n[bridges.b{at}]\n");
        text += &format!("[cables.c{at}]\na = \"n{at}\"\nb = \"b{at}\"\n");
        text += &format!("[cables.r{at}]\na = \"b{at}\"\nb = \"b{next}\"\n");
    }
    format!("{text}[traffic.t]\nfrom = \"n0\"\ninterval = \"1ms\"\nlength = \"100B\"\n{keys}")
}

/// Line of the first of the keys of [`ring`].
const LINE: usize = 38;

#[test]
fn listeners_have_a_group_address_and_their_own_requirements() {
    let planned = built(&ring(
        "to = [\"n2\", \"n1\"]\ndeadline = \"1ms\"\ndeadlines = [\"n1 10us\"]\nloss = \"0%\"\n",
    ));
    let id = StreamId::new(0, 0);
    assert_eq!(planned.config.network.destination(id), Mac::group(id));
    let names: Vec<_> = planned.requirements.iter().map(|one| one.name.as_str()).collect();
    let wanted = ["stream t at n2", "stream t at n2 loss", "stream t at n1", "stream t at n1 loss"];
    assert_eq!(names, wanted);
    let report = sim::World::new(&planned.config).unwrap().run().unwrap();
    let [far, near] = &report.streams[0].listeners[..] else { panic!("two") };
    assert_eq!((far.station, near.station), (2, 1));
    assert_eq!((far.arrived, near.arrived, far.late), (10, 10, 0));
    // Two bridges of 2 us and three lines.
    assert!(near.late == 0 && near.latency.longest() < far.latency.longest());
    // The frames of both listeners share the first two lines.
    let sent: Vec<_> = report.queues.iter().map(|queue| queue.offered).collect();
    assert_eq!(sent.iter().sum::<u64>(), 10 * (2 + 2 + 1), "{sent:?}");
}

#[test]
fn one_listener_on_the_tree_is_addressed_itself_and_all_are_a_broadcast() {
    let destination = |keys: &str| {
        let planned = built(&ring(keys));
        planned.config.network.destination(StreamId::new(0, 0))
    };
    assert_eq!(destination("to = \"n3\"\n"), mac(3));
    assert_eq!(destination("to = \"all\"\n"), Mac::BROADCAST);
    let planned = built(&ring("to = \"all\"\n"));
    let report = sim::World::new(&planned.config).unwrap().run().unwrap();
    let arrived: Vec<_> = report.streams[0].listeners.iter().map(|one| one.arrived).collect();
    assert_eq!(arrived, [10, 10, 10]);
}

/// The tree of the ring lacks the cable from `b3` to `b0`.
#[test]
fn shortest_and_given_paths_use_cables_that_the_tree_lacks() {
    let longest = |keys: &str| {
        let planned = built(&ring(keys));
        let report = sim::World::new(&planned.config).unwrap().run().unwrap();
        assert_eq!(report.streams[0].arrived(), 10, "{keys}");
        report.streams[0].latency().longest()
    };
    let tree = longest("to = \"n3\"\n");
    let shortest = longest("to = \"n3\"\npaths = [\"shortest\"]\n");
    assert_eq!(longest("to = \"n3\"\npaths = [\"b0 > b3\"]\n"), shortest);
    assert_eq!(longest("to = \"n3\"\npaths = [\"b0 > r3 > b3\"]\n"), shortest);
    assert_eq!(longest("to = \"n3\"\npaths = [\"b0 > b1 > b2 > b3\"]\n"), tree);
    assert!(tree > shortest);
}

#[test]
fn disjoint_paths_of_an_identified_stream_survive_a_cut() {
    let text = ring(
        "to = [\"n2\", \"n3\"]\n[streams.s]\ntraffic = \"t\"\npaths = [\"disjoint\"]\n\
         eliminate = [\"n2\", \"n3\"]\nhistory = 64\n",
    );
    let cut = text.replace("b = \"b1\"\n[nodes.n1]", "b = \"b1\"\ncuts = [\"5ms..\"]\n[nodes.n1]");
    assert_ne!(cut, text);
    for text in [text, cut] {
        let planned = built(&text);
        assert_eq!(planned.config.network.streams[0].paths.len(), 4);
        let report = sim::World::new(&planned.config).unwrap().run().unwrap();
        for own in &report.streams[0].listeners {
            assert_eq!((own.arrived, own.lost, own.duplicates), (10, 0, 0), "{own:?}");
        }
    }
}

#[test]
fn listeners_and_paths_that_cannot_be_are_errors() {
    for (keys, line, column, error) in [
        ("", -4, 10, "[traffic.t] needs to: a host or node, or several"),
        ("to = [\"n1\", \"n0\"]\n", 0, 13, "'to' names the sender: expected another station"),
        ("to = [\"n1\", \"n1\"]\n", 0, 13, "to: 'n1' is a listener already"),
        ("to = \"n1\"\ndeadlines = [\"n2 1ms\"]\n", 1, 14, "deadlines: 'n2' is not in 'to'"),
        (
            "to = [\"n1\", \"n2\"]\npaths = [\"b0 > b1\"]\n",
            1,
            9,
            "paths: \"shortest\", or one path for each of 2 listeners; found 1",
        ),
        ("to = \"n1\"\npaths = [\"b0 > b2\"]\n", 1, 10, "paths: no cable leads from b0 to b2"),
        (
            "to = [\"n1\", \"n2\"]\npaths = [\"b0 > b1\", \"b0 > b3 > b2 > b1\"]\n",
            1,
            21,
            "paths: no cable leads from b1 to n2",
        ),
        (
            "to = [\"n2\", \"n3\"]\npaths = [\"b0 > b3 > b2\", \"b0 > b1 > b2 > b3\"]\n",
            1,
            9,
            "[traffic.t]: its paths reach b2 over two cables; a tree has one",
        ),
    ] {
        let line = LINE as i32 + line;
        fails(&ring(keys), &format!("p.toml:{line}:{column}: {error}"));
    }
    // Paths that part, and a path that continues another one.
    built(&ring("to = [\"n1\", \"n2\"]\npaths = [\"b0 > b1\", \"b0 > b3 > b2\"]\n"));
    built(&ring("to = [\"n2\", \"n3\"]\npaths = [\"b0 > b1 > b2\", \"b0 > b1 > b2 > b3\"]\n"));
}
