//! Networks in JSON: the output-port networks of Saihu, which panco and xTFA read too.
//!
//! Source: Tsai, Tabatabaee, Plassart and Le Boudec, "Saihu: A Common Interface of Worst-Case Delay
//! Analysis Tools for Time-Sensitive Networks", arXiv 2303.14565, and its documentation.

mod json;
mod units;

use crate::curve::{ArrivalCurve, RateLatency, Rational, ServiceCurve, TokenBucket};
use crate::network::{Flow, Lines, Multiplexing, Network, NetworkError, Server};
use json::Node;
use num_traits::Zero;
use std::collections::HashMap;
pub use units::Unit;
use units::{Quantity, Units};

/// A network with the names of its paths and the units of its file.
#[derive(Clone, Debug)]
pub struct NetworkFile {
    /// Name of the network.
    pub name: String,
    /// What is analysed.
    pub network: Network,
    /// Flows in the order of the file.
    pub flows: Vec<Flow>,
    /// Names of the paths of each flow: the first is often empty.
    pub path_names: Vec<Vec<String>>,
    /// Unit of times without a unit.
    pub time: Unit,
    /// Unit of sizes without a unit.
    pub data: Unit,
}

/// A value that is missing or invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct FormatError {
    /// Where: `flows[2].path[1]`, or line and column.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Reads a network. Keys that farlane does not know are ignored.
///
/// # Errors
///
/// The first mistake: invalid JSON, missing keys, invalid values, unknown servers, and what
/// [`Network::new`] refuses.
pub fn parse(text: &str) -> Result<NetworkFile, FormatError> {
    let value = serde_json::from_str(text).map_err(|error| FormatError {
        path: format!("line {} column {}", error.line(), error.column()),
        reason: "invalid JSON".to_owned(),
    })?;
    let root = Node::root(&value);
    let general = root.get("network")?;
    let units = Units::default().of(&general)?;
    let (multiplexing, lines) = options(&general)?;

    let mut positions = HashMap::new();
    let mut servers = Vec::new();
    for node in root.get("servers")?.items()? {
        let name = node.get("name")?;
        if positions.insert(name.text()?.to_owned(), servers.len()).is_some() {
            return Err(name.error(format_args!("'{}' is the name of two servers", name.text()?)));
        }
        servers.push(server(&node, &general, &units)?);
    }
    let mut flows: Vec<Flow> = Vec::new();
    let mut path_names = Vec::new();
    let nodes = root.get("flows")?.items()?;
    for node in &nodes {
        let (flow, names) = flow(node, &general, &units, &positions)?;
        if flows.iter().any(|other| other.name == flow.name) {
            let why = format!("'{}' is the name of two flows", flow.name);
            return Err(node.get("name")?.error(why));
        }
        if lines.shaping && lines.packetizer && flow.max_packet.is_none() {
            return Err(node.error("'max_packet_length' is required with packetizer and \"IS\""));
        }
        flows.push(flow);
        path_names.push(names);
    }
    let network = Network::new(servers, &flows, multiplexing, lines);
    let network = network.map_err(|error| at_path(&error, &flows))?;
    let name = general.find("name").map_or(Ok(""), |name| name.text())?.to_owned();
    Ok(NetworkFile { name, network, flows, path_names, time: units.time, data: units.data })
}

/// The place of an error of the network.
fn at_path(error: &NetworkError, flows: &[Flow]) -> FormatError {
    let path = match error {
        NetworkError::EmptyPath { flow, path }
        | NetworkError::RepeatedServer { flow, path, .. }
        | NetworkError::NoTree { flow, path, .. } => {
            let flow = flows.iter().position(|it| it.name == *flow).unwrap_or_default();
            match path.checked_sub(1) {
                None => format!("flows[{flow}].path"),
                Some(copy) => format!("flows[{flow}].multicast[{copy}].path"),
            }
        }
        NetworkError::Overload { .. } => "servers".to_owned(),
    };
    FormatError { path, reason: error.to_string() }
}

fn options(general: &Node<'_>) -> Result<(Multiplexing, Lines), FormatError> {
    let multiplexing = match general.find("multiplexing") {
        None => Multiplexing::Fifo,
        Some(node) => match node.text()? {
            "FIFO" => Multiplexing::Fifo,
            "ARBITRARY" => Multiplexing::Arbitrary,
            other => {
                let why = format!("invalid multiplexing '{other}': expected FIFO or ARBITRARY");
                return Err(node.error(why));
            }
        },
    };
    let mut lines = Lines::default();
    if let Some(node) = general.find("packetizer") {
        lines.packetizer = node.flag()?;
    }
    for node in general.find("analysis_option").map_or(Ok(Vec::new()), |list| list.items())? {
        match node.text()? {
            "IS" => lines.shaping = true,
            "PK" => lines.packetizer = true,
            "MOH" => lines.last_packet = true,
            // The precision of xTFA's numbers, and a property of clocks that this format lacks.
            "FIFO" | "CEIL" | "TDMI" => {}
            other => {
                let why = format!("unknown option '{other}': expected IS, PK, MOH, CEIL or TDMI");
                return Err(node.error(why));
            }
        }
    }
    Ok((multiplexing, lines))
}

fn server(node: &Node<'_>, general: &Node<'_>, units: &Units) -> Result<Server, FormatError> {
    let own = units.of(node)?;
    let (curve, units_of) = inherited(node, general, "service_curve", &own, units)?;
    let pairs = pairs(&curve, ("latencies", Quantity::Time), units_of)?;
    let service = pairs.into_iter().map(|(latency, rate)| RateLatency { rate, latency });
    let capacity = match inherited(node, general, "capacity", &own, units) {
        Ok((value, units)) => Some(positive(&value, Quantity::Rate, units)?),
        Err(_) => None,
    };
    let name = node.get("name")?.text()?.to_owned();
    Ok(Server { name, service: ServiceCurve::new(service), capacity })
}

fn flow(
    node: &Node<'_>,
    general: &Node<'_>,
    units: &Units,
    positions: &HashMap<String, usize>,
) -> Result<(Flow, Vec<String>), FormatError> {
    let own = units.of(node)?;
    let (curve, units_of) = inherited(node, general, "arrival_curve", &own, units)?;
    let pairs = pairs(&curve, ("bursts", Quantity::Data), units_of)?;
    let buckets = pairs.into_iter().map(|(burst, rate)| TokenBucket { burst, rate });
    let packet = |key: &str| match inherited(node, general, key, &own, units) {
        Ok((value, units)) => units.value(&value, Quantity::Data).map(Some),
        Err(_) => Ok(None),
    };
    let (max_packet, min_packet) = (packet("max_packet_length")?, packet("min_packet_length")?);
    if let (Some(most), Some(least)) = (&max_packet, &min_packet)
        && least > most
    {
        return Err(node.error("'min_packet_length' is above 'max_packet_length'"));
    }
    let servers = |node: &Node<'_>| -> Result<Vec<usize>, FormatError> {
        let position = |node: Node<'_>| {
            let name = node.text()?;
            let unknown = || node.error(format_args!("unknown server '{name}'"));
            positions.get(name).copied().ok_or_else(unknown)
        };
        node.items()?.into_iter().map(position).collect()
    };
    let text =
        |node: Option<Node<'_>>| node.map_or(Ok(String::new()), |it| it.text().map(str::to_owned));
    let mut paths = vec![servers(&node.get("path")?)?];
    let mut names = vec![text(node.find("path_name"))?];
    for copy in node.find("multicast").map_or(Ok(Vec::new()), |list| list.items())? {
        paths.push(servers(&copy.get("path")?)?);
        names.push(text(copy.find("name"))?);
    }
    let name = node.get("name")?.text()?.to_owned();
    let arrival = ArrivalCurve::new(buckets);
    Ok((Flow { name, arrival, max_packet, min_packet, paths, inlet: None }, names))
}

/// A key of a flow or server, or its default for all of them.
fn inherited<'a, 'u>(
    node: &Node<'a>,
    general: &Node<'a>,
    key: &str,
    own: &'u Units,
    units: &'u Units,
) -> Result<(Node<'a>, &'u Units), FormatError> {
    match (node.find(key), general.find(key)) {
        (Some(value), _) => Ok((value, own)),
        (None, Some(value)) => Ok((value, units)),
        (None, None) => node.get(key).map(|value| (value, own)),
    }
}

/// The functions of a curve: bursts or latencies, and rates.
fn pairs(
    curve: &Node<'_>,
    (key, quantity): (&str, Quantity),
    units: &Units,
) -> Result<Vec<(Rational, Rational)>, FormatError> {
    let (firsts, rates) = (curve.get(key)?.items()?, curve.get("rates")?.items()?);
    if firsts.is_empty() || firsts.len() != rates.len() {
        let count = (firsts.len(), rates.len());
        let why =
            format!("{} {key} and {} rates: expected as many, and at least 1", count.0, count.1);
        return Err(curve.error(why));
    }
    let pair = |(first, rate): (&Node<'_>, &Node<'_>)| {
        let rate = match quantity {
            Quantity::Time => positive(rate, Quantity::Rate, units)?,
            _ => units.value(rate, Quantity::Rate)?,
        };
        Ok((units.value(first, quantity)?, rate))
    };
    firsts.iter().zip(&rates).map(pair).collect()
}

fn positive(node: &Node<'_>, quantity: Quantity, units: &Units) -> Result<Rational, FormatError> {
    let value = units.value(node, quantity)?;
    if value.is_zero() { Err(node.error("must be above 0")) } else { Ok(value) }
}
