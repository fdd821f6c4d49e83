//! A frame on its way, with its copies.

use super::cause::{Cause, Causes, Spent};
use super::port::Behind;
use sim::ethernet::{FrameLatency, FrameStage};

/// A start of a frame, or of a copy, on a wire.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub wire: usize,
    /// The start with which the copy reached the sender of this wire; `None` at the first station.
    pub before: Option<usize>,
    pub spent: Spent,
    /// How the time in queues at this port is divided.
    pub queued: Causes,
    pub behind: Vec<Behind>,
}

/// A frame that has not arrived everywhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    pub starts: Vec<Start>,
    /// Wire and start of copies that are on a wire.
    on_wires: Vec<(usize, usize)>,
    /// Node and start of copies that have reached a node, in the order of time.
    reached: Vec<(usize, usize)>,
    /// The listeners at which the frame has arrived.
    pub arrived: Vec<usize>,
}

const NOTHING: Spent = [0; FrameStage::COUNT];

/// Returns the time since the creation of a frame by stage.
pub(super) fn spent(latency: &FrameLatency) -> Spent {
    FrameStage::ALL.map(|stage| latency.spent(stage).as_ps())
}

impl Flight {
    pub fn start(&mut self, start: Start) {
        self.on_wires.push((start.wire, self.starts.len()));
        self.starts.push(start);
    }

    /// A copy has passed a wire to a node.
    pub fn reach(&mut self, wire: usize, node: usize) {
        if let Some(at) = self.on_wires.iter().position(|(on, _)| *on == wire) {
            let (_, start) = self.on_wires.remove(at);
            self.reached.push((node, start));
        }
    }

    /// Returns the start with which a copy that has spent `spent` reached a node: the earliest one
    /// that is possible, because nodes pass on the first copy.
    pub fn before(&self, node: usize, spent: &Spent) -> Option<usize> {
        let mut starts = self.reached.iter().filter(|(at, _)| *at == node).map(|(_, start)| *start);
        let fits = |start: &usize| self.starts[*start].spent.iter().zip(spent).all(|(a, b)| a <= b);
        starts.find(fits)
    }

    /// Returns the starts of the copy that arrived with the start `last` and has spent `spent`, each
    /// with the causes of its hop.
    pub fn path(&self, last: usize, spent: &Spent) -> Vec<(&Start, Causes)> {
        let mut path = Vec::new();
        let (mut at, mut after) = (Some(last), spent);
        while let Some(start) = at.map(|at| &self.starts[at]) {
            let before = start.before.map_or(&NOTHING, |before| &self.starts[before].spent);
            let mut causes = start.queued;
            let at_port = [
                (Cause::Gate, FrameStage::Gate),
                (Cause::Shaper, FrameStage::Shaper),
                (Cause::Bridge, FrameStage::Bridge),
                (Cause::Nic, FrameStage::Nic),
            ];
            for (cause, stage) in at_port {
                causes[cause] += start.spent[stage as usize] - before[stage as usize];
            }
            let behind_port = [
                (Cause::Transmission, FrameStage::Serialisation),
                (Cause::Propagation, FrameStage::Propagation),
                (Cause::Preempted, FrameStage::Preempted),
            ];
            // Only the last hop ends in an interface.
            let receiver = path.is_empty().then_some((Cause::Nic, FrameStage::Nic));
            for (cause, stage) in behind_port.into_iter().chain(receiver) {
                causes[cause] += after[stage as usize] - start.spent[stage as usize];
            }
            path.push((start, causes));
            (at, after) = (start.before, &start.spent);
        }
        path.reverse();
        path
    }
}
