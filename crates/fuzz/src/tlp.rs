//! The TLP codec: a decoded TLP survives encoding and decoding.

use bytes::Bytes;
use wire::tlp::{self, Tlp};

pub fn run(data: &[u8]) {
    let mut input = Bytes::copy_from_slice(data);
    while !input.is_empty() {
        let before = input.len();
        let Ok(tlp) = Tlp::decode(&mut input) else {
            assert_eq!(input.len(), before, "an error takes nothing");
            return;
        };
        assert_eq!(before - input.len(), tlp.wire_length());
        let mut bytes = Vec::new();
        tlp.encode(&mut bytes);
        assert_eq!(tlp::total_length(&bytes), Some(bytes.len()));
        let mut again = Bytes::from(bytes);
        assert_eq!(Tlp::decode(&mut again).as_ref(), Ok(&tlp));
        assert!(again.is_empty());
        assert!(!tlp.mnemonic().is_empty());
        pcie::bridge::unsupported_request(wire::Bdf::new(1, 0, 0), &tlp);
    }
}
