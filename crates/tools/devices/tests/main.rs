//! Tests of exported and imported files, over the shipped plans and random ports.

mod import;
mod roundtrip;
mod scripts;

use farlane_devices::node::Node;
use plan::{Plan, Planned};
use std::path::Path;

/// Returns a shipped plan with keys changed, each `KEY=VALUE`.
fn planned(name: &str, settings: &[&str]) -> Planned {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plans");
    let plan = Plan::read(&folder.join(format!("{name}.toml"))).unwrap();
    let set = |plan: Plan, setting: &&str| {
        let (key, value) = setting.split_once('=').unwrap();
        plan.with(key, value, "--set").unwrap()
    };
    settings.iter().fold(plan, set).build().unwrap()
}

/// Returns a node by its name.
fn node(planned: &Planned, name: &str) -> Node {
    Node::all(planned).into_iter().find(|node| node.name == name).unwrap()
}
