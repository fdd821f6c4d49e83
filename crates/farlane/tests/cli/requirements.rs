//! Requirements of plans: output and exit status.

use crate::support::program::{farlane, parsed, plan_of, run};
use serde_json::Value;

/// Returns a plan whose stream `t` sends one frame per `interval` to a gate that is open half of
/// the time.
fn plan(folder: &tempfile::TempDir, interval: &str) -> String {
    let path = folder.path().join("p.toml");
    let text = format!(
        "transport = \"tsn\"\n[host]\ndeadline = \"10ms\"\n[nodes.device]\n[nodes.sink]\n\
         [drive]\nnode = \"device\"\n[bridges.b]\nschedule = \"s\"\n[schedules.s]\n\
         entries = [\"S 80 250us\", \"S 7f 250us\"]\n[workload]\ndd = \"read\"\ncount = 20\n\
         [traffic.t]\nfrom = \"device\"\nto = \"sink\"\ninterval = \"{interval}\"\npriority = 7\n\
         deadline = \"400us\"\nloss = \"0%\"\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_requirement_that_is_missed_has_an_exit_status_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for (interval, status, first) in
        [("100us", 0, "3 of 3 requirements are met"), ("20us", 3, "2 of 3 requirements are met")]
    {
        let plan = plan(&folder, interval);
        let output = run(&["sim", &plan]);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().nth(2), Some(first), "{text}");
        let failed = text.lines().find(|line| line.ends_with("FAIL"));
        assert_eq!(failed.is_some(), status == 3, "{text}");
        assert!(failed.is_none_or(|line| line.starts_with("  stream t ")), "{text}");
        let error = String::from_utf8(output.stderr).unwrap();
        let overload = error.contains("class 7 is overloaded from b port 2 to sink: t offer");
        assert_eq!(overload, status == 3, "{error}");
        assert!(!error.contains('\x1b'), "red is for terminals: {error}");
        assert!(error.lines().all(|line| line.starts_with("warning: ")), "{error}");

        let page = folder.path().join("p.html").display().to_string();
        let output = run(&["sim", &plan, "--json", "--html", &page, "--runs", "2"]);
        assert_eq!(output.status.code(), Some(status));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        for rows in [&document["requirements"], &document["runs"][0]["requirements"]] {
            let late: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["late"]).collect();
            assert_eq!(late.iter().filter(|late| **late != 0).count(), usize::from(status == 3));
        }
        assert_eq!(document["overloads"].is_array(), status == 3);
        let page = std::fs::read_to_string(page).unwrap();
        assert_eq!(page.contains("class=\"bad\">class 7 is overloaded"), status == 3);
        assert!(page.contains("<b>3 of 3</b>") || status == 3 && page.contains("<b>2 of 3</b>"));
    }
}

#[test]
fn a_sweep_has_a_column_of_requirements_and_fails_with_one_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, html) = (plan(&folder, "100us"), folder.path().join("p.html"));
    let sweep = |values: &str| {
        let values = format!("traffic.t.interval={values}");
        run(&["sim", &plan, "--sweep", &values, "--html", &html.display().to_string()])
    };
    let met = sweep("100us,125us");
    assert_eq!(met.status.code(), Some(0), "{met:?}");
    let text = |output: std::process::Output| String::from_utf8(output.stdout).unwrap();
    assert_eq!(text(met).matches("  met by ").count(), 2);
    let missed = sweep("100us,20us");
    assert_eq!(missed.status.code(), Some(3), "{missed:?}");
    let text = text(missed);
    assert!(text.lines().next().unwrap().ends_with("  requirements"), "{text}");
    assert!(text.lines().nth(1).unwrap().contains("  met by "), "{text}");
    let row = text.lines().nth(2).unwrap();
    assert!(row.contains("  missed by ") && row.ends_with(": stream t"), "{text}");
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains(">requirements<") && page.contains(">missed by "), "{page}");
    // The picture has the deadlines of host and stream. One of the marks is beyond its limit.
    assert!(page.contains("<title>requirements: ") && page.contains("fill:#b00020"), "{page}");

    let output = run(&["sim", &plan, "--json", "--sweep", "traffic.t.interval=100us,20us"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let documents = &document["combinations"];
    let holds = |at: usize| documents[at]["requirements"][1]["holds"].as_bool();
    assert_eq!([holds(0), holds(1)], [Some(true), Some(false)]);
}

/// A stream with an interval of 300 us passes gates with a cycle of 500 us.
#[test]
fn periods_that_do_not_divide_one_another_are_a_remark() {
    let folder = tempfile::tempdir().unwrap();
    let said = "periods that do not divide one another: 300us (stream t), 500us (gates of b); \
                together they repeat every 1500us";
    for (interval, there) in [("300us", true), ("100us", false)] {
        let (plan, page) = (plan(&folder, interval), folder.path().join("p.html"));
        let output = run(&["sim", &plan, "--html", &page.display().to_string()]);
        let texts = [output.stdout, output.stderr, std::fs::read(&page).unwrap()];
        for text in texts.map(|text| String::from_utf8(text).unwrap()) {
            assert_eq!(text.contains(said), there, "{text}");
        }
        let output = run(&["sim", &plan, "--json"]);
        let document = parsed(std::str::from_utf8(&output.stdout).unwrap());
        let remark = document["remarks"][0].as_str();
        assert_eq!(remark.is_some(), there);
        assert!(remark.is_none_or(|text| text.starts_with(said) && text.ends_with("covers that")));
    }
}

#[test]
fn a_missed_requirement_is_red_where_there_are_colours() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder, "20us");
    let said = |variables: &[(&str, &str)]| {
        let output = farlane(&["sim", &plan]).envs(variables.iter().copied()).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [tables, warnings] = said(&[("CLICOLOR_FORCE", "1")]);
    assert_eq!(tables.matches("  \x1b[31mFAIL\x1b[0m\n").count(), 1, "{tables}");
    assert!(warnings.starts_with("\x1b[33mwarning:\x1b[0m "), "{warnings}");
    for plain in said(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]) {
        assert!(!plain.contains('\x1b'), "{plain}");
    }
}

/// The output of a plan without requirements does not contain the word.
#[test]
fn plan_without_requirements_prints_none() {
    let output = run(&["sim", &plan_of("tcp")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!String::from_utf8(output.stdout).unwrap().contains("requirement"));
}
