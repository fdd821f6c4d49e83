//! A calibration as defaults of a plan.

use crate::{Machine, Plan, Planned};
use wire::Duration;

const FILE: &str = "[link]\ntx_delay = \"5us\"\nrx_delay = \"6us\"\n";
const PLAN: &str = "calibration = \"machine.toml\"\n[link]\nrx_delay = \"7us\"\n[workload]\n\
                    configreads = 1\n";

fn build(file: &str, set: &[(&str, &str)]) -> Result<Planned, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("machine.toml"), file).unwrap();
    std::fs::write(folder.path().join("plan.toml"), PLAN).unwrap();
    let mut plan = Plan::read(&folder.path().join("plan.toml")).unwrap();
    for (key, value) in set {
        plan = plan.with(key, value, "--set").unwrap();
    }
    plan.build().map_err(|error| error.to_string())
}

fn delays(plan: &Planned) -> [Duration; 2] {
    let station = &plan.config.network.stations[0];
    [station.tx_delay, station.rx_delay]
}

fn machine() -> Machine {
    Machine {
        processor: "Some \"core\"".into(),
        processors: 2,
        kernel: "6.1".into(),
        spin: "0".into(),
        date: "2026-01-01".into(),
    }
}

#[test]
fn values_of_the_plan_and_of_options_precede_those_of_the_calibration() {
    let plan = build(&(machine().toml() + FILE), &[]).unwrap();
    assert_eq!(delays(&plan), [5, 7].map(Duration::from_us));
    let found = plan.calibration.expect("a calibration");
    assert_eq!(found, Machine { processor: "Some 'core'".into(), ..machine() });
    let plan = build(FILE, &[("link.tx_delay", "1us")]).unwrap();
    assert_eq!(delays(&plan), [1, 7].map(Duration::from_us));
}

#[test]
fn calibration_of_another_machine_differs_in_named_parts() {
    let own = machine();
    assert_eq!(own.difference(&Machine { date: "2027-01-01".into(), ..own.clone() }), None);
    let other = Machine { kernel: "6.2".into(), processors: 4, ..own.clone() };
    let words = own.difference(&other).expect("a difference");
    assert_eq!(words, "2 processors there, 4 processors here; Linux 6.1 there, Linux 6.2 here");
}

#[test]
fn mistake_in_a_calibration_names_its_file_and_line() {
    for (file, place) in [
        ("[link]\ntx_delay = \"5\"\n", "machine.toml:2:"),
        ("[workload]\nrw = \"read\"\n", "machine.toml:1:"),
        ("[link\n", "machine.toml:1:"),
    ] {
        let error = build(file, &[]).unwrap_err();
        assert!(error.contains(place), "{error}");
    }
    let error = build(FILE, &[("calibration", "/nowhere/x.toml")]).unwrap_err();
    assert!(error.contains("--set") && error.contains("/nowhere/x.toml: No such file"), "{error}");
}
