//! Reports of frames sent and received, for traces and time accounting.

use super::{HEADER, Header, Kind};
use crate::tlp::TraceId;
use crate::trace::{HEAD, MAX_HEADS};

/// The maximum number of payload bytes of a control frame in a report: the whole payload of every
/// known frame, except the later entries of a greeting.
const MAX_CONTROL: usize = 64;

/// Initial capacity for TLPs of a frame.
const USUAL: usize = 32;

/// A frame that was sent or completely received. A report of a frame that violates the protocol has
/// the TLPs before the violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameReport {
    /// Whether this end sent the frame.
    pub sent: bool,
    /// The header of the frame.
    pub header: Header,
    /// Offset of the header in the byte stream of the connection.
    pub begin: u64,
    /// The trace ID of each TLP in the frame, and the offset of the TLP's end in the byte stream.
    pub trace_ids: Vec<(TraceId, u64)>,
    /// The headers of the first [`MAX_HEADS`] TLPs, [`HEAD`] bytes each, padded with zeroes.
    pub heads: Vec<u8>,
    /// The first 64 bytes of a control frame's payload.
    pub payload: Vec<u8>,
}

impl FrameReport {
    /// A report of a frame without TLPs; [`add_tlp`](Self::add_tlp) adds them.
    pub fn new(sent: bool, header: Header, begin: u64, payload: &[u8]) -> Self {
        let kept = if header.kind == Kind::Tlps { 0 } else { payload.len().min(MAX_CONTROL) };
        let payload = payload[..kept].to_vec();
        Self { sent, header, begin, trace_ids: Vec::new(), heads: Vec::new(), payload }
    }

    /// Adds the next TLP.
    pub fn add_tlp(&mut self, trace_id: TraceId, bytes: &[u8]) {
        let start = self.trace_ids.last().map_or(self.begin + HEADER as u64, |(_, end)| *end);
        if self.trace_ids.is_empty() {
            self.trace_ids.reserve(USUAL);
            self.heads.reserve(USUAL * HEAD);
        }
        self.trace_ids.push((trace_id, start + bytes.len() as u64));
        if self.trace_ids.len() <= MAX_HEADS {
            // Payload bytes may be user data, so only the header is kept: four DW if Fmt[0] is set
            // (PCIe Base 4.0, section 2.2.1).
            let header = if bytes.first().is_some_and(|fmt| fmt & 0x20 != 0) { HEAD } else { 12 };
            self.heads.extend_from_slice(&bytes[..bytes.len().min(header)]);
            self.heads.resize(self.trace_ids.len() * HEAD, 0);
        }
    }

    /// Offset of the end of the frame in the byte stream of the connection.
    pub fn end(&self) -> u64 {
        self.begin + HEADER as u64 + u64::from(self.header.length)
    }
}
