//! The orders in which commands can be shown.

use super::Shown;
use crate::commands::Command;
use std::cmp::Reverse;

wire::named! {
    /// The property by which commands are sorted.
    pub enum Key {
        /// Time of the end, earliest first.
        End "end",
        /// Time from the tail doorbell to the head doorbell, longest first.
        Duration "duration",
        /// Bytes of data that were transferred, most first.
        Bytes "bytes",
        /// Number of TLPs, most first.
        Tlps "tlps",
    }
}

impl Key {
    /// Returns the order in words.
    pub fn order(self) -> &'static str {
        match self {
            Self::End => "in the order in which they ended",
            Self::Duration => "the longest first",
            Self::Bytes => "those that moved the most data first",
            Self::Tlps => "those with the most TLPs first",
        }
    }

    fn value(self, command: &Command) -> u64 {
        match self {
            Self::End => 0,
            Self::Duration => command.duration_ns().unwrap_or(0),
            Self::Bytes => command.moved,
            Self::Tlps => command.traffic.tlps(),
        }
    }
}

/// The first commands of an order, at most `limit`.
pub struct Largest {
    key: Key,
    limit: usize,
    found: Vec<Shown>,
    /// Value that a command must exceed.
    least: Option<u64>,
}

impl Largest {
    /// Creates an empty selection.
    pub fn new(key: Key, limit: usize) -> Self {
        Self { key, limit, found: Vec::new(), least: None }
    }

    /// Returns whether a command that ended after all others may be selected.
    pub fn wants(&self, command: &Command) -> bool {
        self.limit > 0 && self.least.is_none_or(|least| self.key.value(command) > least)
    }

    /// Adds a command for which [`wants`](Self::wants) returned true.
    pub fn add(&mut self, shown: Shown) {
        self.found.push(shown);
        // Sorting when the list has doubled keeps memory and time small.
        let most = if self.key == Key::End { self.limit } else { self.limit.saturating_mul(2) };
        if self.found.len() >= most {
            self.sort();
            self.least = self.found.last().map(|last| self.key.value(&last.command));
        }
    }

    fn sort(&mut self) {
        self.found.sort_by_key(|one| (Reverse(self.key.value(&one.command)), one.number));
        self.found.truncate(self.limit);
    }

    /// Returns the selected commands in order.
    pub fn sorted(mut self) -> Vec<Shown> {
        self.sort();
        self.found
    }
}
