//! Files of `farlane tsn export`: the real programs take the scripts, `farlane tsn import` reads the
//! kernel's answers back, the gates measured are those of the plan, and yanglint takes the data.

use devices::node::{Node, Port};
use devices::script::Options;
use plan::{Plan, Planned};
use std::process::Command;
use tsn::psfp;

use super::gates::kept;
use crate::stock_guest::guest::Guest;
use crate::stock_guest::lab::command;
use crate::stock_guest::script::script;
use crate::support::folder;
use crate::support::tshark::{fetched, repository};

/// Two bridges with what the kernel can do in software, and stations that send over them.
const PLAN: &str = r#"
runtime = "1ms"
[link]
rate = "1G"
vlan = 10
[clocks]
[nodes.talker]
stamping = "software"
[nodes.other]
[nodes.listener]
[bridges.left]
vlans = [10, 20]
pvid = 20
[bridges.left.ports.right]
schedule = "windows"
shapers = ["5 video", "2 short"]
[bridges.right]
[bridges.right.ports.listener]
class_of_pcp = [0, 0, 1, 2, 3, 3, 4, 5]
shapers = ["1 turns", "2 turns", "3 video"]
[bridges.right.ports.left]
shapers = ["5 video"]
[schedules.windows]
base = "3ms"
entries = ["S f7 10ms", "S 08 9ms"]
cycle = "20ms"
[shapers.video]
algorithm = "cbs"
idle_slope = "20Mb/s"
[shapers.short]
max_sdu = "500B"
[shapers.turns]
algorithm = "cqf"
cycle = "10ms"
[traffic.probe]
from = "talker"
to = "listener"
interval = "20ms"
start = "13ms"
priority = 3
[traffic.group]
from = "other"
to = ["listener", "talker"]
interval = "7ms"
[streams.probe]
traffic = "probe"
police = ["left limits"]
[filters.limits]
max_sdu = "1000B"
entries = ["open 10ms ipv=3 octets=3000B", "closed 10ms"]
cycle = "25ms"
rate = "10Mb/s"
burst = "4KiB"
[cables.a]
a = "talker"
b = "left"
[cables.b]
a = "other"
b = "left"
[cables.c]
a = "left"
b = "right"
[cables.d]
a = "right"
b = "listener"
"#;

fn planned(text: &str) -> Planned {
    Plan::parse("plan.toml", text).and_then(|plan| plan.build()).unwrap()
}

/// Runs the scripts of nodes of a plan in a guest, each twice and back, and compares what
/// `farlane tsn import` makes of the kernel's answers with the ports of the plan.
fn set_up(guest: &mut Guest, text: &str, names: &[&str]) {
    let planned = planned(text);
    for node in Node::all(&planned).iter().filter(|node| names.contains(&&*node.name)) {
        let kind = if node.is_bridge() { "bridge" } else { "node" };
        let run = script!("devices").argument(text).argument(kind).argument(&node.name);
        let peers = node.ports.iter().map(|port| port.peer.as_str());
        let output = guest.run(&peers.fold(run, |run, peer| run.argument(peer)));
        println!("{}", output.text);
        let part = output.between("part").expect("a part of a plan");
        let tables: Vec<&str> = part.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(tables.join("\n").trim(), expected(node, kind).trim(), "{}", node.name);
    }
}

/// The part of a plan that a node's ports and filters make, as far as `tc -j` prints them.
fn expected(node: &Node, kind: &str) -> String {
    let own = |port: &Port| (port.peer.clone(), port.config.clone());
    let mut ports: Vec<_> = node.ports.iter().map(own).collect();
    ports.sort_by(|(a, _), (b, _)| a.cmp(b));
    let path =
        |peer| vec![if kind == "bridge" { "bridges" } else { "nodes" }, &node.name, "ports", peer];
    let ports: Vec<_> = ports.iter().map(|(peer, port)| (path(peer.as_str()), port)).collect();
    let filters = node.streams.iter().filter_map(|stream| stream.filter.as_ref()?.gate.clone());
    let gates: Vec<_> =
        filters.map(|gate| psfp::Config { gate: Some(gate), ..psfp::Config::default() }).collect();
    let filters = gates.iter().zip(1..).map(|(own, at)| (format!("{}-{at}", node.name), own));
    plan::write_ports(&ports, &filters.collect::<Vec<_>>())
}

#[test]
fn exported_scripts_set_up_interfaces_and_are_read_back() {
    let mut guest = Guest::builder("lab-devices/guest").lab().start();
    set_up(&mut guest, PLAN, &["talker", "other", "left", "right"]);
    guest.power_off();
}

#[test]
fn gates_of_an_exported_script_are_those_of_the_plan() {
    // The shaper stops the gates, until the script starts them again.
    let text = "runtime = \"1ms\"\n[nodes.talker]\nschedule = \"windows\"\nshapers = [\"5 video\"]\n\
                [nodes.listener]\n[schedules.windows]\nentries = [\"S f7 10ms\", \"S 08 10ms\"]\n\
                [shapers.video]\nalgorithm = \"cbs\"\nidle_slope = \"20Mb/s\"\n[traffic.t]\n\
                from = \"talker\"\nto = \"listener\"\ninterval = \"20ms\"\n";
    let node = Node::all(&planned(text)).swap_remove(0);
    let script = devices::script::script(&node, "plan.toml", &Options::default());
    assert_eq!(script.notes, Vec::<String>::new());
    let mut guest = Guest::builder("lab-devices-gates/guest").lab().start();
    guest.run(&script!("network"));
    let text = script.text.replace('\'', r"'\''");
    guest.run(&command(&format!("printf '%s' '{text}' >/tmp/talker.sh")));
    guest.run(&command("PORT_listener=near sh /tmp/talker.sh"));
    assert!(kept(&mut guest), "the gates");
    guest.run(&command("PORT_listener=near sh /tmp/talker.sh undo"));
    guest.power_off();
}

#[test]
fn yanglint_accepts_the_data_of_every_plan() {
    let cache = fetched(&["yang/fetch"]);
    let modules = repository().join("crates/tools/devices/tests/yang/modules");
    let all = |end: &str, folder: &std::path::Path| {
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|own| own == end)).collect();
        files.sort();
        files
    };
    for plan in all("toml", &repository().join("plans")) {
        let planned = Plan::read(&plan).unwrap().build().unwrap();
        let folder = folder::empty("yang", plan.file_stem().unwrap().to_str().unwrap());
        let exported = devices::export(&planned, "plan.toml", &Options::default());
        let data = exported.files.iter().filter(|(name, _)| name.ends_with(".json"));
        // A large network has many nodes of a kind.
        for (name, text) in data.take(40) {
            std::fs::write(folder.join(name), text).unwrap();
        }
        for data in all("json", &folder) {
            let mut lint = Command::new(cache.join("yanglint"));
            lint.args(["-t", "config", "-p"]).arg(&modules).args(all("yang", &modules)).arg(&data);
            let output = lint.output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {errors}", data.display());
        }
    }
}
