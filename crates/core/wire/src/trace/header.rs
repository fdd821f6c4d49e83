//! The header of a trace file.

use bytes::{Buf, BufMut};
use thiserror::Error;

/// The first bytes of every trace file.
pub const MAGIC: [u8; 8] = *b"FLTRACE\0";
/// Version of the format.
pub const VERSION: u16 = 2;
/// The oldest version that is read: it has no hashes of payloads.
pub const FIRST_VERSION: u16 = 1;
/// The clock's description in traces of a simulation. Files with this description and the same
/// start share exactly one clock.
pub const VIRTUAL_CLOCK: &str = "virtual time of a simulation, the same in all its nodes";
/// Bytes before the description of the clock.
const FIXED: usize = 40;

numbers! {
    /// The kind of the node that wrote a trace.
    pub enum NodeRole: u8 {
        /// The host node: root complex and upstream port.
        Host = 1 "host",
        /// A device node: downstream port and drive.
        Device = 2 "device",
        /// A switch node: a device node for its host, and a host node for its devices.
        Switch = 3 "switch",
    }
}

/// The header of a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The node that wrote the trace.
    pub role: NodeRole,
    /// Whether the file is a ring: its middle may be missing.
    pub ring: bool,
    /// A number that no other trace has.
    pub instance: u64,
    /// Nanoseconds from 1970-01-01 (UTC) to time 0 of the trace, by the node's wall clock, which
    /// may be wrong.
    pub start_unix_ns: u64,
    /// The maximum number of payload bytes kept of a TLP; 0 if this differs by kind.
    pub snap: u16,
    /// Check value of the payload hashes' key, [`PayloadKey::check`](super::PayloadKey::check).
    /// Files with the same value have the same key; 0 without a key.
    pub key: u64,
    /// Description of the clock, for users.
    pub clock: String,
}

/// Why bytes are not a valid trace header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The first bytes are not [`MAGIC`].
    #[error("the file is not a farlane trace")]
    Magic,
    /// An unknown version.
    #[error("trace version {0} is not supported: this program reads {FIRST_VERSION} to {VERSION}")]
    Version(u16),
    /// The file ends in its header.
    #[error("the trace ends inside its header")]
    Short,
    /// An undefined role, or lengths that contradict each other.
    #[error("the trace has a damaged header")]
    Field,
}

impl Header {
    /// Appends the header. A clock description above 1000 bytes is truncated.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut end = self.clock.len().min(1000);
        while !self.clock.is_char_boundary(end) {
            end -= 1;
        }
        out.put_slice(&MAGIC);
        out.put_u16(VERSION);
        out.put_u16((FIXED + end) as u16);
        out.put_u8(self.role as u8);
        out.put_u8(u8::from(self.ring));
        out.put_u16(self.snap);
        out.put_u64(self.instance);
        out.put_u64(self.start_unix_ns);
        out.put_u64(self.key);
        out.put_slice(&self.clock.as_bytes()[..end]);
    }

    /// The header at the front of `bytes`, and its length in bytes.
    ///
    /// # Errors
    /// [`Malformed`] names the fault.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let have = bytes.len().min(MAGIC.len());
        if bytes[..have] != MAGIC[..have] {
            return Err(Malformed::Magic);
        }
        let mut rest = bytes.get(MAGIC.len()..FIXED).ok_or(Malformed::Short)?;
        let version = rest.get_u16();
        if !(FIRST_VERSION..=VERSION).contains(&version) {
            return Err(Malformed::Version(version));
        }
        let length = usize::from(rest.get_u16());
        let role = NodeRole::from_number(rest.get_u8()).ok_or(Malformed::Field)?;
        let ring = rest.get_u8() & 1 != 0;
        let snap = rest.get_u16();
        let (instance, start_unix_ns, key) = (rest.get_u64(), rest.get_u64(), rest.get_u64());
        if length < FIXED {
            return Err(Malformed::Field);
        }
        let clock = bytes.get(FIXED..length).ok_or(Malformed::Short)?;
        let clock = String::from_utf8_lossy(clock).into_owned();
        Ok((Self { role, ring, instance, start_unix_ns, snap, key, clock }, length))
    }
}
