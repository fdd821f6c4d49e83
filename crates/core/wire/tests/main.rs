//! Documents and codecs agree.

extern crate farlane_wire as wire;

mod document;
mod protocol_document;
mod trace_document;
