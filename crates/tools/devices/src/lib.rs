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

/// Returns the name of a node as the name of a file.
pub fn file_name(node: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
    let name = node.replace(|letter| !plain(letter), "_");
    if name.starts_with('.') { format!("_{name}") } else { name }
}
