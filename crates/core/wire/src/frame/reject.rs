//! The rejection of a Hello.

use super::hello::check_magic;
use super::{Kind, MAGIC, Malformed, VERSION};
use bytes::{Buf, BufMut};

/// Why a Hello was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reject {
    /// The versions differ.
    #[error("the protocol versions differ")]
    Version,
    /// Another host uses this device.
    #[error("another host uses this device")]
    Busy,
    /// The roles do not fit together.
    #[error("the roles do not fit: a host connects to a device")]
    Role,
    /// The device belongs to another group of hosts. Has the groups of device and host; older nodes
    /// do not send the groups.
    #[error("{}", other_group(.0))]
    Group(Option<(u16, u16)>),
    /// The greeting requires the entry of this number, which the device does not support.
    #[error(
        "the device does not support entry {0} of the greeting, which this node requires; upgrade \
         the device node"
    )]
    UnknownEntry(u16),
    /// The device requires the entry of this number, which the greeting does not have.
    #[error(
        "the device requires entry {0} of the greeting, which this version does not send; \
         upgrade this node"
    )]
    MissingEntry(u16),
    /// The key of the peer does not give the right that its role or group needs.
    #[error("the device node does not give this node's key the right for this role and group")]
    Unauthorized,
    /// The device does not know the session that the greeting continues.
    #[error("the device node no longer has this session: it was restarted, or gave the session up")]
    NoSession,
    /// The link of another host is interrupted, and this host may return.
    #[error("another host uses this device; its link is interrupted and may return")]
    Interrupted,
    /// The greeting is for a further connection of a link that the device does not have.
    #[error("the device node has no link with this connection: its first connection has ended")]
    NoLink,
    /// A reason that this version does not define.
    #[error("unknown reason {0} of the rejection; upgrade this node")]
    Other(u8),
}

fn other_group(groups: &Option<(u16, u16)>) -> String {
    groups.map_or_else(
        || "the device belongs to another group".to_owned(),
        |(device, host)| match host {
            0 => format!("the device belongs to group {device}, the host to none; use --group"),
            _ => format!("the device belongs to group {device}, the host to group {host}"),
        },
    )
}

/// Size in bytes of a reject without the number of an entry, in every version.
const SHORT: usize = 12;

impl Reject {
    /// The byte of the reason, and the number after it.
    const fn fields(self) -> (u8, Option<u16>) {
        match self {
            Self::Version => (1, None),
            Self::Busy => (2, None),
            Self::Role => (3, None),
            Self::Group(_) => (4, None),
            Self::UnknownEntry(number) => (5, Some(number)),
            Self::MissingEntry(number) => (6, Some(number)),
            Self::Unauthorized => (7, None),
            Self::NoSession => (8, None),
            Self::Interrupted => (9, None),
            Self::NoLink => (10, None),
            Self::Other(reason) => (reason, None),
        }
    }

    pub(super) fn encode(self, version: u16, out: &mut impl BufMut) {
        let (reason, number) = self.fields();
        out.put_slice(&MAGIC);
        out.put_u16(version);
        out.put_u8(reason);
        out.put_u8(0);
        if let Some(number) = number {
            out.put_u16(number);
        }
        if let Self::Group(Some((device, host))) = self {
            out.put_u16(device);
            out.put_u16(host);
        }
    }

    /// Decodes the reason and the protocol version of the sender. Ignores trailing bytes.
    pub(super) fn decode(payload: &[u8]) -> Result<(Self, u16), Malformed> {
        let length = payload.len();
        let short = Malformed::Length { kind: Kind::Reject, length };
        if length < SHORT {
            return Err(short);
        }
        let mut rest = payload;
        check_magic(&mut rest)?;
        let version = rest.get_u16();
        let reason = rest.get_u8();
        rest.advance(1);
        let mut number = || if rest.len() < 2 { Err(short.clone()) } else { Ok(rest.get_u16()) };
        let reason = match reason {
            1 => Self::Version,
            2 => Self::Busy,
            3 => Self::Role,
            4 if version == VERSION => Self::Group(number().ok().zip(number().ok())),
            4 => Self::Group(None),
            5 if version == VERSION => Self::UnknownEntry(number()?),
            6 if version == VERSION => Self::MissingEntry(number()?),
            7 => Self::Unauthorized,
            8 => Self::NoSession,
            9 => Self::Interrupted,
            10 => Self::NoLink,
            other => Self::Other(other),
        };
        Ok((reason, version))
    }
}
