//! The configuration of the Linux hosts, bridges and YANG devices of a network: written from plans,
//! read into plans.
//!
//! # Modules
//!
//! - [`import`]: files of a running node as a part of a plan
//! - [`node`]: the nodes of a plan as devices
//! - [`ptp`]: the clock of a node as files of linuxptp
//! - [`script`]: a node as a shell script with `tc`, `ethtool`, `bridge` and `ip`
//! - [`tc`]: what `tc -j` prints
//! - [`yang`]: a node as YANG instance data
//! - `json`: the path of a mistake in JSON

pub mod import;
mod json;
pub mod node;
pub mod ptp;
pub mod script;
pub mod tc;
pub mod yang;

use node::Node;
use plan::Planned;
use std::collections::BTreeSet;

/// The files of all nodes of a plan.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Name and text of each file.
    pub files: Vec<(String, String)>,
    /// One sentence for each part of the plan that the files lack, with node and file.
    pub notes: Vec<String>,
}

/// Writes the files of every station and bridge of a plan: `NODE.sh`, `NODE.json`, and with
/// `[clocks]` `NODE.ptp4l.conf` and `NODE.phc2sys.conf`. `plan` is the name of the plan.
pub fn export(planned: &Planned, plan: &str, options: &script::Options) -> Exported {
    let (mut files, mut notes, mut used) = (Vec::new(), Vec::new(), BTreeSet::new());
    for node in Node::all(planned) {
        let mut base = file_name(&node.name);
        while !used.insert(base.clone()) {
            base.push('_');
        }
        let mut add = |end: &str, text: String, lacks: Vec<String>| {
            let file = format!("{base}.{end}");
            notes.extend(lacks.into_iter().map(|lack| format!("{file}: not set: {lack}")));
            files.push((file, text));
        };
        let script = script::script(&node, plan, options);
        add("sh", script.text, script.notes);
        let data = yang::data(&node, planned.stations.len());
        add("json", data.text, data.notes);
        if let Some(own) = ptp::files(&node) {
            add("ptp4l.conf", own.ptp4l, own.notes);
            own.phc2sys.into_iter().for_each(|text| add("phc2sys.conf", text, Vec::new()));
        }
    }
    Exported { files, notes }
}

/// Returns the name of a node as the name of a file.
pub fn file_name(node: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
    let name = node.replace(|letter| !plain(letter), "_");
    if name.starts_with('.') { format!("_{name}") } else { name }
}
