//! Documents and codecs agree.

mod document;
mod protocol_document;
mod trace_document;
