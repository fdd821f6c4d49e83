//! Runs the TCP stack, one received or sent frame at a time, and reports the resulting events.

use smoltcp::iface::PollResult;
use wire::Instant;

use super::connection::Connection;
use super::segment::Segment;
use super::{Host, SocketId, clock};
use crate::ethernet::{Frame, FrameLatency};

/// IPv4 and TCP headers without options, bytes (RFC 791, RFC 9293, 3.1).
const HEADERS: usize = 40;

impl Host {
    /// Passes a frame to the stack and reports the resulting events.
    pub(super) fn receive(&mut self, now: Instant, frame: Frame) {
        self.counters.received += 1;
        let index = Segment::parse(&frame.bytes).and_then(|segment| self.find_socket(&segment));
        self.device.received = Some(frame.bytes);
        self.device.waiting = self.frames.len();
        let set = match index {
            Some(index) => &mut self.connections[index].set,
            None => &mut self.no_socket,
        };
        self.interface.poll_ingress_single(clock::to_stack(now), &mut self.device, set);
        self.queue_frame(now, index);
        if let Some(index) = index {
            self.connections[index].dirty = true;
            self.collect_events(index, Some(frame.latency));
        }
    }

    /// Polls the connections in turn for one frame. Returns whether there may be more work.
    pub(super) fn run(&mut self, now: Instant) -> bool {
        if self.connections.is_empty() {
            return false;
        }
        for step in 0..self.connections.len() {
            let index = (self.next_turn + step) % self.connections.len();
            let connection = &mut self.connections[index];
            if !connection.dirty && connection.wake.is_none_or(|at| at > now) {
                continue;
            }
            let made = self.poll_connection(now, index);
            self.collect_events(index, None);
            if made {
                self.next_turn = index + 1;
                return true;
            }
            if self.connections[index].is_finished() {
                self.connections.swap_remove(index);
                return true;
            }
            if !self.events.is_empty() {
                return true;
            }
        }
        false
    }

    /// Polls one connection for a frame. Returns whether there was one; if not, sets the timer of
    /// the connection.
    fn poll_connection(&mut self, now: Instant, index: usize) -> bool {
        let time = clock::to_stack(now);
        let connection = &mut self.connections[index];
        connection.avoid_silly_segments(self.config.mtu - HEADERS);
        let result = self.interface.poll_egress(time, &mut self.device, &mut connection.set);
        if result != PollResult::None || self.device.frame.is_some() {
            connection.dirty = true;
            self.queue_frame(now, Some(index));
            return true;
        }
        connection.dirty = false;
        let at = self.interface.poll_at(time, &connection.set);
        connection.wake = at.map(clock::from_stack);
        assert!(
            connection.wake.is_none_or(|at| at > now) || connection.is_finished(),
            "the TCP stack wakes at once, but has nothing to send"
        );
        false
    }

    /// Reports the events of a connection to its owner.
    pub(super) fn collect_events(&mut self, index: usize, frame: Option<FrameLatency>) {
        let connection = &mut self.connections[index];
        while let Some(event) = connection.event(self.config.low_water, frame) {
            self.events.push_back(event);
        }
    }

    /// Closes or aborts a connection, as `how` does.
    pub(super) fn end(&mut self, socket: SocketId, how: impl FnOnce(&mut Connection)) {
        let found = self.connections.iter().position(|connection| connection.id == socket);
        if let Some(index) = found {
            how(&mut self.connections[index]);
            self.connections[index].dirty = true;
            self.collect_events(index, None);
        }
    }

    /// Queues the frame that the stack sent.
    fn queue_frame(&mut self, now: Instant, index: Option<usize>) {
        let Some(mut bytes) = self.device.frame.take() else { return };
        let mut priority = 0;
        if let Some(index) = index {
            priority = self.connections[index].priority;
            if let Some(segment) = Segment::parse(&bytes) {
                self.record_sent(index, segment, &mut bytes);
            }
        }
        let id = self.config.first_frame + self.frames_made;
        self.frames_made += 1;
        self.frames.push_back(Frame::new(id, bytes.freeze(), priority, now));
    }

    /// Records a sent segment, and corrects the sequence number of an acknowledgement.
    ///
    /// After a timeout smoltcp resets its send position, and acknowledges with the sequence number
    /// of the retransmission. A peer that already has the data drops such an acknowledgement as old
    /// (RFC 9293, 3.10.7.4). Two peers that both do so never recover. Therefore acknowledgements
    /// carry the number after all sent bytes, as in other stacks.
    fn record_sent(&mut self, index: usize, mut segment: Segment, bytes: &mut [u8]) {
        let connection = &mut self.connections[index];
        if segment.is_pure_ack() {
            let next = connection.next_sequence();
            if segment.sequence != next {
                segment.set_sequence(bytes, next);
            }
        } else if !segment.rst {
            let again = u64::from(!connection.record_sent(&segment));
            connection.retransmitted += again;
            self.counters.retransmitted += again;
        }
    }

    /// The connection of a segment, otherwise a connection that listens on its port.
    fn find_socket(&self, segment: &Segment) -> Option<usize> {
        let peer = self.connections.iter().position(|connection| connection.is_peer(segment));
        peer.or_else(|| {
            let listens = |connection: &Connection| connection.listens(segment.destination_port);
            self.connections.iter().position(listens)
        })
    }
}
