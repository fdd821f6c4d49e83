//! Decodes a captured stream.

use bytes::{Buf, Bytes};
use wire::frame::{HEADER, Header, Kind};
use wire::tlp::Tlp;

/// Every TLP of a stream, in order.
pub fn tlps(stream: &[u8]) -> Vec<Tlp> {
    let mut stream = Bytes::copy_from_slice(stream);
    let mut found = Vec::new();
    while let Some(head) = stream.first_chunk::<HEADER>() {
        let header = Header::decode(*head).expect("a frame");
        stream.advance(HEADER);
        let mut payload = stream.split_to(usize::from(header.length));
        while header.kind == Kind::Tlps && !payload.is_empty() {
            found.push(Tlp::decode(&mut payload).expect("a TLP"));
        }
    }
    found
}
