//! `farlane sim --sweep --resume`: a sweep that was killed goes on.

use crate::cli::sim_tables::with_small_files;
use crate::support::program::{fails, node, plan_of, run, scratch, succeeds, text};
use crate::support::wait_until;
use std::fs;
use std::path::Path;

/// A sweep with random numbers: twelve simulations.
const SWEEP: [&str; 6] =
    ["--sweep", "link.rate=1G,10G", "--sweep", "drive.mps=128,256,512", "--runs", "2"];

fn arguments<'a>(plan: &'a str, file: &'a str) -> Vec<&'a str> {
    [&["sim", plan, "--json", "--resume", file][..], &SWEEP].concat()
}

fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

#[test]
fn killed_sweep_continues_with_the_same_result() {
    let folder = scratch("resume");
    let plan = plan_of("industrial-cell");
    let (file, tables, whole) = (folder.join("f"), folder.join("t"), folder.join("w"));
    let (file_text, tables_text, whole_text) = (text(&file), text(&tables), text(&whole));
    let sim = [&arguments(&plan, &file_text)[..], &["--csv", &tables_text]].concat();
    let plain = [&["sim", &plan, "--json", "--csv", &whole_text][..], &SWEEP].concat();
    let wanted = succeeds(&plain);
    let same_tables = || {
        for table in ["commands", "stages", "links", "streams", "histograms"] {
            let [a, b] =
                [&tables, &whole].map(|folder| fs::read(folder.join(table).with_extension("csv")));
            assert!(a.unwrap() == b.unwrap(), "{table}");
        }
    };
    let mut process = node(&sim);
    wait_until("two simulations are in the file", || lines(&file).len() > 2);
    process.kill();
    let before = lines(&file);
    assert_eq!(succeeds(&sim), wanted);
    same_tables();
    let after = lines(&file);
    let kept = before.iter().filter(|line| line.ends_with('\n')).count();
    assert!(after.len() == 13 && after[..kept] == before[..kept]);

    // A cut line is ignored. Without tables, only the simulations of the other lines are missing.
    let cut = after[..4].concat() + &after[4][..100];
    fs::write(&file, cut).unwrap();
    let output = run(&arguments(&plan, &file_text));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("f: the last line is cut and is ignored"), "{errors}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted);
    let again = lines(&file);
    assert!(again.len() == 13 && again[..4] == after[..4]);
    // All is finished. With an empty folder, the commands need new simulations.
    assert_eq!(succeeds(&arguments(&plan, &file_text)), wanted);
    assert_eq!(lines(&file), again);
    fs::remove_dir_all(&tables).unwrap();
    assert_eq!(succeeds(&sim), wanted);
    same_tables();
}

#[test]
fn file_of_another_sweep_is_an_error_with_the_difference() {
    let folder = scratch("resume-refused");
    let (file, plan) = (folder.join("f"), plan_of("tcp"));
    let file_text = text(&file);
    let sim = |rest: &[&'static str]| {
        let all: Vec<String> = ["sim", &plan, "--resume", &file_text]
            .iter()
            .chain(rest)
            .map(|&word| word.to_owned())
            .collect();
        all
    };
    let refused = |rest: &[&'static str], part: &str| {
        let all = sim(rest);
        fails(
            &all.iter().map(String::as_str).collect::<Vec<_>>(),
            &["f: ", part, "; name another file"],
        );
    };
    let first = sim(&["--sweep", "drive.mps=128,256"]);
    succeeds(&first.iter().map(String::as_str).collect::<Vec<_>>());
    refused(
        &["--sweep", "drive.mps=128,512"],
        "of a sweep with '--sweep drive.mps=128,256', not '--sweep drive.mps=128,512'",
    );
    refused(&["--sweep", "drive.mps=128,256", "--runs", "2"], "of a sweep with '', not '--runs 2'");
    refused(&["--sweep", "drive.mps=128,256", "--set", "seed=2"], "of another plan: line ");
    let other = lines(&file)[0].replace("\"farlane_resume\":1,", "\"farlane_resume\":2,");
    fs::write(&file, &other).unwrap();
    refused(&["--sweep", "drive.mps=128,256"], "with version 2, not by farlane");
    for diary in ["a diary\n", "a diary", "a diary\nto be continued"] {
        fs::write(&file, diary).unwrap();
        refused(&["--sweep", "drive.mps=128,256"], "not a file of --resume");
        assert_eq!(fs::read_to_string(&file).unwrap(), diary);
    }
}

#[test]
fn full_disk_is_a_warning() {
    let folder = scratch("resume-full");
    let (file, plan) = (folder.join("f"), plan_of("tcp"));
    let sweep = ["--sweep", "drive.mps=128,256"];
    let file = text(&file);
    let sim = [&["sim", &plan, "--json", "--resume", &file][..], &sweep].concat();
    let output = with_small_files(&sim).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert!(
        errors.starts_with("warning: cannot write ")
            && errors.contains("the sweep goes on without it"),
        "{errors}"
    );
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert_eq!(
        output.stdout,
        succeeds(&[&["sim", &plan, "--json"][..], &sweep].concat()).into_bytes()
    );
}
