//! Files that `farlane sim` writes because of options or of the plan.

use crate::support::program::{fails, is_refused, json, one_line, page, run, scratch, text};
use serde_json::Value;
use std::path::Path;

/// Writes a plan into `folder`; returns the path.
pub fn plan(folder: &Path, name: &str, contents: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, contents).unwrap();
    text(&path)
}

const PLAN: &str = "runs = 2\n[workload]\nrw = \"randrw\"\niodepth = 4\nsize = \"128KiB\"\n";

/// Checks that traces, capture and report can be read again and describe the simulation of
/// `document`.
#[track_caller]
fn tell_of(document: &Value, trace: &Path, pcapng: &Path, report: &Path) {
    let host = &document["hosts"][0];
    let device = text(
        &trace.with_file_name(format!("{}.device0", trace.file_name().unwrap().to_str().unwrap())),
    );
    let trace = json(&["trace", &text(trace), &device, "--json"]);
    let all = trace["commands"].as_array().unwrap();
    let io: Vec<&Value> = all.iter().filter(|command| command["queue"] != 0).collect();
    assert_eq!(io.len() as u64, host["commands"].as_u64().unwrap());
    assert_eq!((&trace["troubles"], &trace["unreadable"]), (&serde_json::json!({}), &0.into()));
    let longest = io.iter().map(|command| command["duration_ns"].as_u64().unwrap()).max().unwrap();
    // The trace leaves out the reads of host memory for the push, and the acknowledgement of the
    // head doorbell.
    let worst = host["root_port_ns"]["max"].as_u64().unwrap();
    assert!(longest <= worst && worst < longest + 1_000, "{longest} {worst}");

    let (interfaces, frames, last) = packets(&std::fs::read(pcapng).unwrap());
    assert_eq!(interfaces, 2, "both ways of the cable");
    let cables = &document["links"].as_array().unwrap()[4..];
    let carried: u64 = cables.iter().map(|link| link["packets"].as_u64().unwrap()).sum();
    assert!(frames > carried, "{frames}: {carried}, and those of the bring-up");
    assert!(last <= document["time_ns"].as_u64().unwrap());

    let page = page(report);
    for part in
        [document["digest"].as_str().unwrap(), "rw = &quot;randrw&quot;", "The longest observed"]
    {
        assert!(page.contains(part), "no {part}");
    }
}

/// Returns the numbers of interfaces and packets, and the time of the last packet in ns.
fn packets(bytes: &[u8]) -> (usize, u64, u64) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut interfaces, mut frames, mut last) = (0, 0, 0, 0);
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length, "a block is framed by its length");
        match word(at) {
            1 => interfaces += 1,
            6 => {
                frames += 1;
                let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
                assert!(time >= last, "in order");
                last = time;
            }
            _ => assert_eq!((word(at), at), (0x0a0d_0d0a, 0)),
        }
        at += length;
    }
    (interfaces, frames, last)
}

#[test]
fn options_override_record_table() {
    let folder = scratch("record");
    let plain = plan(&folder, "plain.toml", PLAN);
    let files = ["a.trace", "a.pcapng", "a.html"].map(|name| folder.join(name));
    let [trace, pcapng, report] = files.each_ref().map(|path| text(path));
    let options = ["--trace", &trace, "--pcapng", &pcapng, "--html", &report];
    let wanted = json(&[&["sim", &plain, "--json"][..], &options].concat());
    tell_of(&wanted, &files[0], &files[1], &files[2]);
    assert_eq!(wanted["digest"], json(&["sim", &plain, "--json"])["digest"], "watching is free");

    let record = "[record]\ntrace = \"b.trace\"\npcapng = \"b.pcapng\"\nreport = \"b.html\"\n";
    let recording = plan(&folder, "record.toml", &format!("{PLAN}{record}"));
    let document = json(&["sim", &recording, "--json"]);
    assert_eq!(document["digest"], wanted["digest"]);
    let own = ["b.trace", "b.pcapng", "b.html"].map(|name| folder.join(name));
    tell_of(&document, &own[0], &own[1], &own[2]);
    assert_eq!(std::fs::read(&own[0]).unwrap(), std::fs::read(&files[0]).unwrap());

    // An option overrides the plan.
    own.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let other = folder.join("c.trace");
    json(&["sim", &recording, "--json", "--trace", &text(&other)]);
    assert!(other.exists() && own[1].exists() && own[2].exists() && !own[0].exists());
    // Sweeps write no files, and print a line about this.
    own[1..].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let swept = run(&["sim", &recording, "--json", "--sweep", "seed=1,2"]);
    assert!(swept.status.success() && one_line(&swept).contains("files of [record]"));
    assert!(own.iter().all(|path| !path.exists()));
}

#[test]
fn files_that_cannot_be_written_are_named() {
    let folder = scratch("unwritten");
    let path = plan(&folder, "p.toml", &format!("{PLAN}[record]\npcapng = \"none/x\"\n"));
    fails(&["sim", &path], &["cannot write", "unwritten/none/x"]);
    let path = plan(&folder, "q.toml", &format!("{PLAN}[record]\ntraec = \"x\"\n"));
    fails(&["sim", &path], &["q.toml:7:1: unknown key of [record] 'traec'"]);
}

/// The report shows the port and the time that `--timeline` selects.
#[test]
fn a_port_is_shown_along_time() {
    let cell = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/industrial-cell.toml");
    let report = scratch("timeline").join("cell.html");
    let page = |port: &str| {
        let runtime = ["--set", "workload.size=64KiB", "--timeline", port];
        run(&[&["sim", cell, "--html", &text(&report)][..], &runtime].concat());
        std::fs::read_to_string(&report).unwrap()
    };
    let chosen = page("b1:controller@1ms");
    let first = chosen.split("class=\"along\"").nth(1).expect("a picture");
    let begins = "<figcaption>b1 port 0 to controller<small>The picture begins at 1 ms; the gate";
    assert!(first.contains(begins), "{}", &first[..300]);
    assert!(page("b1:controller@1s").contains("b1 port 0 to controller: no frame at the chosen"));
    // The port of this station has no gates in the plan.
    let first = page("cabinet");
    assert!(first.contains("<figcaption>cabinet to b3 port 2<small>The longest wait: "));
    let refused =
        |options: &[&str], parts: &[&str]| is_refused(&[&["sim", cell], options].concat(), parts);
    refused(&["--timeline", "b1:controller"], &["--timeline", "--html"]);
    let report = text(&report);
    let named = ["--html", &report, "--timeline"];
    refused(&[&named[..], &["b9"]].concat(), &["--timeline b9", "no port 'b9'", "b1:controller"]);
    refused(&[&named[..], &["b1:b2@soon"]].concat(), &["--timeline b1:b2@soon", "300us"]);
}
