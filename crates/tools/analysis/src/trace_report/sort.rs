//! The order of commands.

use super::Shown;
use crate::commands::Command;
use std::cmp::Reverse;

wire::named! {
    /// What commands are sorted by.
    pub enum Key {
        /// As they ended, the first one first.
        End "end",
        /// From the tail doorbell to the head doorbell, the longest first.
        Duration "duration",
        /// Bytes of data that moved, the most first.
        Bytes "bytes",
        /// TLPs, the most first.
        Tlps "tlps",
    }
}

impl Key {
    /// The order, in words.
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
            Self::Duration => command.duration().map_or(0, |total| total.as_ns()),
            Self::Bytes => command.moved,
            Self::Tlps => command.traffic.tlps(),
        }
    }
}

/// The first commands in an order, at most `limit`.
pub struct Largest {
    key: Key,
    limit: usize,
    found: Vec<Shown>,
    /// What a command needs more of than this.
    least: Option<u64>,
}

impl Largest {
    /// None yet.
    pub fn new(key: Key, limit: usize) -> Self {
        Self { key, limit, found: Vec::new(), least: None }
    }

    /// Whether a command that ended after the others may be one of them.
    pub fn wants(&self, command: &Command) -> bool {
        self.limit > 0 && self.least.is_none_or(|least| self.key.value(command) > least)
    }

    /// Takes a command for which [`wants`](Self::wants) returns true.
    pub fn add(&mut self, shown: Shown) {
        self.found.push(shown);
        // Sorted now and then: memory for twice as many is enough.
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

    /// All of them, in order.
    pub fn sorted(mut self) -> Vec<Shown> {
        self.sort();
        self.found
    }
}
