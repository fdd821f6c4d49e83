//! An analyser that follows a port, both when a trace is written and when it is read.

use crate::commands::{Analyser, AnalyserSettings, Direction, Limits};
use std::collections::HashMap;
use std::ops::Range;
use wire::Instant;
use wire::frame::Kind;
use wire::tlp::Tlp;
use wire::trace::{Follower, LinkState, Record, Tap};

/// Limits of a follower that only classifies payloads: it stores commands in flight and no steps.
const RECORDING: Limits = Limits { commands: 1 << 16, steps: 0, events: 1, data: 1 << 20 };

/// An analyser, and the links whose loss resets the devices behind them.
#[derive(Debug, Default)]
pub struct PortFollower {
    pub(super) analyser: Analyser,
    /// Number of connections of each link.
    connected: HashMap<Tap, u32>,
}

impl PortFollower {
    /// Creates a follower for a node that records.
    pub fn recording() -> Self {
        Self::new(AnalyserSettings { limits: RECORDING, ..AnalyserSettings::default() })
    }

    pub(super) fn new(settings: AnalyserSettings) -> Self {
        Self { analyser: Analyser::new(settings), ..Self::default() }
    }

    fn reset(&mut self, tap: Tap) {
        match tap.port() {
            Some(port) => self.analyser.port_reset(port as u8),
            None => self.analyser.link_reset(),
        }
    }
}

impl Follower for PortFollower {
    fn tlp(&mut self, up: bool, tlp: &Tlp) -> usize {
        let direction = if up { Direction::Up } else { Direction::Down };
        self.analyser.push(Instant::ZERO, direction, tlp);
        while self.analyser.next_event().is_some() {}
        self.analyser.protocol()
    }

    fn parts(&self) -> Option<&[Range<usize>]> {
        self.analyser.protocol_parts()
    }

    fn link(&mut self, record: &Record<'_>) {
        match *record {
            Record::Control { tap, kind, .. } if kind == Kind::Reset as u8 => self.reset(tap),
            Record::Link { tap, state: LinkState::Connected } => {
                let times = self.connected.entry(tap).or_default();
                *times += 1;
                if *times > 1 {
                    self.reset(tap);
                }
            }
            _ => {}
        }
    }
}
