//! One socket of smoltcp, with additional state of the host.

use bytes::BytesMut;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use wire::{Duration, Instant};

use super::clock;
use super::segment::Segment;
use super::{Config, Output, SocketId};
use crate::ethernet::FrameLatency;
use crate::memory::take_memory;

/// How long a closed connection waits for acknowledgements of its last bytes. Linux waits longer, but
/// nobody sees it.
const ORPHAN: Duration = Duration::from_ms(2_000);

/// The state of a connection as reported to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Open,
    /// `Closed` was reported; the stack may still send a FIN or RST.
    Closed,
}

/// A connection of the host. Each socket has its own set, so that the host can choose the socket to
/// poll and skip idle sockets.
#[derive(Debug)]
pub(super) struct Connection {
    pub id: SocketId,
    pub priority: u8,
    pub set: SocketSet<'static>,
    handle: SocketHandle,
    phase: Phase,
    /// Bytes written by the owner.
    written: u64,
    /// Written bytes that were sent at least once.
    sent: u64,
    /// Sequence number of the first byte.
    first: u32,
    /// Whether a FIN was sent.
    finished: bool,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Whether the owner waits for room.
    starved: bool,
    /// Whether the stack must be polled for frames after an event.
    pub dirty: bool,
    /// When to poll the stack next.
    pub wake: Option<Instant>,
    /// Memory for the next bytes received.
    memory: BytesMut,
}

impl Connection {
    pub(super) fn new(id: SocketId, priority: u8, config: &Config) -> Self {
        let buffer = |bytes| tcp::SocketBuffer::new(vec![0; bytes]);
        let mut socket =
            tcp::Socket::new(buffer(config.receive_buffer), buffer(config.send_buffer));
        socket.set_congestion_control(tcp::CongestionControl::Reno);
        socket.set_ack_delay(config.ack_delay.map(clock::span));
        socket.set_timeout(config.user_timeout.map(clock::span));
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        Self {
            id,
            priority,
            set,
            handle,
            phase: Phase::Opening,
            written: 0,
            sent: 0,
            first: 0,
            finished: false,
            retransmitted: 0,
            starved: false,
            dirty: true,
            wake: None,
            memory: BytesMut::new(),
        }
    }

    pub(super) fn socket(&self) -> &tcp::Socket<'static> {
        self.set.get(self.handle)
    }

    pub(super) fn socket_mut(&mut self) -> &mut tcp::Socket<'static> {
        self.set.get_mut(self.handle)
    }

    /// Enables Nagle's algorithm while a full segment is ready, so that the stack does not shorten
    /// the segment to the rest of the congestion window (RFC 9293, 3.8.6.2.1: the sender's silly
    /// window syndrome). Otherwise bytes of the tunnel leave at once, as with TCP_NODELAY in live
    /// nodes.
    pub(super) fn avoid_silly_segments(&mut self, mss: usize) {
        let full = self.unsent() >= mss as u64;
        self.socket_mut().set_nagle_enabled(full);
    }

    /// Whether a segment is for this connection.
    pub(super) fn is_peer(&self, segment: &Segment) -> bool {
        let socket = self.socket();
        let (Some(local), Some(remote)) = (socket.local_endpoint(), socket.remote_endpoint())
        else {
            return false;
        };
        local.port == segment.destination_port
            && remote.port == segment.source_port
            && remote.addr == segment.source.into()
    }

    /// Whether the connection listens on this port.
    pub(super) fn listens(&self, port: u16) -> bool {
        self.socket().is_listening() && self.socket().listen_endpoint().port == port
    }

    /// Whether the connection has ended and has nothing more to send.
    pub(super) fn is_finished(&self) -> bool {
        // An aborted socket has a peer until it has sent its RST.
        self.phase == Phase::Closed
            && self.socket().state() == tcp::State::Closed
            && self.socket().remote_endpoint().is_none()
    }

    /// Bytes written but never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    /// Closes the connection once the peer has all bytes, or does not answer for a while.
    pub(super) fn close(&mut self) {
        self.socket_mut().set_timeout(Some(clock::span(ORPHAN)));
        self.socket_mut().close();
    }

    /// Room for bytes of the owner. If zero, `Writable` follows when there is room.
    pub(super) fn free_to_send(&mut self, low_water: usize) -> usize {
        let free = self.free(low_water);
        self.starved = free == 0;
        free
    }

    /// Room for bytes of the owner, without a later `Writable`.
    pub(super) fn free(&self, low_water: usize) -> usize {
        let socket = self.socket();
        if self.phase != Phase::Open || !socket.may_send() || self.unsent() >= low_water as u64 {
            return 0;
        }
        socket.send_capacity() - socket.send_queue()
    }

    pub(super) fn send(&mut self, data: &[u8]) {
        if self.phase != Phase::Open || !self.socket().may_send() {
            // The peer has closed the connection while the owner wrote.
            return;
        }
        let taken = self.socket_mut().send_slice(data).expect("it may send");
        assert_eq!(taken, data.len(), "more was written than there was room");
        self.written += taken as u64;
        self.dirty = true;
    }

    /// Records a sent segment. Returns whether it had new data, or its first SYN or FIN.
    pub(super) fn record_sent(&mut self, segment: &Segment) -> bool {
        if segment.syn {
            self.first = segment.sequence.wrapping_add(1);
            return true;
        }
        let finishes = segment.fin && !self.finished;
        self.finished |= segment.fin;
        let end = segment.sequence.wrapping_add(segment.length as u32);
        let known = self.first.wrapping_add(self.sent as u32);
        let new = end.wrapping_sub(known) as i32;
        if new > 0 {
            self.sent = (self.sent + new as u64).min(self.written);
        }
        new > 0 || finishes
    }

    /// The sequence number after all sent bytes.
    pub(super) fn next_sequence(&self) -> u32 {
        self.first.wrapping_add(self.sent as u32).wrapping_add(u32::from(self.finished))
    }

    /// The next event. `latency` is the latency of the frame that was just received, if any.
    pub(super) fn event(
        &mut self,
        low_water: usize,
        latency: Option<FrameLatency>,
    ) -> Option<Output> {
        use tcp::State::{CloseWait, Closed, Established, TimeWait};
        let (socket, state) = (self.id, self.socket().state());
        if self.phase == Phase::Opening && matches!(state, Established | CloseWait) {
            self.phase = Phase::Open;
            return Some(Output::Connected(socket));
        }
        if self.socket().can_recv() {
            let memory = &mut self.memory;
            let read = |bytes: &mut [u8]| {
                let mut data = take_memory(memory, bytes.len());
                data.copy_from_slice(bytes);
                (bytes.len(), data.freeze())
            };
            let socket = self.set.get_mut::<tcp::Socket>(self.handle);
            let data = socket.recv(read).expect("there is data");
            self.dirty = true;
            let latency = latency.expect("data come with a frame");
            return Some(Output::Received { socket: self.id, data, latency });
        }
        if self.phase != Phase::Closed && matches!(state, CloseWait | Closed | TimeWait) {
            // Also closes this side, because owners do not send on a half-closed connection.
            self.phase = Phase::Closed;
            self.socket_mut().close();
            self.dirty = true;
            return Some(Output::Closed(socket));
        }
        if self.starved && self.free(low_water) > 0 {
            self.starved = false;
            return Some(Output::Writable(socket));
        }
        None
    }
}
