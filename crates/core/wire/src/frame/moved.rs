//! The result of moving a device between groups of hosts.

use super::Malformed;
use super::control::undefined;
use bytes::{Buf, BufMut};

numbers! {
    /// Whether a device was moved.
    pub enum MoveStatus: 0xff {
        /// The device belongs to the new group.
        Done = 0,
        /// Refused: the device node was started without a group, so it cannot be moved.
        Fixed = 1,
        /// Refused: a switch node cannot be moved.
        Switch = 2,
        /// Refused: the key of the peer does not give this right.
        Unauthorized = 3,
    } else {
        /// Refused for a reason that this version does not define.
        Other
    }
}

numbers! {
    /// The effect of a move on the host that used the device.
    pub enum HostAfter: u8 {
        /// No host used the device.
        None = 0,
        /// The host keeps the device, because it belongs to the new group.
        Stays = 1,
        /// The host was disconnected, and the device reset.
        Disconnected = 2,
    }
}

/// The answer to [`Control::Move`](super::Control::Move).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Whether the device was moved.
    pub status: MoveStatus,
    /// The effect on the host that used the device.
    pub host: HostAfter,
    /// Whether a host of the new group was rejected recently and will connect again.
    pub awaited: bool,
    /// The former group; 0: any host.
    pub from: u16,
    /// The present group; 0: any host.
    pub to: u16,
}

/// Size of the payload in bytes.
pub(super) const LENGTH: usize = 8;

impl Moved {
    pub(super) fn encode(&self, out: &mut impl BufMut) {
        out.put_u8(self.status.bits());
        out.put_u8(self.host as u8);
        out.put_u8(u8::from(self.awaited));
        out.put_u8(0);
        out.put_u16(self.from);
        out.put_u16(self.to);
    }

    /// Decodes the [`LENGTH`] bytes of the payload.
    pub(super) fn decode(mut payload: &[u8]) -> Result<Self, Malformed> {
        let status = MoveStatus::from_bits(payload.get_u8());
        let host = payload.get_u8();
        let host = HostAfter::from_number(host).ok_or(undefined("host after a move", host))?;
        let awaited = match payload.get_u8() {
            0 => false,
            1 => true,
            other => return Err(undefined("awaited", other)),
        };
        payload.advance(1);
        Ok(Self { status, host, awaited, from: payload.get_u16(), to: payload.get_u16() })
    }
}
