//! Runs scripts in a shell whose `tc`, `ethtool`, `bridge` and `ip` only note their arguments, and
//! answers for the kernel as it would after them. The guest test has the real programs.

use super::{assert_same_ports, back, file, planned};
use farlane_devices::import::File;
use farlane_devices::node::Node;
use farlane_devices::script::{Options, script};
use serde_json::{Map, Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const NOTE: &str = "#!/bin/sh\necho \"${0##*/} $*\" >>\"$NOTES\"\n";

/// Runs a script; returns the commands that it gave, one per line.
#[allow(clippy::disallowed_methods, reason = "a shell reads files")]
fn run(folder: &Path, text: &str, arguments: &[&str]) -> Vec<String> {
    let notes = folder.join("notes");
    fs::write(&notes, "").unwrap();
    for name in ["tc", "ethtool", "bridge", "ip"] {
        let path = folder.join(name);
        fs::write(&path, NOTE).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = folder.join("node.sh");
    fs::write(&script, text).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let mut shell = Command::new("/bin/sh");
    shell.arg(script).args(arguments).env("PATH", path).env("NOTES", &notes);
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(notes).unwrap().lines().map(str::to_owned).collect()
}

/// The words after a word, up to one that no number or letter of preemption begins.
fn after<'a>(words: &[&'a str], name: &str) -> Vec<&'a str> {
    let from = words.iter().position(|word| *word == name).map_or(words.len(), |at| at + 1);
    let is_value = |word: &&&str| {
        word.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-')
            || ["E", "P"].contains(word)
    };
    words[from..].iter().take_while(is_value).copied().collect()
}

fn numbers(words: &[&str], name: &str) -> Vec<i64> {
    after(words, name).into_iter().map(|word| word.parse().unwrap()).collect()
}

fn number(words: &[&str], name: &str) -> Value {
    numbers(words, name).first().map_or(Value::Null, |number| json!(number))
}

/// Returns a queueing discipline as `tc -j qdisc show` prints it.
fn qdisc(words: &[&str]) -> Value {
    let kinds = ["taprio", "mqprio", "cbs", "etf"];
    let kind = *words.iter().find(|word| kinds.contains(*word)).unwrap();
    let queues = || {
        let ranges = after(words, "queues").into_iter().map(|range| range.split_once('@').unwrap());
        ranges.map(|(count, offset)| (count.parse().unwrap(), offset.parse().unwrap()))
    };
    let options = match kind {
        "taprio" => {
            let list = tsn::taprio::parse(&words.join(" ")).unwrap();
            let entry = |entry: &tsn::Entry| {
                json!({"cmd": entry.operation.letter().to_string(), "gatemask": format!("{:#x}", entry.states.0),
                    "interval": entry.interval.as_ns()})
            };
            let entries: Vec<Value> = list.entries().iter().map(entry).collect();
            let queue = |(count, offset): (u64, u64)| json!({"offset": offset, "count": count});
            json!({"tc": number(words, "num_tc"), "map": numbers(words, "map"),
                "queues": queues().map(queue).collect::<Vec<_>>(), "clockid": "TAI",
                "base_time": list.base_time().as_ns(), "cycle_time": list.cycle_time().as_ns(),
                "cycle_time_extension": 0, "schedule": entries, "max-sdu": numbers(words, "max-sdu"),
                "fp": after(words, "fp")})
        }
        "mqprio" => {
            let queue = |(count, offset): (u64, u64)| json!([offset, offset + count - 1]);
            json!({"tc": number(words, "num_tc"), "map": numbers(words, "map"), "mode": "dcb",
                "queues": queues().map(queue).collect::<Vec<_>>(), "fp": after(words, "fp")})
        }
        "cbs" => json!({"idleslope": number(words, "idleslope"), "offload": 0}),
        _ => json!({}),
    };
    let mut qdisc = json!({"kind": kind, "handle": "100:", "dev": words[4], "options": options});
    match words[6] {
        "root" => qdisc["root"] = true.into(),
        parent => qdisc["parent"] = parent.into(),
    }
    qdisc
}

/// Returns a filter as `tc -j filter show` prints it.
fn filter(words: &[&str]) -> Value {
    let text = words.join(" ");
    let mut parts = text.split(" action ");
    let keys = parts.next().unwrap().split_once(" flower ").unwrap().1;
    let keys: Vec<&str> = keys.split(' ').collect();
    let value = |text: &str| text.parse::<u64>().map_or_else(|_| json!(text), |value| json!(value));
    let keys = keys.chunks(2).map(|pair| (pair[0].to_owned(), value(pair[1])));
    let actions = parts.map(|part| {
        let words: Vec<&str> = part.split(' ').collect();
        match words[0] {
            "skbedit" => json!({"kind": "skbedit", "priority": format!(":{}", words[2])}),
            "gate" => {
                let mut entries = part.split("sched-entry ").skip(1).map(|entry| {
                    let words: Vec<&str> = entry.split(' ').collect();
                    let [interval, ipv, octets] = [1, 2, 3].map(|at| words[at].parse::<i64>().unwrap());
                    json!({"gate_state": words[0], "interval": interval, "ipv": ipv, "max_octets": octets})
                });
                let all: Vec<Value> = entries.by_ref().collect();
                let sum: i64 = all.iter().map(|entry| entry["interval"].as_i64().unwrap()).sum();
                let cycle = number(&words, "cycle-time");
                json!({"base_time": number(&words, "base-time"), "schedule": all,
                    "cycle_time": if cycle.is_null() { json!(sum) } else { cycle }})
            }
            kind => json!({"kind": kind}),
        }
    });
    json!({"protocol": "802.1Q", "pref": 1, "kind": "flower",
        "options": {"keys": keys.collect::<Map<_, _>>(), "actions": actions.collect::<Vec<_>>()}})
}

/// The answers of the kernel after commands.
fn answers(commands: &[String]) -> Vec<File> {
    let (mut qdiscs, mut layers) = (Vec::new(), Vec::new());
    let mut filters: Map<String, Value> = Map::new();
    let mut vlans: Map<String, Value> = Map::new();
    for words in commands.iter().map(|line| line.split(' ').collect::<Vec<_>>()) {
        match &words[..] {
            ["tc", "qdisc", "replace", _, _, "parent", ..] => qdiscs.push(qdisc(&words)),
            ["tc", "filter", "add", _, device, ..] => {
                let own = filters.entry(*device).or_insert(json!([]));
                own.as_array_mut().unwrap().push(filter(&words));
            }
            ["ethtool", "--set-mm", device, "pmac-enabled", "on", ..] => layers.push(json!({
                "ifname": device, "pmac-enabled": true, "tx-enabled": true,
                "tx-min-frag-size": number(&words, "tx-min-frag-size"),
                "verify-enabled": words.join(" ").contains("verify-enabled on"),
                "verify-time": number(&words, "verify-time")})),
            ["bridge", "vlan", "add", _, device, "vid", vlan, flags @ ..]
                if vlans.contains_key("filters") =>
            {
                let (first, last) = vlan.split_once('-').unwrap_or((vlan, vlan));
                let own = vlans.entry(*device).or_insert(json!([]));
                let flags =
                    if flags.is_empty() { json!([]) } else { json!(["PVID", "Egress Untagged"]) };
                own.as_array_mut().unwrap().push(json!({"vlan": first.parse::<u16>().unwrap(),
                    "vlanEnd": last.parse::<u16>().unwrap(), "flags": flags}));
            }
            ["ip", "link", "set", .., "vlan_filtering", "1"] => {
                vlans.insert("filters".to_owned(), json!([]));
            }
            _ => {}
        }
    }
    vlans.remove("filters");
    let vlans = vlans.into_iter().map(|(name, own)| json!({"ifname": name, "vlans": own}));
    let whole = [json!(qdiscs), json!(layers), vlans.collect()];
    let mut files: Vec<File> =
        whole.into_iter().map(|value: Value| file("kernel", value.to_string())).collect();
    files.extend(filters.into_iter().map(|(device, value)| File {
        interface: Some(device),
        ..file("filters", value.to_string())
    }));
    files
}

/// Checks that the kernel's answers after the scripts of a plan give its ports.
pub fn assert_back(planned: &plan::Planned, context: &str) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { offload: true, ..Options::default() };
    let (back, _) = back(planned, |node: &Node| {
        let text = script(node, context, &options).text;
        let commands = run(folder.path(), &text, &[]);
        answers(&commands)
    });
    assert_same_ports(planned, &back, context);
}

#[test]
fn scripts_of_every_plan_are_read_back_from_the_kernel() {
    for (name, settings) in super::PLANS {
        // No program of Linux has a shaper ats.
        if settings != ["variant=ats"] && name != "tsn-network" {
            assert_back(&planned(name, settings), name);
        }
    }
    let strict = [
        "bridges.front.ports.rear.shapers=[\"5 video\"]",
        "bridges.front.ports.rear.add_frag_size=2",
    ];
    assert_back(&planned("tsn-network", &strict), "tsn-network");
}

#[test]
fn a_script_with_odd_names_only_sets_interfaces() {
    let text = "runtime = \"1ms\"\n[nodes.\"a b'$(exit 7)\\nx\"]\n[nodes.b]\n[bridges.\"c;d\"]\n\
                [traffic.t]\nfrom = \"b\"\nto = \"a b'$(exit 7)\\nx\"\ninterval = \"1ms\"\n";
    let planned = plan::Plan::parse("odd.toml", text).unwrap().build().unwrap();
    let node = super::super::node(&planned, "c;d");
    let text = script(&node, "odd\nplan.toml", &Options::default()).text;
    let commands = run(tempfile::tempdir().unwrap().path(), &text, &[]);
    let first = "tc qdisc del dev a b'$(exit 7)\n";
    assert!(commands.join("\n").starts_with(first), "{commands:?}");
    assert!(commands.contains(&"x clsact".to_owned()), "{commands:?}");
}
