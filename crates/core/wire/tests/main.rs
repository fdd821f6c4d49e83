//! Documents and codecs say the same.

mod document;
mod protocol_document;
mod trace_document;
