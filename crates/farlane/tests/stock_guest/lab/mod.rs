//! Networks of a stock kernel in a guest: gates, marks and clocks as the real programs set them,
//! and `farlane latency` on them. The guest is emulated, so only order, windows and counts mean
//! anything.

mod bridges;
mod gates;
mod guests;
mod image;
mod marks;

use serde_json::Value;

use crate::stock_guest::script::{Output, Script, script};

pub use image::initrd;

/// A command in the namespace of the talker.
fn command(line: &str) -> Script {
    script!("command").argument(line)
}

/// Frames from the talker to the listener, each at an address and with options.
fn probe(talker: (&str, &str), listener: (&str, &str)) -> Script {
    let script = script!("probe").argument(talker.0).argument(listener.0);
    script.arguments(listener.1).argument("--").arguments(talker.1)
}

/// How often to look at gates before they count as broken.
const ROUNDS: usize = 5;
/// The listener's MAC, which `network.sh` gives it.
const FAR: &str = "raw:near,02:00:5e:00:53:02";

/// What one end of a probe says.
fn document(output: &Output, end: &str) -> Value {
    json(output.between(end).unwrap_or_else(|| panic!("no {end}: {}", output.text)))
}

/// A part of the way in a document.
fn segment<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["segments"].as_array().unwrap();
    all.iter().find(|segment| segment["segment"] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
