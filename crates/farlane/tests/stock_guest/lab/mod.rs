//! Networks of a stock kernel in a guest: gates, marks and clocks that the real programs set, and
//! `farlane latency` on them. The guest is emulated, so only order, windows and counts are
//! meaningful.

mod bridges;
mod devices;
mod gates;
mod guests;
mod image;
mod marks;
mod secured;

use serde_json::Value;

use crate::stock_guest::script::{Output, Script, script};

pub use image::initrd;

/// Returns a script that runs a command in the talker's namespace.
fn command(line: &str) -> Script {
    script!("command").argument(line)
}

/// Returns a script that sends frames from the talker to the listener, each with its address and
/// options.
fn probe(talker: (&str, &str), listener: (&str, &str)) -> Script {
    let script = script!("probe").argument(talker.0).argument(listener.0);
    script.arguments(listener.1).argument("--").arguments(talker.1)
}

/// Number of measurements of gates before they count as broken.
const ROUNDS: usize = 5;
/// Address of the listener. `network.sh` sets its MAC address.
const FAR: &str = "raw:near,02:00:5e:00:53:02";

/// Returns the document of one end of a probe.
fn document(output: &Output, end: &str) -> Value {
    json(output.between(end).unwrap_or_else(|| panic!("no {end}: {}", output.text)))
}

/// Returns a segment of a document.
fn segment<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["segments"].as_array().unwrap();
    all.iter().find(|segment| segment["segment"] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
