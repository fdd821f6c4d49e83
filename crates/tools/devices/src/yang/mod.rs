//! A node as YANG instance data in JSON (RFC 7951), and back.

mod ports;
mod read;

mod redundancy;
mod streams;
mod tree;

pub(crate) use read::read;

use crate::node::Node;
use serde_json::Value;
use sim::network::{Place, mac};
use tree::{Bridge, Bridges, Component, Instance, Interface, Interfaces, PtpTime, Rational};
use wire::{Duration, Instant};

/// Nanoseconds per second.
const SECOND: u64 = 1_000_000_000;
/// Names of priorities.
const PRIORITIES: [&str; 8] = ["zero", "one", "two", "three", "four", "five", "six", "seven"];

/// Instance data, and what they lack.
#[derive(Clone, Debug)]
pub struct Data {
    /// The text in JSON.
    pub text: String,
    /// One sentence for each part of the plan that the data lack.
    pub notes: Vec<String>,
}

/// Writes the instance data of a node. `stations` is the number of stations of the plan.
pub fn data(node: &Node, stations: usize) -> Data {
    let mut notes = Vec::new();
    let interface = |port: &crate::node::Port| Interface {
        name: port.peer.clone(),
        r#type: Some("iana-if-type:ethernetCsmacd".to_owned()),
        port: Some(ports::port(port, &mut notes)),
    };
    let interfaces = Interfaces { interface: node.ports.iter().map(interface).collect() };
    let bridges = match node.place {
        Place::Station(_) => None,
        Place::Bridge(at) => {
            let component = streams::component(node, &mut notes);
            let component = Component {
                name: node.name.clone(),
                r#type: "c-vlan-component".to_owned(),
                ..component
            };
            let bridge = Bridge {
                name: node.name.clone(),
                address: address(mac(stations + at)),
                bridge_type: "customer-vlan-bridge".to_owned(),
                component: vec![component],
            };
            Some(Bridges { bridge: vec![bridge] })
        }
    };
    let streams = redundancy::identities(node, &mut notes);
    let frer = redundancy::frer(node);
    let instance = Instance { interfaces, bridges, streams, frer };
    let mut value = serde_json::to_value(instance).expect("a tree with text as keys");
    prune(&mut value);
    let text = serde_json::to_string_pretty(&value).expect("a tree with text as keys");
    Data { text: text + "\n", notes }
}

/// Removes absent nodes: null and empty lists.
fn prune(value: &mut Value) {
    let Value::Object(members) = value else {
        value.as_array_mut().into_iter().flatten().for_each(prune);
        return;
    };
    members.values_mut().for_each(prune);
    members
        .retain(|_, value| !value.is_null() && value.as_array().is_none_or(|all| !all.is_empty()));
}

/// Returns an address in the format of ieee802-types.
fn address(mac: sim::ethernet::Mac) -> String {
    mac.to_string().to_uppercase().replace(':', "-")
}

/// Returns a time as a fraction of a second; `None` if it needs more than 32 bits.
fn rational(time: Duration) -> Option<Rational> {
    let ns = time.as_ns();
    let (mut shared, mut rest) = (ns, SECOND);
    while rest != 0 {
        (shared, rest) = (rest, shared % rest);
    }
    let (numerator, denominator) = (ns / shared, SECOND / shared);
    Some(Rational {
        numerator: numerator.try_into().ok()?,
        denominator: denominator.try_into().ok()?,
    })
}

fn time(at: Instant) -> PtpTime {
    let ns = at.as_ns();
    PtpTime { seconds: tree::Number(ns / SECOND), nanoseconds: (ns % SECOND) as u32 }
}
