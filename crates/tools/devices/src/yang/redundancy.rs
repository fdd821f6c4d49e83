//! Streams and their redundancy (IEEE 802.1CB).

use super::address;
use super::tree::*;
use crate::node::{Node, Stream};
use sim::ethernet::streams::{Identification, Recover};
use tsn::frer::Algorithm as Selection;

/// Milliseconds in picoseconds.
const MS: u64 = 1_000_000_000;

/// Returns the streams that a node identifies.
pub(super) fn identities(node: &Node, notes: &mut Vec<String>) -> Vec<StreamIdentity> {
    let mut all = Vec::new();
    for stream in &node.streams {
        let by = |destination: Option<String>, source: Option<String>, vlan: Option<u16>| {
            let tagged = if vlan.is_some() { "tagged" } else { "priority" };
            Some(AddressAndVlan {
                destination_mac: destination,
                source_mac: source,
                tagged: Some(tagged.to_owned()),
                vlan: Some(vlan.unwrap_or(0)),
                ..AddressAndVlan::default()
            })
        };
        let input_port = stream.inputs.iter().map(|port| node.ports[*port].peer.clone()).collect();
        let identity = StreamIdentity {
            index: all.len() as u32,
            handle: stream.handle,
            out_facing: Some(Facing { input_port }),
            ..StreamIdentity::default()
        };
        all.push(match stream.identification {
            Identification::Null { destination, vlan } => StreamIdentity {
                null_stream_identification: by(Some(address(destination)), None, vlan),
                ..identity
            },
            Identification::Source { source, vlan } => StreamIdentity {
                smac_vlan_stream_identification: by(None, Some(address(source)), vlan),
                ..identity
            },
            Identification::Ip { destination, vlan, ip: [from, to] } => {
                let base = by(Some(address(destination)), None, vlan).unwrap_or_default();
                let own = AddressAndVlan {
                    ip_source: Some(from.to_string()),
                    ip_destination: Some(to.to_string()),
                    ..base
                };
                StreamIdentity { ip_stream_identification: Some(own), ..identity }
            }
            Identification::Priority { destination, tag, .. } => {
                notes.push(format!("stream {}: source and priority of its frames", stream.name));
                StreamIdentity {
                    null_stream_identification: by(Some(address(destination)), None, Some(tag.vid)),
                    ..identity
                }
            }
        });
    }
    all
}

/// Returns the tables of redundancy; `None` if the node neither numbers nor eliminates.
pub(super) fn frer(node: &Node) -> Option<Frer> {
    let mut frer = Frer::default();
    for stream in &node.streams {
        if stream.numbers {
            frer.sequence_generation.push(Generation {
                index: frer.sequence_generation.len() as u32,
                stream: vec![stream.handle],
                direction_out_facing: false,
            });
        }
        if let Some(recover) = &stream.recover {
            let index = frer.sequence_recovery.len() as u32;
            frer.sequence_recovery.push(recovery(node, stream, recover, index));
        }
    }
    // The R-TAG is read at the inputs of streams that arrive with a number, and written at the
    // outputs of numbered ones.
    for (number, port) in node.ports.iter().enumerate() {
        let own = node.streams.iter().filter(|stream| {
            let reads = stream.recover.is_some() && stream.inputs.contains(&number);
            reads || stream.numbers && stream.outputs.contains(&number)
        });
        let handles: Vec<u32> = own.clone().map(|stream| stream.handle).collect();
        if !handles.is_empty() {
            frer.sequence_identification.push(SequenceIdentification {
                port: port.peer.clone(),
                direction_out_facing: true,
                stream: handles,
                active: own.clone().any(|stream| stream.numbers),
                encapsulation: Encapsulation { r_tag: Some(Present {}) },
            });
        }
    }
    (frer != Frer::default()).then_some(frer)
}

fn recovery(node: &Node, stream: &Stream, recover: &Recover, index: u32) -> Recovery {
    let config = &recover.recovery;
    let history = match config.algorithm {
        Selection::Vector { history } => Some(history as u32),
        Selection::Match => None,
    };
    let milliseconds = |time: wire::Duration| (time.as_ps() / MS).try_into().unwrap_or(u32::MAX);
    let ports = if stream.outputs.is_empty() { &stream.inputs } else { &stream.outputs };
    Recovery {
        index,
        stream: vec![stream.handle],
        port: ports.iter().map(|port| node.ports[*port].peer.clone()).collect(),
        direction_out_facing: false,
        algorithm: Algorithm {
            vector: history.map(|_| Present {}),
            r#match: history.is_none().then_some(Present {}),
        },
        history_length: history,
        reset_timeout: Some(milliseconds(config.reset)),
        take_no_sequence: Some(config.take_no_sequence),
        individual_recovery: Some(config.individual),
        latent_error_detection: Some(recover.latent.is_some()),
        latent_error_detection_parameters: recover.latent.as_ref().map(|test| Latent {
            difference: test.difference.try_into().unwrap_or(i32::MAX),
            period: milliseconds(test.period),
            paths: test.paths.try_into().unwrap_or(u16::MAX),
            reset_period: milliseconds(test.reset_period),
        }),
    }
}
