//! Data formats of farlane: units, PCIe transaction-layer packets, NVMe structures, the tunnel's
//! frames, vfio-user messages, trace and capture files.
//!
//! Everything here is a view of bytes or a validated value, without behaviour.
//!
//! # Modules
//!
//! - [`tlp`]: transaction-layer packets and runs of them
//! - [`nvme`]: NVMe registers, queue entries, status, identify data, log pages
//! - [`frame`]: frames of the tunnel
//! - [`push`]: the message of pushed bytes
//! - [`raw`]: the header of raw Ethernet
//! - [`vfio_user`]: vfio-user messages
//! - [`trace`]: records of trace files
//! - [`pcapng`]: capture files
//! - [`time`]: instants and durations in picoseconds
//! - [`units`]: text form of numbers with units
//! - [`id`]: bus, device and function numbers; tags
//! - `table`: tables with numbers as keys
//! - `arena`: memory for short-lived bytes
//! - `macros`: structures and enums that derive their codecs
//!
//! # Example
//!
//! A memory write of four bytes, encoded and decoded:
//!
//! ```
//! use bytes::Bytes;
//! use farlane_wire::Bdf;
//! use farlane_wire::tlp::{Packet, Tlp};
//!
//! let requester = Bdf::new(3, 0, 0);
//! let data = Bytes::from_static(&[1, 2, 3, 4]);
//! let write = Tlp::write_bytes(requester, 0xfebf_1008, &data).expect("within 4 KiB");
//! assert_eq!(write.mnemonic(), "MWr32");
//!
//! let mut bytes = Vec::new();
//! write.encode(&mut bytes);
//! assert_eq!(bytes[..4], [0x40, 0, 0, 1], "format and type, length in double words");
//! assert_eq!(bytes[8..], [0xfe, 0xbf, 0x10, 0x08, 1, 2, 3, 4], "address, data");
//!
//! let decoded = Tlp::decode(&mut Bytes::from(bytes))?;
//! assert_eq!(decoded, write);
//! let Packet::MemoryWrite(request) = decoded.packet else { panic!("no write") };
//! assert_eq!((request.requester, request.first_byte()), (requester, 0xfebf_1008));
//! # Ok::<(), farlane_wire::tlp::Malformed>(())
//! ```

#[macro_use]
mod macros;

mod arena;
pub mod frame;
pub mod id;
pub mod nvme;
pub mod pcapng;
pub mod push;
pub mod raw;
mod table;
pub mod time;
pub mod tlp;
pub mod trace;
pub mod units;
pub mod vfio_user;

pub use arena::Arena;
pub use id::{Bdf, Tag};
pub use table::{Mix, Table};
pub use time::{Duration, Instant, earliest};

/// The bytes of the hexadecimal digits in `text`; ignores white space.
#[cfg(test)]
fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let pair = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(pair).collect()
}

/// The bytes that `encode` appends.
#[cfg(test)]
fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}
