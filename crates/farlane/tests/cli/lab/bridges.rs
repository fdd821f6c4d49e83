//! Results of each bridge of this kernel, and the files that `--keep` writes.

use super::{GATES, alone, gates, lab, nothing_is_left, sh};
use crate::support::cannot;
use crate::support::parquet::rows;
use crate::support::program::{farlane, one_line, page, parsed, scratch, succeeds, text};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

fn segment<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["segments"].as_array().unwrap();
    all.iter()
        .find(|segment| segment["segment"] == name)
        .unwrap_or_else(|| panic!("no {name}: {document}"))
}

/// Returns whether the lab refused a bridge because this process may not load XDP programs, as in a
/// user namespace.
fn may_not_redirect(bridge: &Value) -> bool {
    bridge["why"].as_str().is_some_and(|why| why.contains("CAP_BPF"))
}

#[test]
fn each_passes_every_frame_with_its_tag_there_and_back() {
    let name = "cli::lab::bridges::each_passes_every_frame_with_its_tag_there_and_back";
    alone(name, || {
        let folder = scratch("lab-bridges");
        let html = text(&folder.join("lab.html"));
        let keep = text(&folder.join("kept"));
        let all = "linux,macvtap,xdp-generic";
        let output =
            lab(&["--bridge", all, "--count", "60", "--json", "--html", &html, "--keep", &keep]);
        let document = parsed(std::str::from_utf8(&output.stdout).unwrap());
        nothing_is_left();
        let page = page(html);
        let bridges = document["bridges"].as_array().unwrap();
        assert_eq!((&document["ended"], bridges.len()), (&"done".into(), 3));
        for result in bridges {
            if may_not_redirect(result) {
                cannot(name, &result["why"]);
                continue;
            }
            let bridge = result["bridge"].as_str().unwrap();
            assert_eq!([&result["outcome"], &result["why"]], ["passes", ""], "{bridge}");
            let run = &result["runs"][0];
            assert_eq!([&run["name"], &result["gate"]], [&json!("idle"), &Value::Null]);
            for end in ["talk", "listen"] {
                let report = &run[end];
                let counts = ["sent", "received", "lost"].map(|key| &report["counts"][key]);
                assert_eq!(counts, [60, 60, 0], "{bridge}: {end}");
                let tags = json!([{ "priority": 3, "vlan": 5, "n": 60 }]);
                assert_eq!(report["tags"], tags, "{bridge}: {end}");
                assert_eq!(segment(report, "end to end")["whole"]["n"], 60);
                let file = format!("{keep}/{bridge}-idle-{end}");
                let kept = std::fs::read_to_string(format!("{file}.json")).unwrap();
                assert_eq!(parsed(&kept), *report, "{file}");
                let (rows, about) = rows(format!("{file}.parquet").as_ref());
                let label = format!("{bridge}, idle");
                assert_eq!((rows.len(), &about["farlane.label"]), (60, &label), "{file}");
                assert_eq!(report["label"], label);
            }
            assert_eq!(segment(&run["talk"], "round trip")["whole"]["n"], 60);
            let (twin, file) = (&run["twin"], format!("{keep}/{bridge}-idle"));
            assert_eq!([&result["calibration"]["why"], &twin["why"]], ["", ""], "{bridge}");
            assert_eq!(twin["simulated"]["counts"]["received"], 60, "{bridge}");
            let plan = format!("{file}-twin.toml");
            assert_eq!(std::fs::read_to_string(&plan).unwrap(), twin["plan"]);
            succeeds(&["sim", &plan]);
            let worlds = ["talk", "twin"].map(|world| format!("{file}-{world}.json"));
            let both = succeeds(&["latency", "compare", &worlds[0], &worlds[1]]);
            assert!(both.contains(&format!("{bridge}, idle, simulated")), "{both}");
            assert!(page.contains(&format!("<title>{bridge}, idle, simulated</title>")));
            assert!(run["received_bits_per_second"].as_u64() > Some(0), "{run}");
            assert!(page.contains(&format!("<title>{bridge}, idle, median</title>")), "{bridge}");
        }
        let passed = bridges.iter().filter(|result| result["outcome"] == "passes").count();
        assert_eq!(output.status.success(), passed == 3);
        assert_eq!(page.matches("aria-label=\"round trip, runs along time\"").count(), 1);
    });
}

/// The clock offset is neither part of the bridge's latency nor of the network's latency.
#[test]
fn clock_offset_of_one_end_is_reported_not_added() {
    alone("cli::lab::bridges::clock_offset_of_one_end_is_reported_not_added", || {
        let html = text(&scratch("lab-offset").join("lab.html"));
        let wrong = ["--count", "50", "--json", "--listen", "--stamp-offset 700ms"];
        let page_too = ["--html", &html];
        let document = parsed(&succeeds(&[&["latency", "lab"], &wrong[..], &page_too].concat()));
        assert!(page(html).contains("<title>linux, idle, median</title>"), "one run too");
        let [talk, listen] = ["talk", "listen"].map(|end| &document["bridges"][0]["runs"][0][end]);
        let kinds = talk["findings"].as_array().unwrap().iter().map(|finding| &finding["kind"]);
        assert!(kinds.into_iter().any(|kind| kind == "clock-offset"), "{}", talk["findings"]);
        // Round trips are shorter than the offset of 700 ms.
        assert!(talk["clock"]["proven_ns"].as_i64() > Some(0), "{}", talk["clock"]["proven_ns"]);
        let caution =
            |report: &Value, name| segment(report, name)["caution"].as_str().unwrap().to_owned();
        assert!(caution(talk, "sent to kernel").contains("the clocks differ"));
        assert_eq!(caution(talk, "round trip"), "");
        assert!(caution(listen, "sent to kernel").contains("clock error, which is unknown"));
    });
}

#[test]
fn gates_of_a_kernel_without_them_are_refused_with_its_reason() {
    let name = "cli::lab::bridges::gates_of_a_kernel_without_them_are_refused_with_its_reason";
    alone(name, || {
        let probe = sh("tc qdisc replace dev lo parent root handle 100 taprio num_tc 1 2>&1; true");
        let Some(why) = probe.lines().find(|line| line.contains("kind is unknown")) else {
            return cannot(name, "this kernel has taprio");
        };
        let output = lab(&["--gate", &gates("lab-refused", GATES), "--count", "20"]);
        assert_eq!(output.status.code(), Some(1));
        let error = one_line(&output);
        let line =
            "farlane: linux: refused: `ip netns exec farlane-bridge tc qdisc replace dev out";
        assert!(error.starts_with(line) && error.ends_with(why), "{error}");
        nothing_is_left();
    });
}

/// Returns a folder with only a few programs, as a value for PATH.
fn few_programs() -> PathBuf {
    let folder = scratch("lab-programs");
    for program in ["sh", "ip", "cat"] {
        let path = sh(&format!("command -v {program}"));
        symlink(path.trim(), folder.join(program)).unwrap();
    }
    std::fs::write(folder.join("ethtool"), "#!/bin/sh\nexit 1\n").unwrap();
    let executable = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.join("ethtool"), executable).unwrap();
    folder
}

#[test]
fn bridge_all_skips_unavailable_kinds_but_named_kind_fails() {
    let name = "cli::lab::bridges::\
                bridge_all_skips_unavailable_kinds_but_named_kind_fails";
    alone(name, || {
        let path = few_programs();
        let lab = |bridge: &str| {
            let options = ["latency", "lab", "--bridge", bridge, "--count", "10", "--json"];
            let output = farlane(&options).env("PATH", &path).output().unwrap();
            nothing_is_left();
            output
        };
        let output = lab("all");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document = parsed(std::str::from_utf8(&output.stdout).unwrap());
        let outcome_of = |bridge: &str| {
            let mut all = document["bridges"].as_array().unwrap().iter();
            let found = all.find(|result| result["bridge"] == bridge).unwrap();
            (found["outcome"].as_str().unwrap(), found["why"].as_str().unwrap())
        };
        assert_eq!(outcome_of("linux"), ("passes", ""));
        assert_eq!(outcome_of("xdp").0, "refused", "ethtool fails");
        let missing = "ovsdb-tool is missing: install the package openvswitch-switch";
        for bridge in ["ovs", "ovs-user", "ovs-afxdp"] {
            assert_eq!(outcome_of(bridge), ("refused", missing));
        }
        let (outcome, vfio) = outcome_of("vfio");
        assert!(outcome == "refused" && vfio.contains("vfio needs "), "{vfio}");
        let ovs = lab("ovs");
        assert_eq!(ovs.status.code(), Some(1));
        assert_eq!(one_line(&ovs), format!("farlane: ovs: refused: {missing}"));
    });
}
