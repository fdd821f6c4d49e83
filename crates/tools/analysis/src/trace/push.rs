//! Totals of push (`docs/push.md`) over all commands of a run.

use super::run::Run;
use crate::commands::AnalyserCounters;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use wire::trace::{NodeRole, Tap};

/// Pushed bytes, and their use (docs/push.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct PushTotals {
    /// Messages that pushed or invalidated bytes; null in the trace of a device node alone.
    pub messages: Option<u64>,
    /// Bytes of entries, lists and data in the messages; null in the trace of a device node alone.
    pub pushed_bytes: Option<u64>,
    /// Reads of drives that device nodes answered; null without the traces of all device nodes.
    pub hits: Option<u64>,
    /// Bytes of the reads in `hits`; null if `hits` is null.
    pub hit_bytes: Option<u64>,
    /// Reads of drives that the host answered, except reads of length zero.
    pub misses: u64,
    /// Pushed bytes that answered no read; null where records or traces are missing.
    pub unused_bytes: Option<u64>,
    /// Commands that a live host node did not push, or pushed only in part, by reason; empty if the
    /// node was killed.
    pub not_pushed: Vec<NotPushed>,
}

/// Commands that were not pushed, or pushed only in part, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct NotPushed {
    /// The reason (docs/push.md#why-a-command-is-not-pushed).
    pub reason: &'static str,
    /// Number of commands.
    pub commands: u64,
}

impl PushTotals {
    /// Returns whether anything was pushed.
    pub fn is_some(&self) -> bool {
        self.messages.unwrap_or(0) > 0 || self.hits.unwrap_or(0) > 0 || !self.not_pushed.is_empty()
    }

    /// Returns the totals as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let Self { misses, .. } = self;
        let mut lines = Vec::new();
        if let (Some(messages), Some(bytes)) = (self.messages, self.pushed_bytes) {
            let unused = self.unused_bytes.map(|bytes| format!(", {bytes} of them for nothing"));
            let unused = unused.unwrap_or_default();
            lines.push(format!("pushed: {bytes} bytes in {messages} messages{unused}"));
        }
        lines.push(match (self.hits, self.hit_bytes) {
            (Some(hits), Some(bytes)) => format!(
                "reads of drives: {hits} answered from push ({bytes} bytes), {misses} by the host"
            ),
            _ => format!(
                "reads of drives: {misses} by the host; the traces of all device nodes would show \
                 the others"
            ),
        });
        if !self.not_pushed.is_empty() {
            let reason =
                |NotPushed { reason, commands }: &NotPushed| format!("{commands} {reason}");
            let reasons: Vec<_> = self.not_pushed.iter().map(reason).collect();
            lines.push(format!("commands not pushed, or in part: {}", reasons.join(", ")));
        }
        lines
    }
}

impl Run {
    /// Computes the totals from `counters` of the root node's whole trace.
    pub fn push_totals(&self, counters: &AnalyserCounters) -> PushTotals {
        let devices: Vec<_> =
            self.nodes.iter().filter(|n| n.file.header.role == NodeRole::Device).collect();
        let sum =
            |part: fn((u64, u64)) -> u64| devices.iter().map(|n| part(n.index.from_push)).sum();
        let (hits, hit_bytes): (u64, u64) = (sum(|(hits, _)| hits), sum(|(_, bytes)| bytes));
        if self.root().file.header.role == NodeRole::Device {
            let (hits, hit_bytes, misses) =
                (Some(hits), Some(hit_bytes), counters.reads.saturating_sub(hits));
            return PushTotals { hits, hit_bytes, misses, ..PushTotals::default() };
        }
        let links = |tap: &Tap| tap.port().is_some();
        let connections = |node: &super::Node| {
            let taps = node.index.connections.iter().map(|connection| connection.tap);
            taps.filter(links).collect::<BTreeSet<_>>().len()
        };
        // Every link of a host or switch node leads to a node with a trace.
        let inner = self.nodes.iter().filter(|n| n.file.header.role != NodeRole::Device);
        let all = inner.map(connections).sum::<usize>() == self.nodes.len() - 1;
        let whole = self.nodes.iter().all(|n| (n.index.gaps, n.index.beyond) == (0, 0));
        PushTotals {
            messages: Some(counters.pushes),
            pushed_bytes: Some(counters.pushed_bytes),
            hits: all.then_some(hits),
            hit_bytes: all.then_some(hit_bytes),
            misses: counters.reads,
            not_pushed: self
                .root()
                .index
                .not_pushed
                .iter()
                .map(|(reason, commands)| NotPushed { reason: reason.name(), commands: *commands })
                .collect(),
            unused_bytes: (all && whole).then(|| counters.pushed_bytes.saturating_sub(hit_bytes)),
        }
    }
}
