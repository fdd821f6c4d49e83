//! The greeting: a fixed part, then entries of type, length and value
//! (`docs/protocol.md`, "Greeting").

use super::control::{get_grants, put_grants, undefined};
use super::{Grant, Kind, MAGIC, Malformed, VERSION};
use bytes::{Buf, BufMut};

numbers! {
    /// The role of a peer on a link.
    pub enum Role: u8 {
        /// The host's side: it has the upstream port.
        Host = 1,
        /// The device's side: it has the endpoint.
        Device = 2,
        /// A program that measures the link or moves devices, and carries no TLPs.
        Probe = 3,
    }
}

/// The first frame of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Protocol version of the sender.
    pub version: u16,
    /// The role of the sender.
    pub role: Role,
    /// Largest TLP payload that the sender accepts, in bytes: 128 to 4096.
    pub max_payload: u16,
    /// The group of a host; 0 from other roles, and from hosts without a group.
    pub group: u16,
    /// A number that differs with each start of the sending process, so that the peer detects a
    /// restart.
    pub instance: u64,
    /// The maximum number of pushed bytes that a device keeps ([`crate::push`]); 0 if the device
    /// accepts no push messages, and from hosts.
    pub push: u32,
    /// What the sender says about a session that survives its connections; `None`: the session ends
    /// with the connection.
    pub session: Option<Survival>,
    /// How the session uses several paths at the same time; `None`: it has one path.
    pub paths: Option<Paths>,
    /// The place of this connection in a link of several connections; `None`: the link has one.
    pub connection: Option<LinkConnection>,
    /// How long a device carries requests out after the host's last word, in milliseconds
    /// (`docs/protocol.md`, "Lease"); 0: without limit, and from hosts.
    pub lease_ms: u32,
    /// Credit limits for posted, non-posted and completion TLPs: the initial limits, or the present
    /// limits of a session that goes on.
    pub credits: [Grant; 3],
}

numbers! {
    /// How a session uses its paths.
    pub enum Paths: u8 {
        /// One path carries the TLPs, and the others replace it.
        Active = 1,
        /// Each path carries every TLP, and the first copy counts.
        Both = 2,
    }
}

/// One of several connections of a link (`docs/protocol.md`, "Several connections").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConnection {
    /// The name of the link, which only its host and its device know. 0 from a device.
    pub link: u128,
    /// From a host: the number of this connection, from 0. From a device: the number of connections
    /// that a link can have.
    pub number: u16,
    /// I/O queue pairs of a connection, at least 1.
    pub queue_pairs: u16,
}

/// A session that survives its connections (`docs/protocol.md`, "Sessions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survival {
    /// The name of the session, which only its host and its device know. 0 from a device.
    pub id: u128,
    /// How long the sender keeps the session without a connection, in milliseconds.
    pub survive_ms: u32,
    /// The number of the next frame that the sender expects, if the session goes on; `None` if it
    /// begins.
    pub expected: Option<u32>,
}

/// Size in bytes of magic and version, with which the greeting of every version begins.
const VERSIONED: usize = 10;
/// Bytes of the fixed part. A greeting of version 1 has only the fixed part.
pub const FIXED_HELLO: usize = 48;
/// The maximum number of bytes of a greeting, fixed part and entries.
pub const MAX_HELLO: usize = 1024;
/// The maximum number of entries of a greeting.
pub const MAX_ENTRIES: usize = 64;
/// Flag of an entry type: a receiver that does not support the entry rejects the Hello.
pub const REQUIRED: u16 = 1 << 15;
/// Number of the entry with the group of a host. The value has 2 bytes.
const GROUP: u16 = 1;
/// Number of the entry with the limit of pushed bytes that a device keeps. The value has 4 bytes.
const PUSH: u16 = 2;
/// Number of the entry with [`Paths`]. The value has 1 byte.
const PATHS: u16 = 4;
/// Number of the entry with the lease of a device. The value has 4 bytes.
const LEASE: u16 = 6;
/// Number of the entry with a [`Survival`]. The value has 20 or 24 bytes from a host, 4 or 8 from a
/// device.
const SESSION: u16 = 3;
/// Number of the entry with a [`LinkConnection`]. The value has 20 bytes from a host, 4 from a
/// device.
const CONNECTION: u16 = 5;

impl Hello {
    pub(super) fn encode(&self, out: &mut impl BufMut) {
        out.put_slice(&MAGIC);
        out.put_u16(self.version);
        out.put_u8(self.role as u8);
        out.put_u8(0);
        out.put_u16(self.max_payload);
        out.put_u16(0);
        out.put_u64(self.instance);
        put_grants(out, &self.credits);
        if self.group != 0 {
            out.put_u16(GROUP);
            out.put_u16(2);
            out.put_u16(self.group);
        }
        if self.push != 0 {
            out.put_u16(PUSH);
            out.put_u16(4);
            out.put_u32(self.push);
        }
        if let Some(session) = self.session {
            session.encode(self.role, out);
        }
        if let Some(paths) = self.paths {
            out.put_u16(PATHS);
            out.put_u16(1);
            out.put_u8(paths as u8);
        }
        if let Some(connection) = self.connection {
            connection.encode(self.role, out);
        }
        if self.lease_ms != 0 {
            out.put_u16(LEASE);
            out.put_u16(4);
            out.put_u32(self.lease_ms);
        }
    }

    /// Decodes a greeting. For versions other than 1 and [`VERSION`], the fields after the version
    /// are placeholders.
    pub(super) fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let length = payload.len();
        let unfit = Malformed::Length { kind: Kind::Hello, length };
        if length < VERSIONED {
            return Err(unfit);
        }
        let mut rest = payload;
        check_magic(&mut rest)?;
        let version = rest.get_u16();
        match version {
            VERSION if (FIXED_HELLO..=MAX_HELLO).contains(&length) => {
                Self::fixed(version, payload)?.with_entries(&payload[FIXED_HELLO..])
            }
            // Older traces contain version 1.
            1 if length == FIXED_HELLO => {
                let group = u16::from_be_bytes([payload[14], payload[15]]);
                Ok(Self { group, ..Self::fixed(version, payload)? })
            }
            VERSION | 1 => Err(unfit),
            _ => Ok(Self::bare(version)),
        }
    }

    /// A greeting without entries, whose other fields are placeholders.
    fn bare(version: u16) -> Self {
        Self {
            version,
            role: Role::Probe,
            max_payload: 128,
            group: 0,
            instance: 0,
            push: 0,
            session: None,
            paths: None,
            connection: None,
            lease_ms: 0,
            credits: [Grant::default(); 3],
        }
    }

    fn fixed(version: u16, payload: &[u8]) -> Result<Self, Malformed> {
        let mut rest = &payload[VERSIONED..];
        let role = rest.get_u8();
        let role = Role::from_number(role).ok_or(undefined("role", role))?;
        rest.advance(1);
        let max_payload = rest.get_u16();
        if !max_payload.is_power_of_two() || !(128..=4096).contains(&max_payload) {
            return Err(undefined("max payload", max_payload));
        }
        rest.advance(2);
        let instance = rest.get_u64();
        let credits = get_grants(&mut rest);
        Ok(Self { role, max_payload, instance, credits, ..Self::bare(version) })
    }

    fn with_entries(mut self, mut rest: &[u8]) -> Result<Self, Malformed> {
        let (mut last, mut count, mut unknown) = (None, 0, None);
        while !rest.is_empty() {
            let (kind, value) = next_entry(&mut rest)?;
            let number = kind & !REQUIRED;
            let wrong = |fault| Malformed::Entry { number, fault };
            count += 1;
            if count > MAX_ENTRIES {
                return Err(wrong("a greeting has more entries than allowed"));
            }
            if last.is_some_and(|last| number <= last) {
                return Err(wrong("its number is not above the number of the entry before"));
            }
            last = Some(number);
            match number {
                GROUP => {
                    let group = value.try_into().map_err(|_| wrong("its length is not 2 bytes"))?;
                    self.group = u16::from_be_bytes(group);
                }
                PUSH => {
                    let push = value.try_into().map_err(|_| wrong("its length is not 4 bytes"))?;
                    self.push = u32::from_be_bytes(push);
                }
                SESSION => {
                    let session = Survival::decode(self.role, value);
                    self.session = session.map_err(wrong)?;
                }
                PATHS => {
                    let [paths] =
                        value.try_into().map_err(|_| wrong("its length is not 1 byte"))?;
                    self.paths = Some(Paths::from_number(paths).ok_or(undefined("paths", paths))?);
                }
                CONNECTION => {
                    let connection = LinkConnection::decode(self.role, value);
                    self.connection = connection.map_err(wrong)?;
                }
                LEASE => {
                    let lease = value.try_into().map_err(|_| wrong("its length is not 4 bytes"))?;
                    self.lease_ms = u32::from_be_bytes(lease);
                }
                _ if kind & REQUIRED != 0 => unknown = unknown.or(Some(number)),
                _ => {}
            }
        }
        // This check follows the syntax checks, because a malformed Hello gets no answer.
        unknown.map_or(Ok(self), |number| Err(Malformed::Required(number)))
    }
}

impl LinkConnection {
    fn encode(self, role: Role, out: &mut impl BufMut) {
        out.put_u16(CONNECTION);
        out.put_u16(if role == Role::Host { 20 } else { 4 });
        if role == Role::Host {
            out.put_u128(self.link);
        }
        out.put_u16(self.number);
        out.put_u16(self.queue_pairs);
    }

    /// Decodes the value of the entry; `None` from a probe. Error: the fault.
    fn decode(role: Role, mut value: &[u8]) -> Result<Option<Self>, &'static str> {
        let length = match role {
            Role::Host => 20,
            Role::Device => 4,
            Role::Probe => return Ok(None),
        };
        if value.len() != length {
            return Err("its length is not that of a connection");
        }
        let link = if role == Role::Host { value.get_u128() } else { 0 };
        let (number, queue_pairs) = (value.get_u16(), value.get_u16());
        match queue_pairs {
            0 => Err("a connection has at least one queue pair"),
            _ => Ok(Some(Self { link, number, queue_pairs })),
        }
    }
}

impl Survival {
    fn encode(self, role: Role, out: &mut impl BufMut) {
        let Self { id, survive_ms, expected } = self;
        let named = if role == Role::Host { 16 } else { 0 };
        out.put_u16(SESSION);
        out.put_u16(named + 4 + if expected.is_some() { 4 } else { 0 });
        if role == Role::Host {
            out.put_u128(id);
        }
        out.put_u32(survive_ms);
        if let Some(expected) = expected {
            out.put_u32(expected);
        }
    }

    /// Decodes the value of the entry; `None` from a probe. Error: the fault.
    fn decode(role: Role, mut value: &[u8]) -> Result<Option<Self>, &'static str> {
        let rest = match role {
            Role::Host => value.len().wrapping_sub(16),
            Role::Device => value.len(),
            Role::Probe => return Ok(None),
        };
        if rest != 4 && rest != 8 {
            return Err("its length is not that of a session");
        }
        let id = if role == Role::Host { value.get_u128() } else { 0 };
        let survive_ms = value.get_u32();
        let expected = (rest == 8).then(|| value.get_u32());
        Ok(Some(Self { id, survive_ms, expected }))
    }
}

/// Removes the first entry of `rest`; returns its type and value.
fn next_entry<'a>(rest: &mut &'a [u8]) -> Result<(u16, &'a [u8]), Malformed> {
    let cut = |number| Malformed::Entry { number, fault: "it ends after the frame's end" };
    if rest.len() < 4 {
        return Err(cut(0));
    }
    let (kind, length) = (rest.get_u16(), usize::from(rest.get_u16()));
    let (value, after) = rest.split_at_checked(length).ok_or(cut(kind & !REQUIRED))?;
    *rest = after;
    Ok((kind, value))
}

pub(super) fn check_magic(payload: &mut &[u8]) -> Result<(), Malformed> {
    let mut magic = [0; 8];
    payload.copy_to_slice(&mut magic);
    if magic == MAGIC { Ok(()) } else { Err(Malformed::Magic(magic)) }
}
