//! `farlane sim --sweep --points`: a sweep in a folder, by several processes and engines.

use crate::cli::sim_tables::with_small_files;
use crate::support::program::{fails, node, plan_of, run, scratch, succeeds, text};
use crate::support::wait_until;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A sweep with random numbers: six points of two seeds.
const SWEEP: [&str; 6] =
    ["--sweep", "link.rate=1G,10G", "--sweep", "drive.mps=128,256,512", "--runs", "2"];

fn arguments<'a>(plan: &'a str, folder: &'a str) -> Vec<&'a str> {
    [&["sim", plan, "--json", "--points", folder][..], &SWEEP].concat()
}

/// Finished points and their bytes.
fn points(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(all) = fs::read_dir(folder.join("points")) else { return Vec::new() };
    let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.ends_with(".parquet"));
    names.map(|name| (name.clone(), fs::read(folder.join("points").join(name)).unwrap())).collect()
}

#[test]
fn killed_sweep_continues_with_the_same_result() {
    let folder = scratch("points");
    let plan = plan_of("industrial-cell");
    let shared = folder.join("shared");
    let shared_text = text(&shared);
    let wanted = succeeds(&[&["sim", &plan, "--json"][..], &SWEEP].concat());
    let mut process = node(&arguments(&plan, &shared_text));
    wait_until("a point is finished", || !points(&shared).is_empty());
    process.kill();
    let before = points(&shared);
    assert_eq!(succeeds(&arguments(&plan, &shared_text)), wanted);
    let after = points(&shared);
    assert!(after.len() == 6 && before.iter().all(|point| after.contains(point)));
    // Other processes take part.
    let other = text(&folder.join("other"));
    let mut process = node(&arguments(&plan, &other));
    wait_until("the sweep has begun", || folder.join("other/sweep.json").exists());
    process.kill();
    succeeds(&["work", &other, "--only", "0-2"]);
    succeeds(&["work", &other, "--only", "3-5", "--threads", "1"]);
    assert_eq!(points(&folder.join("other")).len(), 6);
    assert_eq!(succeeds(&arguments(&plan, &other)), wanted);
}

#[test]
fn points_that_fail_are_counted_and_the_others_go_on() {
    let folder = scratch("points-failed");
    let plan = text(&folder.join("plan.toml"));
    fs::write(
        &plan,
        "[limits]\ntime = \"1s\"\n[workload]\ndd = \"read\"\nbs = \"4KiB\"\ncount = 10\n",
    )
    .unwrap();
    let sweep = ["--sweep", "limits.events=10,100000"];
    let shared = text(&folder.join("shared"));
    let in_folder = ["--points", &shared];
    for options in [&[][..], &in_folder] {
        let output = run(&[&["sim", &plan, "--json"][..], &sweep, options].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        let said = "1 of 2 points failed, first --set limits.events=10: ";
        assert!(output.status.code() == Some(1) && errors.contains(said), "{errors}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["failed"][0]["set"]["limits.events"], "10");
        assert_eq!(document["combinations"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn folder_of_another_sweep_is_an_error_with_the_difference() {
    let folder = scratch("points-refused");
    let (shared, plan) = (text(&folder.join("f")), plan_of("tcp"));
    let sim = |rest: &[&str]| {
        let all = [&["sim", &plan, "--points", &shared], rest].concat();
        all.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let refused = |rest: &[&str], part: &str| {
        let all = sim(rest);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        fails(&all, &["f: ", part, "; name another folder"]);
    };
    let first = sim(&["--sweep", "drive.mps=128,256"]);
    succeeds(&first.iter().map(String::as_str).collect::<Vec<_>>());
    refused(&["--sweep", "drive.mps=128,512"], "a sweep with the point 256, not 512");
    refused(&["--sweep", "drive.mps=128,256", "--runs", "2"], "a sweep with '', not 'runs 2'");
    refused(&["--sweep", "drive.mps=128,256", "--set", "seed=2"], "a sweep with '', not 'seed=2'");
    let file = folder.join("f/sweep.json");
    let other = fs::read_to_string(&file).unwrap().replace("\"version\": \"", "\"version\": \"9");
    fs::write(&file, other).unwrap();
    fails(&["work", &shared], &["f: ", " has farlane ", "cannot work on a sweep of farlane 9"]);
}

#[test]
fn results_that_cannot_be_written_are_counted() {
    let folder = scratch("points-full");
    let (shared, plan) = (text(&folder.join("f")), plan_of("tcp"));
    let sim = ["sim", &plan, "--sweep", "drive.mps=128,256", "--points", &shared];
    succeeds(&["sim", &plan, "--sweep", "drive.mps=128", "--points", &text(&folder.join("g"))]);
    // sweep.json fits into the limit of 4 KiB, and no point does.
    let output = with_small_files(&sim).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && errors.contains("2 of 2 points failed"), "{errors}");
    assert!(errors.contains("cannot write ") && errors.contains("00000.parquet"), "{errors}");
    succeeds(&sim);
}

#[test]
fn engines_that_are_not_there_are_errors() {
    let folder = scratch("points-engines");
    let (shared, plan) = (text(&folder.join("f")), plan_of("tcp"));
    let sim = ["sim", &plan, "--sweep", "drive.mps=128,256", "--points", &shared, "--engine"];
    let fails = |engine: &str, parts: &[&str]| fails(&[&sim[..], &[engine]].concat(), parts);
    fails("ray,python=/nowhere/python3", &["engine ray: cannot run /nowhere/python3: "]);
    fails("ray,python=/bin/false", &["engine ray: /bin/false: ended without a message"]);
    let output = run(&[&sim[..], &["cloud"]].concat());
    assert_eq!(output.status.code(), Some(2));
    // Nothing is lost.
    succeeds(&[&sim[..], &["local,threads=1"]].concat());
}
