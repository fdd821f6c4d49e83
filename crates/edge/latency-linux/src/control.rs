//! Control messages of stamped frames (cmsg(3); Linux Documentation/networking/timestamping.rst),
//! in the layout of 64-bit Linux.

use nix::libc;

/// Bytes of `struct cmsghdr`: length, level, type.
const HEADER: usize = 16;
/// Control messages begin at multiples of this.
const ALIGNMENT: usize = 8;

/// `SCM_TIMESTAMPING_OLD` and `_NEW` of asm-generic/socket.h. The data are three `timespec` of 16
/// bytes: software, unused, hardware.
const TIMESTAMPING: [i32; 2] = [37, 65];
/// `SCM_TXTIME` of asm-generic/socket.h.
const TXTIME: i32 = 61;
/// `SOL_PACKET` of linux/socket.h; `PACKET_AUXDATA` and `PACKET_TX_TIMESTAMP` of linux/if_packet.h.
const SOL_PACKET: i32 = 263;
const AUXDATA: i32 = 8;
const TX_TIMESTAMP: i32 = 16;
/// `TP_STATUS_VLAN_VALID` of linux/if_packet.h.
const VLAN_VALID: u32 = 1 << 4;
/// `SO_EE_ORIGIN_ICMP`, `_ICMP6`, `_TIMESTAMPING` and `_TXTIME` of linux/errqueue.h.
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;
const ORIGIN_TIMESTAMPING: u8 = 4;
const ORIGIN_TXTIME: u8 = 6;

/// The point at which a sent frame got a stamp (`SCM_TSTAMP_SND` and `_SCHED` of linux/errqueue.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The driver has the frame; for a hardware stamp, the frame is on the wire.
    Sent,
    /// The frame enters the queueing discipline.
    Queued,
}

/// Why a frame with a launch time was dropped (`SO_EE_CODE_TXTIME_*` of linux/errqueue.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// The queueing discipline does not accept this launch time.
    Invalid,
    /// The launch time had passed.
    Missed,
}

/// The control data of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The kernel's stamp, 0 if there is none: in ns of CLOCK_REALTIME as parsed, in ns of TAI from
    /// [`sent`](crate::Port::sent).
    pub software: u64,
    /// The hardware stamp in ns of the hardware clock; 0 if there is none.
    pub hardware: u64,
    /// For a message from the error queue: the kind of the stamp, and the number of the frame among
    /// the socket's sent frames (`SOF_TIMESTAMPING_OPT_ID`).
    pub step: Option<(Step, u32)>,
    /// For a message from the error queue: why the kernel dropped a frame with a launch time.
    pub dropped: Option<Launch>,
    /// For a message from the error queue: whether it is an ICMP answer, because a frame did not
    /// reach its port.
    pub unreachable: bool,
    /// Control information of the VLAN tag that the kernel removed: priority, drop eligibility,
    /// VLAN (802.1Q-2022, 9.6).
    pub tag: Option<u16>,
}

/// Parses control messages. Ignores unknown and truncated messages.
pub(crate) fn parse(mut bytes: &[u8]) -> Control {
    let mut found = Control::default();
    while let Some((header, _)) = bytes.split_first_chunk::<HEADER>() {
        let length = long(header, 0) as usize;
        if !(HEADER..=bytes.len()).contains(&length) {
            break;
        }
        take(&mut found, int(header, 8) as i32, int(header, 12) as i32, &bytes[HEADER..length]);
        let next = length.next_multiple_of(ALIGNMENT).min(bytes.len());
        bytes = &bytes[next..];
    }
    found
}

fn take(found: &mut Control, level: i32, kind: i32, data: &[u8]) {
    match (level, kind) {
        (libc::SOL_SOCKET, kind) if TIMESTAMPING.contains(&kind) && data.len() >= 48 => {
            let ns = |at: usize| {
                long(data, at).saturating_mul(1_000_000_000).saturating_add(long(data, at + 8))
            };
            (found.software, found.hardware) = (ns(0), ns(32));
        }
        (libc::SOL_IP, libc::IP_RECVERR)
        | (libc::SOL_IPV6, libc::IPV6_RECVERR)
        | (SOL_PACKET, TX_TIMESTAMP)
            if data.len() >= 16 =>
        {
            // `struct sock_extended_err`: errno, origin, type, code, padding, info, data.
            match (data[4], int(data, 8), data[6]) {
                (ORIGIN_TIMESTAMPING, 0, _) => found.step = Some((Step::Sent, int(data, 12))),
                (ORIGIN_TIMESTAMPING, 1, _) => found.step = Some((Step::Queued, int(data, 12))),
                (ORIGIN_TXTIME, _, 1) => found.dropped = Some(Launch::Invalid),
                (ORIGIN_TXTIME, _, 2) => found.dropped = Some(Launch::Missed),
                (ORIGIN_ICMP | ORIGIN_ICMP6, ..) => found.unreachable = true,
                _ => {}
            }
        }
        // `struct tpacket_auxdata`: status, length, captured, mac, net, tag, protocol of the tag.
        (SOL_PACKET, AUXDATA) if data.len() >= 20 && int(data, 0) & VLAN_VALID != 0 => {
            found.tag = Some(u16::from_ne_bytes([data[16], data[17]]));
        }
        _ => {}
    }
}

fn int(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The control message that requests a launch time, in ns of the clock of `SO_TXTIME`.
pub(crate) fn launch_at(ns: u64) -> [u8; HEADER + 8] {
    let mut bytes = [0; HEADER + 8];
    bytes[..8].copy_from_slice(&((HEADER + 8) as u64).to_ne_bytes());
    bytes[8..12].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
    bytes[12..16].copy_from_slice(&TXTIME.to_ne_bytes());
    bytes[16..].copy_from_slice(&ns.to_ne_bytes());
    bytes
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    /// Written by hand from cmsg(3): software stamp 1 s and 2 ns, hardware stamp 3 s and 4 ns.
    const STAMPS: &str = "4000000000000000 01000000 25000000
        0100000000000000 0200000000000000 0000000000000000 0000000000000000
        0300000000000000 0400000000000000";
    /// `sock_extended_err` of IPv4: ENOMSG, timestamping, SCHED, frame 7; then the offender.
    const QUEUED: &str = "3000000000000000 00000000 0b000000
        2a000000 04 00 00 00 01000000 07000000 00000000000000000000000000000000";
    const AUX: &str = "2400000000000000 07010000 08000000
        11000000 70000000 70000000 0000 0e00 05a0 0081";

    #[test]
    fn stamps_of_software_and_hardware() {
        let received = parse(&bytes(STAMPS));
        assert_eq!((received.software, received.hardware), (1_000_000_002, 3_000_000_004));
        assert_eq!(received.step, None);
    }

    /// Messages recorded on loopback with Linux 6.18: the stamps of a received datagram, and the
    /// queue stamp of the third sent datagram.
    #[test]
    fn recorded_messages() {
        let zeroes = "00".repeat(32);
        let came =
            format!("40000000000000000100000025000000589b046b00000000233de92f00000000{zeroes}");
        let found = parse(&bytes(&came));
        // 6b049b58h = 1795464024 s, 2fe93d23h = 803814691 ns.
        assert_eq!((found.software, found.step), (1_795_464_024_803_814_691, None));
        let queued = "40000000000000000100000025000000589b046b000000007f30e92f00000000";
        let error = "3000000000000000000000000b0000002a000000040000000100000002000000";
        let found = parse(&bytes(&format!("{queued}{zeroes}{error}{}", &zeroes[..32])));
        assert_eq!(found.software, 1_795_464_024_803_811_455);
        assert_eq!((found.step, found.hardware), (Some((Step::Queued, 2)), 0));
    }

    #[test]
    fn messages_of_the_error_queue() {
        let queued = parse(&bytes(&format!("{STAMPS}{QUEUED}")));
        assert_eq!(queued.step, Some((Step::Queued, 7)));
        assert_eq!(queued.software, 1_000_000_002);
        let sent = QUEUED.replace("01000000 07", "00000000 08");
        assert_eq!(parse(&bytes(&sent)).step, Some((Step::Sent, 8)));
        let missed = QUEUED.replace("04 00 00 00", "06 00 02 00");
        assert_eq!(parse(&bytes(&missed)).dropped, Some(Launch::Missed));
        // ECONNREFUSED, ICMP, type 3 (destination unreachable), code 3 (port): RFC 792.
        let refused =
            QUEUED.replace("2a000000 04 00 00 00 01000000 07", "6f000000 02 03 03 00 00000000 00");
        assert_eq!(parse(&bytes(&refused)), Control { unreachable: true, ..Control::default() });
        assert!(!queued.unreachable);
    }

    /// Priority 5 in VLAN 5: a005h. The last message of a buffer is not padded.
    #[test]
    fn the_tag_that_the_kernel_took_off() {
        assert_eq!(parse(&bytes(AUX)).tag, Some(0xa005));
        let none = AUX.replace("11000000 70", "01000000 70");
        assert_eq!(parse(&bytes(&none)).tag, None);
    }

    #[test]
    fn a_launch_time_is_a_control_message() {
        let golden = bytes("1800000000000000 01000000 3d000000 0800000000000000");
        assert_eq!(launch_at(8)[..], golden[..]);
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes: Vec<u8>, length in 0u64..100) {
            parse(&bytes);
            let mut bytes = bytes;
            if bytes.len() >= 16 {
                bytes[..8].copy_from_slice(&length.to_ne_bytes());
                parse(&bytes);
            }
        }
    }
}
