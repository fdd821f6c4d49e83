//! The bounds of a plan as a document and as text.

use super::{Bounds, CommandBound, HopBound, ListenerBound, Method, StreamBound};
use report::Align::{Left, Right};
use report::Table;
use schemars::JsonSchema;
use serde::Serialize;
use wire::Duration;

/// Guaranteed latencies of the streams and commands of a plan (`farlane tsn bound --json`).
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct BoundReport {
    /// Version of this format.
    pub schema: u32,
    /// The plan's file.
    pub plan: String,
    /// The method.
    pub method: &'static str,
    /// What the bounds presume.
    pub premises: Vec<String>,
    /// The streams.
    pub streams: Vec<StreamRow>,
    /// The commands of each host.
    pub commands: Vec<CommandRow>,
}

/// The bound of a stream.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct StreamRow {
    /// Name of the stream.
    pub name: String,
    /// The longest latency at any listener; null if there is none.
    pub bound_ns: Option<u64>,
    /// Why there is no bound.
    pub why: Option<String>,
    /// The listeners.
    pub listeners: Vec<ListenerRow>,
}

/// The bound of a stream at a listener.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ListenerRow {
    /// Name of the station.
    pub name: String,
    /// The longest latency from application to application; null if there is none.
    pub bound_ns: Option<u64>,
    /// The methods that gave the bound, such as `tfa` or `tfa+plp`; null without a bound.
    pub method: Option<String>,
    /// Why there is no bound.
    pub why: Option<String>,
    /// The hops, by total flow analysis.
    pub hops: Vec<HopRow>,
}

/// The bound of a stream at a hop.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct HopRow {
    /// The port, and the far end of its cable.
    pub port: String,
    /// The longest time from the arrival in the queue to the end of the transmission; null if there
    /// is none.
    pub bound_ns: Option<u64>,
    /// The most bytes of the class in the queue, header to FCS: the size that the queue needs.
    pub backlog_bytes: Option<u64>,
}

/// The bound of the commands of a host.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CommandRow {
    /// Name of the host.
    pub host: String,
    /// `read` or `write`.
    pub kind: &'static str,
    /// The longest latency; null if there is none.
    pub bound_ns: Option<u64>,
    /// Why there is no bound.
    pub why: Option<String>,
}

fn up(time: Duration) -> u64 {
    time.as_ps().div_ceil(1_000)
}

impl From<&StreamBound> for StreamRow {
    fn from(stream: &StreamBound) -> Self {
        let listeners: Vec<ListenerRow> = stream.listeners.iter().map(ListenerRow::from).collect();
        let longest =
            listeners.iter().try_fold(0, |longest, listener| Some(listener.bound_ns?.max(longest)));
        let why = listeners.iter().find_map(|listener| listener.why.clone());
        Self { name: stream.name.clone(), bound_ns: longest, why, listeners }
    }
}

impl From<&ListenerBound> for ListenerRow {
    fn from(listener: &ListenerBound) -> Self {
        Self {
            name: listener.name.clone(),
            bound_ns: listener.bound.as_ref().ok().copied().map(up),
            method: listener.used.names().filter(|_| listener.bound.is_ok()),
            why: listener.bound.as_ref().err().cloned(),
            hops: listener.hops.iter().map(HopRow::from).collect(),
        }
    }
}

impl From<&HopBound> for HopRow {
    fn from(hop: &HopBound) -> Self {
        let HopBound { port, bound, backlog, .. } = hop;
        Self { port: port.clone(), bound_ns: bound.map(up), backlog_bytes: *backlog }
    }
}

impl From<&CommandBound> for CommandRow {
    fn from(command: &CommandBound) -> Self {
        let CommandBound { host, kind, bound } = command;
        Self {
            host: host.clone(),
            kind: kind.name(),
            bound_ns: bound.as_ref().ok().copied().map(up),
            why: bound.as_ref().err().cloned(),
        }
    }
}

impl BoundReport {
    /// The document of the bounds of a plan.
    pub fn new(plan: String, method: Method, bounds: &Bounds) -> Self {
        Self {
            schema: 1,
            plan,
            method: method.description(),
            premises: bounds.premises.clone(),
            streams: bounds.streams.iter().map(StreamRow::from).collect(),
            commands: bounds.commands.iter().map(CommandRow::from).collect(),
        }
    }

    /// The tables of commands and streams, and the premises.
    pub fn text(&self) -> String {
        let us = |ns: Option<u64>| match ns {
            Some(ns) => format!("{:.3}", ns as f64 / 1e3),
            None => "none".to_owned(),
        };
        let why = |why: &Option<String>| why.clone().unwrap_or_default();
        let mut text = String::new();
        let columns = [("host", Left), ("command", Left), ("bound us", Right), ("", Left)];
        let mut table = Table::new(&columns);
        for row in &self.commands {
            let (host, kind) = (row.host.clone(), row.kind.to_owned());
            table.row(vec![host, kind, us(row.bound_ns), why(&row.why)]);
        }
        if table.rows() > 0 {
            text += &format!("{}\n", table.text());
        }
        let columns = [("stream", Left), ("listener", Left), ("bound us", Right), ("", Left)];
        let mut table = Table::new(&columns);
        for stream in &self.streams {
            for row in &stream.listeners {
                let (stream, listener) = (stream.name.clone(), row.name.clone());
                table.row(vec![stream, listener, us(row.bound_ns), why(&row.why)]);
            }
        }
        if table.rows() > 0 {
            text += &format!("{}\n", table.text());
        }
        text += "The bounds presume:\n";
        self.premises.iter().for_each(|premise| text += &format!("  {premise}\n"));
        text
    }
}
