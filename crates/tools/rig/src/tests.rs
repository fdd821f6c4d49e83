use crate::cuts::Cuts;
use crate::{differences, refusal};
use plan::{Plan, Planned};
use std::time::Duration as Pause;
use wire::Duration;

const WORKLOAD: &str = "[workload]\nconfigreads = 1\n";

fn planned(text: &str) -> Planned {
    Plan::parse("plan.toml", &format!("{text}{WORKLOAD}")).and_then(|plan| plan.build()).unwrap()
}

#[test]
fn plain_plan_has_no_difference_to_the_simulation() {
    let plan = planned("machine = \"farlane\"\n");
    assert_eq!((differences(&plan), refusal(&plan)), (Vec::new(), None));
}

#[test]
fn each_part_that_only_the_simulator_has_is_listed() {
    let plan = planned(
        "[link]\nloss = \"1%\"\nvlan = 5\n[nodes.device]\nschedule = \"s\"\n[schedules.s]\n\
         entries = [\"S ff 1ms\"]\n[traffic.t]\nfrom = \"device\"\nto = \"host\"\ninterval = \"1s\"\n\
         [bridges.b]\nmode = \"cut-through\"\n",
    );
    let expected = [
        "times of firmware and media; a live drive takes the time of its medium",
        "cable host to b: loss",
        "cable device to b: loss",
        "port device to b port 1: gates",
        "streams of [traffic]",
        "802.1Q tags; a priority sets only SO_PRIORITY",
        "bridge b: cut-through and jitter",
    ];
    let mut found = differences(&plan);
    found.sort();
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn loss_that_only_a_switch_node_sees_is_refused() {
    let with = |lost: &str| {
        let cable = |name: &str| {
            let cuts = if name == lost { "cuts = [\"1s..2s\"]\n" } else { "" };
            format!("[cables.{name}]\na = \"{name}\"\nb = \"br\"\n{cuts}")
        };
        let cables = ["host", "far", "middle"].map(cable).concat();
        let nodes =
            "[nodes.far]\nswitch = \"middle\"\n[nodes.middle]\n[drives.d]\nnode = \"far\"\n";
        refusal(&planned(&format!("[bridges.br]\n{nodes}{cables}")))
    };
    assert_eq!([with("host"), with("middle")], [None, None]);
    let why = "the link of drive d is lost behind its switch node, which a live host does not see";
    assert_eq!(with("far").as_deref(), Some(why));
}

#[test]
fn plan_with_two_drives_on_a_raw_node_is_refused() {
    let two = "[drives.one]\n[drives.two]\n[nodes.store]\n";
    assert_eq!(refusal(&planned(two)), None);
    let why = refusal(&planned(&format!("transport = \"raw\"\n{two}"))).expect("a reason");
    assert_eq!(why, "node store has several links: over raw Ethernet, a live node accepts one");
}

#[test]
fn cuts_are_due_in_the_order_of_time() {
    let plan = planned("[link]\ncuts = [\"3s..\", \"1s..2s\"]\n");
    let cuts = Cuts::new(&plan);
    let day = Pause::from_secs(86_400);
    assert_eq!(cuts.pause(Duration::ZERO, day), Pause::from_secs(1));
    assert_eq!(cuts.pause(Duration::from_ms(1_500), day), Pause::ZERO);
    assert_eq!(cuts.pause(Duration::ZERO, Pause::from_millis(100)), Pause::from_millis(100));
    assert_eq!(Cuts::new(&planned("")).pause(Duration::ZERO, day), day);
    let dark = Cuts::new(&planned("[bridges.b]\noutages = [\"4s..\"]\n"));
    assert_eq!(dark.pause(Duration::ZERO, day), Pause::from_secs(4));
}
