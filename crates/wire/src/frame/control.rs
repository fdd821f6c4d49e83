//! Frames that steer the link; they stand outside sequence and credits.

use super::{Kind, MAGIC, Malformed};
use bytes::{Buf, BufMut};

/// Which end of a link, or neither, a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// The host's side: it has the upstream port.
    Host = 1,
    /// The device's side: it has the endpoint.
    Device = 2,
    /// Neither: measures the link and carries no TLPs.
    Probe = 3,
}

/// Cumulative flow-control limits of one class: how many headers and 16-byte
/// data credits the other side may have sent since the link came up, modulo
/// 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Headers: one a TLP.
    pub headers: u32,
    /// Data credits of 16 bytes (PCIe Base 4.0, section 2.6.1).
    pub data: u32,
}

/// The first frame of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Protocol version of the sender.
    pub version: u16,
    /// Which end the sender is.
    pub role: Role,
    /// Largest TLP payload the sender takes, in bytes: 128 to 4096.
    pub max_payload: u16,
    /// The group that a host belongs to; 0 from others, and from hosts of none.
    pub group: u16,
    /// A number that is new with every start of the sending process, so that
    /// a restarted node is not taken for the old one.
    pub instance: u64,
    /// First limits for posted, non-posted and completion TLPs.
    pub credits: [Grant; 3],
}

/// Why a greeting was turned down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reject {
    /// The versions differ.
    Version = 1,
    /// Another host uses this device.
    Busy = 2,
    /// The roles do not fit together.
    Role = 3,
    /// The device belongs to another group of hosts.
    Group = 4,
}

/// A control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Greeting.
    Hello(Hello),
    /// The greeting is turned down; the connection ends.
    Reject {
        /// Why.
        reason: Reject,
        /// The version of the side that turns down.
        version: u16,
    },
    /// New limits for posted, non-posted and completion TLPs.
    Credits([Grant; 3]),
    /// Nothing but the header's acknowledgement; also keeps an idle link
    /// alive.
    Acknowledge,
    /// Wants an [`EchoReply`](Self::EchoReply) with the same number.
    Echo(u64),
    /// Answers an echo.
    EchoReply(u64),
    /// Hot reset of everything below: forget what is queued, then answer
    /// [`ResetDone`](Self::ResetDone).
    Reset,
    /// The reset is done; TLPs after this frame are of the time after it.
    ResetDone,
    /// The sender closes the link on purpose.
    Goodbye,
    /// The device belongs to hosts of this group from now on; to any with 0.
    Move(u16),
}

impl Control {
    /// What the header says.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Reject { .. } => Kind::Reject,
            Self::Credits(_) => Kind::Credits,
            Self::Acknowledge => Kind::Acknowledge,
            Self::Echo(_) => Kind::Echo,
            Self::EchoReply(_) => Kind::EchoReply,
            Self::Reset => Kind::Reset,
            Self::ResetDone => Kind::ResetDone,
            Self::Goodbye => Kind::Goodbye,
            Self::Move(_) => Kind::Move,
        }
    }

    /// Appends the payload, without the frame header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => {
                out.put_slice(&MAGIC);
                out.put_u16(hello.version);
                out.put_u8(hello.role as u8);
                out.put_u8(0);
                out.put_u16(hello.max_payload);
                out.put_u16(hello.group);
                out.put_u64(hello.instance);
                put_grants(out, &hello.credits);
            }
            Self::Reject { reason, version } => {
                out.put_slice(&MAGIC);
                out.put_u16(*version);
                out.put_u8(*reason as u8);
                out.put_u8(0);
            }
            Self::Credits(grants) => put_grants(out, grants),
            Self::Echo(number) | Self::EchoReply(number) => out.put_u64(*number),
            Self::Move(group) => out.put_u16(*group),
            Self::Acknowledge | Self::Reset | Self::ResetDone | Self::Goodbye => {}
        }
    }

    /// A control frame from its payload.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong. A greeting of another version is no
    /// error as far as magic and version can be read: its further fields are
    /// then taken as empty.
    pub fn decode(kind: Kind, payload: &[u8]) -> Result<Self, Malformed> {
        let length = payload.len();
        let need = match kind {
            Kind::Tlps => return Err(Malformed::Kind(0)),
            Kind::Hello => return decode_hello(payload),
            Kind::Reject => 12,
            Kind::Credits => 24,
            Kind::Echo | Kind::EchoReply => 8,
            Kind::Move => 2,
            Kind::Acknowledge | Kind::Reset | Kind::ResetDone | Kind::Goodbye => 0,
        };
        if length != need {
            return Err(Malformed::Length { kind, length });
        }
        let mut payload = payload;
        Ok(match kind {
            Kind::Reject => {
                check_magic(&mut payload)?;
                let version = payload.get_u16();
                let reason = match payload.get_u8() {
                    1 => Reject::Version,
                    2 => Reject::Busy,
                    3 => Reject::Role,
                    4 => Reject::Group,
                    other => return Err(undefined("reject reason", other)),
                };
                Self::Reject { reason, version }
            }
            Kind::Credits => Self::Credits(get_grants(&mut payload)),
            Kind::Echo => Self::Echo(payload.get_u64()),
            Kind::EchoReply => Self::EchoReply(payload.get_u64()),
            Kind::Reset => Self::Reset,
            Kind::ResetDone => Self::ResetDone,
            Kind::Goodbye => Self::Goodbye,
            Kind::Move => Self::Move(payload.get_u16()),
            Kind::Acknowledge | Kind::Tlps | Kind::Hello => Self::Acknowledge,
        })
    }
}

fn undefined(field: &'static str, value: impl Into<u64>) -> Malformed {
    Malformed::Field { field, value: value.into() }
}

fn check_magic(payload: &mut &[u8]) -> Result<(), Malformed> {
    let mut magic = [0; 8];
    payload.copy_to_slice(&mut magic);
    if magic == MAGIC { Ok(()) } else { Err(Malformed::Magic(magic)) }
}

/// Bytes of a greeting's payload in version 1.
pub(super) const HELLO: usize = 48;

fn decode_hello(payload: &[u8]) -> Result<Control, Malformed> {
    let length = payload.len();
    let short = Malformed::Length { kind: Kind::Hello, length };
    if length < 10 {
        return Err(short);
    }
    let mut payload = payload;
    check_magic(&mut payload)?;
    let version = payload.get_u16();
    if version != super::VERSION {
        let credits = [Grant::default(); 3];
        let (role, max_payload) = (Role::Probe, 128);
        let hello = Hello { version, role, max_payload, group: 0, instance: 0, credits };
        return Ok(Control::Hello(hello));
    }
    if length != HELLO {
        return Err(short);
    }
    let role = match payload.get_u8() {
        1 => Role::Host,
        2 => Role::Device,
        3 => Role::Probe,
        other => return Err(undefined("role", other)),
    };
    payload.advance(1);
    let max_payload = payload.get_u16();
    if !max_payload.is_power_of_two() || !(128..=4096).contains(&max_payload) {
        return Err(undefined("max payload", max_payload));
    }
    let group = payload.get_u16();
    let instance = payload.get_u64();
    let credits = get_grants(&mut payload);
    Ok(Control::Hello(Hello { version, role, max_payload, group, instance, credits }))
}

fn put_grants(out: &mut Vec<u8>, grants: &[Grant; 3]) {
    for grant in grants {
        out.put_u32(grant.headers);
        out.put_u32(grant.data);
    }
}

fn get_grants(payload: &mut &[u8]) -> [Grant; 3] {
    std::array::from_fn(|_| Grant { headers: payload.get_u32(), data: payload.get_u32() })
}
