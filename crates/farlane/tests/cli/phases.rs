//! `--phases`: the worst of several phases, and how to repeat it.

use crate::support::program::{document, fails, is_wrong_usage, parsed, plan_of, prints, run};
use serde_json::Value;

/// Two bridges have one schedule. Reads without push pass both bridges in one window, unless a
/// clock is wrong.
fn plan(folder: &tempfile::TempDir, deadline: &str) -> String {
    let path = folder.path().join("p.toml");
    let text = format!(
        "transport = \"tsn\"\n[host]\npush = \"off\"\ndeadline = \"{deadline}\"\n[link]\npriority = 3\n\
         [bridges.one]\nschedule = \"s\"\n[bridges.two]\nschedule = \"s\"\n[schedules.s]\n\
         entries = [\"S 08 250us\", \"S f7 250us\"]\n[cables.x]\na = \"host\"\nb = \"one\"\n\
         [cables.y]\na = \"one\"\nb = \"two\"\n[cables.z]\na = \"two\"\nb = \"device\"\n\
         [workload]\ndd = \"read\"\ncount = 50\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn json(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(&[arguments, &["--json"]].concat());
    (output.status.code(), parsed(&String::from_utf8(output.stdout).unwrap()))
}

/// Trials find that a clock error of half a cycle increases the latency from 455 us to 1079 us.
#[test]
fn phases_find_longer_waits_than_the_planned_phase() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder, "600us");
    let (status, alone) = json(&["sim", &plan]);
    assert_eq!(status, Some(0), "as it is written it is in time");
    let (status, all) = json(&["sim", &plan, "--phases", "8"]);
    assert_eq!(status, Some(3), "not in every phase");
    assert_eq!(all["digest"], alone["digest"], "the document is that of trial 0");
    let phases = &all["phases"];
    let host = &phases["observed"][0];
    assert_eq!((&host["name"], &phases["tried"]), (&"host host".into(), &8.into()));
    assert_eq!(host["as_written_ns"], alone["latency_ns"]["max"]);
    let [written, largest] = ["as_written_ns", "largest_ns"].map(|key| host[key].as_u64().unwrap());
    assert!(largest > 2 * written, "{largest} against {written}");
    let required = &phases["requirements"][0];
    assert_eq!((&required["worst_ns"], &required["trial"]), (&host["largest_ns"], &host["trial"]));

    // With correct clocks, the host meets the deadline in every phase.
    let (status, synchronised) = json(&["sim", &plan, "--phases", "8", "--shift", "startdelay"]);
    assert_eq!(status, Some(0), "{}", synchronised["phases"]);
    assert_eq!(synchronised["phases"]["shifts"].as_array().map(Vec::len), Some(1));

    // The printed options repeat the trial.
    let trials = phases["trials"].as_array().unwrap();
    let trial = trials.iter().find(|trial| trial["trial"] == host["trial"]).unwrap();
    let set = trial["set"].as_object().unwrap().iter();
    let set: Vec<_> =
        set.map(|(key, value)| format!("{key}={}", value.as_str().unwrap())).collect();
    assert_eq!(set.len(), 3, "two clocks and the host");
    let words: Vec<&str> = set.iter().flat_map(|word| ["--set", word]).collect();
    let (status, again) = json(&[&["sim", &plan][..], &words].concat());
    assert_eq!(status, Some(3));
    assert_eq!(
        (&again["digest"], &again["latency_ns"]["max"]),
        (&trial["digest"], &host["largest_ns"])
    );
}

#[test]
fn text_and_page_show_trials() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("p.html").display().to_string();
    for (deadline, status, verdict) in [("600us", 3, "FAIL"), ("10ms", 0, "pass")] {
        let plan = plan(&folder, deadline);
        let output = run(&["sim", &plan, "--phases", "4", "--html", &page]);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let title = "largest observed of 4 tried phases, not a bound";
        assert!(text.contains(&format!("\nPhases: {title}\n")), "{text}");
        let line =
            text.lines().find(|line| line.starts_with("trial ")).expect("a trial").to_owned();
        assert!(line.contains(" --set bridges.one.clock_offset="), "{line}");
        assert!(text.lines().any(|line| line.ends_with(verdict)), "{text}");
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.contains(&format!("The {title}")) && html.contains(&line));
        assert_eq!(html.contains("missed in one of the tried phases"), status == 3);
    }
}

/// A deadline of 600 us is missed in one of four phases, a deadline of 10 ms in none.
#[test]
fn each_combination_of_a_sweep_is_tried_in_all_phases() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder, "600us");
    let sweep = ["sim", &plan, "--phases", "4", "--sweep", "host.deadline=600us,10ms"];
    let (status, all) = json(&sweep);
    assert_eq!(status, Some(3));
    let combinations = all["combinations"].as_array().unwrap();
    let phases =
        document(&["sim", &plan, "--phases", "4", "--set", "host.deadline=10ms", "--json"]);
    assert_eq!(combinations[1]["phases"], phases["phases"]);
    let holds = combinations.iter().map(|one| &one["phases"]["requirements"][0]["holds"]);
    assert_eq!(holds.collect::<Vec<_>>(), [false, true]);
    let page = folder.path().join("p.html").display().to_string();
    let output = run(&[&sweep[..], &["--html", &page]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[0].contains("  in all phases us  "), "{text}");
    let largest = &combinations[0]["phases"]["observed"][0]["largest_ns"];
    let largest = largest.as_u64().unwrap();
    assert!(rows[1].contains(&format!(" {}.{:03} ", largest / 1000, largest % 1000)), "{text}");
    assert!(rows[1].ends_with(": host host") && rows[1].contains("missed by "), "{text}");
    assert!(rows[2].contains(" met by "), "{text}");
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<title>maximum of all phases: "), "{html}");
}

#[test]
fn the_seed_chooses_the_trials() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder, "10ms");
    let trials = |seed| {
        document(&["sim", &plan, "--json", "--phases", "4", "--seed", seed])["phases"].clone()
    };
    assert_eq!(trials("5"), trials("5"));
    assert_ne!(trials("5"), trials("6"));
    assert!(prints(&["sim", &plan, "--phases", "2"]).contains("of 2 tried phases"));
}

/// The document has a bound for every stream, and the `--set` options of the worst trial repeat it.
#[test]
fn search_compares_with_the_bound_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("p.html").display().to_string();
    let plan = plan_of("tsn-network");
    let search = ["sim", &plan, "--phases", "9", "--search"];
    let phases = document(&[&search[..], &["--json"]].concat())["phases"].clone();
    assert_eq!((&phases["tried"], &phases["searched"]), (&9.into(), &6.into()));
    let rows = phases["observed"].as_array().unwrap();
    for row in rows {
        let [largest, bound] = ["largest_ns", "bound_ns"].map(|key| row[key].as_u64().unwrap());
        assert!(largest <= bound, "{row}");
        let ratio = bound as f64 / largest as f64;
        assert!((row["tightness"].as_f64().unwrap() - ratio).abs() < 0.001, "{row}");
        assert!(row.get("why").is_none(), "{row}");
    }
    let worst = rows.iter().find(|row| row["name"] == "stream braking").unwrap();
    let trials = phases["trials"].as_array().unwrap();
    let trial = trials.iter().find(|trial| trial["trial"] == worst["trial"]).unwrap();
    let set = trial["set"].as_object().unwrap().iter();
    let set: Vec<_> =
        set.map(|(key, value)| format!("{key}={}", value.as_str().unwrap())).collect();
    let words: Vec<&str> = set.iter().flat_map(|word| ["--set", word]).collect();
    let again = document(&[&["sim", &plan, "--json"][..], &words].concat());
    assert_eq!(again["digest"], trial["digest"]);
    let output = run(&[&search[..], &["--html", &page]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let title = "largest observed of 9 tried phases, 6 of them searched, not a bound";
    let html = std::fs::read_to_string(page).unwrap();
    for shown in [text, html] {
        assert!(shown.contains(title) && shown.contains("bound / largest"), "{shown}");
    }
}

#[test]
fn invalid_phases_are_errors() {
    fails(
        &["sim", &plan_of("tcp"), "--phases", "4"],
        &["tcp.toml:1:1: nothing in this plan repeats"],
    );
    for more in [["--runs", "2"], ["--shift", "rate"]] {
        is_wrong_usage(&[&["sim", &plan_of("tsn"), "--phases", "4"][..], &more].concat());
    }
    is_wrong_usage(&["sim", &plan_of("tsn"), "--search"]);
}

/// The plan as written ends after 22 ms. With clock errors it takes longer than the limit.
#[test]
fn a_trial_that_fails_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder, "10ms");
    let arguments = ["sim", &plan, "--set", "limits.time=25ms"];
    assert_eq!(run(&arguments).status.code(), Some(0));
    let arguments = [&arguments[..], &["--phases", "4"]].concat();
    fails(&arguments, &["the limit of 25000.000us", "; trial ", "--set bridges.one.clock_offset="]);
    let (status, document) = json(&arguments);
    assert_eq!(status, Some(1));
    assert!(document["failed"].as_str().unwrap().contains("the limit of 25000.000us"));
    let sweep = [&arguments[..], &["--sweep", "workload.count=50"]].concat();
    let output = run(&sweep);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("--set workload.count=50: the limit of 25000.000us"), "{errors}");
    assert!(errors.contains("; --set bridges.one.clock"), "{errors}");
}
