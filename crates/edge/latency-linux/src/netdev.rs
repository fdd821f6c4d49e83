//! Properties of an interface over generic netlink (linux/genetlink.h and, since Linux 6.3,
//! linux/netdev.h), in the layout of 64-bit Linux.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID` and `_NAME` of linux/genetlink.h.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `NETDEV_CMD_DEV_GET`, `NETDEV_A_DEV_IFINDEX`, `NETDEV_A_DEV_XDP_FEATURES` and
/// `NETDEV_XDP_ACT_NDO_XMIT` of linux/netdev.h.
const DEV_GET: u8 = 1;
const DEV_IFINDEX: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;
const NDO_XMIT: u64 = 1 << 2;
/// `NLM_F_REQUEST` of linux/netlink.h; both kinds of message have version 1.
const REQUEST: u16 = 1;
const VERSION: u8 = 1;
/// Bytes of `struct nlmsghdr` and `struct genlmsghdr` together, of `struct nlattr`, and the
/// alignment of attributes.
const HEADERS: usize = 20;
const ATTRIBUTE: usize = 4;
/// Bytes of the buffer for an answer.
const ANSWER: usize = 8192;

/// Whether an interface of this network namespace transmits frames that native XDP redirects to it.
/// `None` if the kernel does not report this.
pub(crate) fn transmits_redirected(interface: u32) -> io::Result<Option<bool>> {
    let flags = SocketFlags::CLOEXEC;
    let protocol = Some(netlink::GENERIC);
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    let named = (CONTROLLER, GET_FAMILY, FAMILY_NAME);
    let family = ask(&socket, named, b"netdev\0", FAMILY_ID)?;
    let Some(family) = family.and_then(|id| Some(u16::from_ne_bytes(id.try_into().ok()?))) else {
        return Ok(None);
    };
    let device = (family, DEV_GET, DEV_IFINDEX);
    let features = ask(&socket, device, &interface.to_ne_bytes(), DEV_XDP_FEATURES)?;
    let features = features.and_then(|bits| Some(u64::from_ne_bytes(bits.try_into().ok()?)));
    Ok(features.map(|bits| bits & NDO_XMIT != 0))
}

/// Sends a command with one attribute. Returns the value of the attribute `wanted` in the answer,
/// if present.
fn ask(
    socket: &OwnedFd,
    (kind, command, attribute): (u16, u8, u16),
    value: &[u8],
    wanted: u16,
) -> io::Result<Option<Vec<u8>>> {
    rustix::net::send(
        socket.as_fd(),
        &request(kind, command, attribute, value),
        SendFlags::empty(),
    )?;
    let mut answer = [0; ANSWER];
    let (bytes, _) = rustix::net::recv(socket.as_fd(), &mut answer, RecvFlags::empty())?;
    Ok(found(&answer[..bytes], kind, wanted))
}

fn request(kind: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let size = ATTRIBUTE + value.len();
    let mut bytes = ((HEADERS + size.next_multiple_of(ATTRIBUTE)) as u32).to_ne_bytes().to_vec();
    bytes.extend([kind, REQUEST].map(u16::to_ne_bytes).concat());
    // Sequence and port, which the kernel fills in; then the command.
    bytes.extend([0; 8]);
    bytes.extend([command, VERSION, 0, 0]);
    bytes.extend([size as u16, attribute].map(u16::to_ne_bytes).concat());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(ATTRIBUTE), 0);
    bytes
}

/// The value of the attribute `wanted` in an answer. `None` if the answer has another message type
/// than `kind`, as errors have.
fn found(answer: &[u8], kind: u16, wanted: u16) -> Option<Vec<u8>> {
    let short = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    let mut at = HEADERS;
    while short(4)? == kind {
        let size = usize::from(short(at)?);
        let value = answer.get(at + ATTRIBUTE..at + size)?;
        if short(at + 2)? == wanted {
            return Some(value.to_vec());
        }
        at += size.next_multiple_of(ATTRIBUTE);
    }
    None
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    /// Written by hand from linux/netlink.h and linux/genetlink.h.
    const ASKED: [u8; 32] = [
        32, 0, 0, 0, 0x10, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 11, 0, 2, 0, b'n', b'e',
        b't', b'd', b'e', b'v', 0, 0,
    ];

    #[test]
    fn a_request_is_that_of_the_headers() {
        assert_eq!(request(CONTROLLER, GET_FAMILY, FAMILY_NAME, b"netdev\0"), ASKED);
        assert_eq!(found(&ASKED, CONTROLLER, FAMILY_NAME), Some(b"netdev\0".to_vec()));
        assert_eq!(found(&ASKED, CONTROLLER, FAMILY_ID), None);
        // `NLMSG_ERROR`.
        assert_eq!(found(&ASKED, 2, FAMILY_NAME), None);
    }

    #[test]
    fn any_answer_does_not_panic() {
        for size in 0..ASKED.len() {
            assert_eq!(found(&ASKED[..size], CONTROLLER, FAMILY_ID), None);
        }
        let endless = [&ASKED[..HEADERS], &[0; 12]].concat();
        assert_eq!(found(&endless, CONTROLLER, FAMILY_ID), None);
    }

    #[test]
    fn loopback_transmits_nothing_that_is_redirected() {
        let of_lo = transmits_redirected(1).unwrap();
        assert_ne!(of_lo, Some(true));
        assert_eq!(transmits_redirected(u32::MAX).unwrap(), None);
    }
}
