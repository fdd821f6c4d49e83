//! What is possible here, and what is in force once it is built: asked of the kernel.

use super::bridge::Bridge;
use super::cables::Far;
use super::experiment::Experiment;
use super::site::output;
use crate::commands::latency::document::Setting;
use report::{Failure, Outcome};
use serde_json::Value;

/// Debian's packages of the programs.
const PACKAGES: [(&str, &str); 5] = [
    ("ovs", "openvswitch-switch"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ethtool", "ethtool"),
    ("iperf3", "iperf3"),
];

/// Whether a program is to be found.
pub fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Fails if a program is missing.
pub fn possible(experiment: &Experiment, bridge: Bridge) -> Outcome {
    if let (Bridge::Macvtap, Far::Guest { interface, .. }) = (bridge, &experiment.far)
        && interface != "tap"
    {
        return Err(Failure("a macvtap device is the guest's own: --guest tap,MAC".into()));
    }
    let mut tools = bridge.tools().to_vec();
    if experiment.gates.is_some() || experiment.drop > 0 {
        tools.push("tc");
    }
    match tools.into_iter().find(|tool| !is_there(tool)) {
        None => Ok(()),
        Some(tool) => {
            let package = PACKAGES.iter().find(|(prefix, _)| tool.starts_with(prefix));
            let package = package.map_or(tool, |(_, package)| package);
            Err(Failure(format!("{tool} is missing: install the package {package}")))
        }
    }
}

/// What was asked for, and whether the kernel says that it is so.
pub fn settings(experiment: &Experiment, _bridge: Bridge) -> Vec<Setting> {
    let mut settings = Vec::new();
    if experiment.gates.is_some() {
        settings.push(gates(&experiment.place.bridge(), "out"));
    }
    settings
}

/// Whether the root queueing discipline of an interface is taprio.
fn gates(namespace: &str, device: &str) -> Setting {
    let found = output(&format!("tc -n {namespace} -j qdisc show dev {device}"));
    let kinds = found.and_then(|text| {
        let all: Value = serde_json::from_str(&text).map_err(|why| Failure(why.to_string()))?;
        let root = all.as_array().into_iter().flatten().find(|of| of["root"] == true);
        Ok(root.map_or("none".to_owned(), |of| of["kind"].as_str().unwrap_or("?").to_owned()))
    });
    let (in_force, note) = match &kinds {
        Ok(kind) if kind == "taprio" => (true, String::new()),
        Ok(kind) => (false, format!("the queueing discipline is {kind}")),
        Err(why) => (false, why.0.clone()),
    };
    Setting { name: format!("gates at {device}"), value: "taprio".to_owned(), in_force, note }
}
