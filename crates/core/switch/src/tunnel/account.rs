//! Counters and reports of one end of a link.

use super::report::Reports;

/// Counters of one link end over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of times the link came up.
    pub connections: u64,
    /// Number of times the session went on over another connection.
    pub resumed: u64,
    /// Number of times another path took over from the active one, which was silent or lost.
    pub failovers: u64,
    /// Number of TLP frames sent again over another connection.
    pub frames_sent_again: u64,
    /// Number of received TLP frames that another path had delivered before.
    pub copies: u64,
    /// Number of TLP frames sent, each counted once.
    pub frames_sent: u64,
    /// Number of TLPs sent.
    pub tlps_sent: u64,
    /// Number of bytes sent, headers included.
    pub bytes_sent: u64,
    /// Number of TLP frames received.
    pub frames_received: u64,
    /// Number of TLPs received.
    pub tlps_received: u64,
    /// Number of bytes received, headers included.
    pub bytes_received: u64,
}

impl Counters {
    /// Name and value of each counter, in a fixed order.
    pub fn list(&self) -> [(&'static str, u64); 11] {
        [
            ("connections", self.connections),
            ("resumed", self.resumed),
            ("failovers", self.failovers),
            ("frames_sent_again", self.frames_sent_again),
            ("copies", self.copies),
            ("frames_sent", self.frames_sent),
            ("tlps_sent", self.tlps_sent),
            ("bytes_sent", self.bytes_sent),
            ("frames_received", self.frames_received),
            ("tlps_received", self.tlps_received),
            ("bytes_received", self.bytes_received),
        ]
    }

    /// The counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            connections: self.connections - before.connections,
            resumed: self.resumed - before.resumed,
            failovers: self.failovers - before.failovers,
            frames_sent_again: self.frames_sent_again - before.frames_sent_again,
            copies: self.copies - before.copies,
            frames_sent: self.frames_sent - before.frames_sent,
            tlps_sent: self.tlps_sent - before.tlps_sent,
            bytes_sent: self.bytes_sent - before.bytes_sent,
            frames_received: self.frames_received - before.frames_received,
            tlps_received: self.tlps_received - before.tlps_received,
            bytes_received: self.bytes_received - before.bytes_received,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Account {
    pub counters: Counters,
    pub reports: Reports,
}
