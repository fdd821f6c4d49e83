//! A socket with time stamps: UDP, or Ethernet frames of one EtherType.

use crate::control::{Control, launch_at, parse};
use crate::kernel::{receive_message, set_option};
use linux::time::tai_offset_s;
use linux::{DROPPED, ETHERNET, Filter, Interface, Mac, Marking, PacketSocket};
use nix::libc;
use nix::sys::socket::sockopt::TxTime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, MsgHdr, SockAddr, SockRef};
use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A VLAN tag (802.1Q-2022, 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The VLAN identifier, 0 to 4094; 0 is a priority tag.
    pub vlan: u16,
    /// The priority (PCP), 0 to 7.
    pub priority: u8,
}

/// The address of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    /// A UDP port.
    Udp(SocketAddr),
    /// A station on the Ethernet.
    Ethernet(Mac),
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => address.fmt(f),
            Self::Ethernet(mac) => mac.fmt(f),
        }
    }
}

/// A received payload.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes of the payload, which begins at [`Port::payload_at`] in the buffer.
    pub bytes: usize,
    /// The sender.
    pub from: Remote,
    /// The kernel's stamp, in ns of TAI.
    pub kernel: Option<NonZeroU64>,
    /// The hardware stamp, in ns of the hardware clock. With PTP this clock has TAI.
    pub wire: Option<NonZeroU64>,
    /// The VLAN tag of the received frame.
    pub tag: Option<Tag>,
}

/// `ETH_P_8021Q` of linux/if_ether.h.
const VLAN: u16 = 0x8100;
/// `SOF_TIMESTAMPING_*` of linux/net_tstamp.h: transmit stamps of hardware, software and queue;
/// receive stamps of hardware and software; reports of software and of hardware stamps; a count of
/// sent frames; reports without the contents of frames.
const TX_HARDWARE: i32 = 1 << 0;
const TX_SOFTWARE: i32 = 1 << 1;
const RX_HARDWARE: i32 = 1 << 2;
const RX_SOFTWARE: i32 = 1 << 3;
const SOFTWARE: i32 = 1 << 4;
const RAW_HARDWARE: i32 = 1 << 6;
const OPT_ID: i32 = 1 << 7;
const TX_SCHED: i32 = 1 << 8;
const OPT_TSONLY: i32 = 1 << 11;
/// `SOL_PACKET` of linux/socket.h, and options of linux/if_packet.h: report tags, and do not
/// receive the frames that this machine sends.
const SOL_PACKET: i32 = 263;
const PACKET_AUXDATA: i32 = 8;
const PACKET_IGNORE_OUTGOING: i32 = 23;
/// `ETH_P_ALL` of linux/if_ether.h.
const EVERY_ETHERTYPE: u16 = 3;
/// Bytes for the control messages of one message.
const CONTROL: usize = 512;
/// Bytes of received frames that may wait in the kernel.
const WAITING: usize = 4 << 20;

/// A socket with time stamps. All methods take `&self`, so that one thread can send while another
/// receives.
#[derive(Debug)]
pub struct Port {
    socket: Carrier,
    /// Added to the kernel's stamps of CLOCK_REALTIME, in ns.
    tai_offset: u64,
}

#[derive(Debug)]
enum Carrier {
    Udp(UdpSocket),
    Ethernet { socket: PacketSocket, own: Mac, ethertype: u16 },
}

impl Port {
    /// A UDP socket bound to `address`.
    ///
    /// # Errors
    /// As `bind(2)`.
    pub fn udp(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        SockRef::from(&socket).set_recv_buffer_size(WAITING)?;
        Ok(Self { socket: Carrier::Udp(socket), tai_offset: tai_offset_s() * 1_000_000_000 })
    }

    /// A UDP socket on any port, for sending to an address of the family of `to`.
    ///
    /// # Errors
    /// As `socket(2)` and `bind(2)`.
    pub fn udp_towards(to: SocketAddr) -> io::Result<Self> {
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self::udp((any, 0).into())
    }

    /// Makes [`sent`](Self::sent) also return ICMP answers to UDP frames (ip(7), `IP_RECVERR`).
    ///
    /// # Errors
    /// As `setsockopt(2)`.
    pub fn report_unreachable(&self) -> io::Result<()> {
        match self.address()? {
            Some(SocketAddr::V4(_)) => set_option(self, libc::SOL_IP, libc::IP_RECVERR, 1),
            Some(SocketAddr::V6(_)) => set_option(self, libc::SOL_IPV6, libc::IPV6_RECVERR, 1),
            None => Ok(()),
        }
    }

    /// A packet socket for frames of `ethertype`.
    ///
    /// # Errors
    /// As [`PacketSocket::open`].
    pub fn ethernet(interface: &Interface, ethertype: u16) -> io::Result<Self> {
        // Only a socket of all EtherTypes receives tags. The kernel drops the tag of a frame before
        // it searches sockets of one EtherType (linux/net/core/dev.c, `__netif_receive_skb_core`).
        let filter = Filter::fields(&[(ETHERNET as u32 - 2, 2, 0xffff, ethertype.into())]);
        let socket = PacketSocket::open(interface, EVERY_ETHERTYPE, &filter)?;
        set_option(&socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        set_option(&socket, SOL_PACKET, PACKET_AUXDATA, 1)?;
        let own = interface.mac;
        let socket = Carrier::Ethernet { socket, own, ethertype };
        Ok(Self { socket, tai_offset: tai_offset_s() * 1_000_000_000 })
    }

    /// The local address of a UDP socket; `None` for Ethernet.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    pub fn address(&self) -> io::Result<Option<SocketAddr>> {
        match &self.socket {
            Carrier::Udp(socket) => socket.local_addr().map(Some),
            Carrier::Ethernet { .. } => Ok(None),
        }
    }

    /// Offset of the payload in the buffer of [`receive`](Self::receive), in bytes.
    pub fn payload_at(&self) -> usize {
        match &self.socket {
            Carrier::Udp(_) => 0,
            Carrier::Ethernet { .. } => ETHERNET,
        }
    }

    /// Enables the kernel's stamps, and hardware stamps if `hardware` is true. From now on the
    /// kernel counts sent frames from 0.
    ///
    /// # Errors
    /// As `setsockopt(2)`.
    pub fn stamp(&self, hardware: bool) -> io::Result<()> {
        let software = SOFTWARE | TX_SOFTWARE | RX_SOFTWARE | TX_SCHED | OPT_ID | OPT_TSONLY;
        let more = if hardware { RAW_HARDWARE | TX_HARDWARE | RX_HARDWARE } else { 0 };
        set_option(self, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, software | more)
    }

    /// Sets the DSCP of IPv4 packets (RFC 2474), 0 to 63. Call this before
    /// [`set_priority`](Self::set_priority), because a DSCP also changes the priority (ip(7)).
    ///
    /// # Errors
    /// As `setsockopt(2)`.
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        let marking = Marking { priority: None, dscp: Some(dscp) };
        marking.mark(SockRef::from(self), Some(Domain::IPV4))
    }

    /// Sets the priority for queueing disciplines (SO_PRIORITY, socket(7)), 0 to 7.
    ///
    /// # Errors
    /// A sentence, for example that a priority above 6 needs CAP_NET_ADMIN.
    pub fn set_priority(&self, priority: u8) -> io::Result<()> {
        let marking = Marking { priority: Some(priority), dscp: None };
        marking.mark(SockRef::from(self), None)
    }

    /// Enables launch times, in ns of CLOCK_TAI (SO_TXTIME).
    ///
    /// # Errors
    /// As `setsockopt(2)`.
    pub fn allow_launch_times(&self) -> io::Result<()> {
        // Bit 1 of the flags reports dropped frames on the error queue
        // (`SOF_TXTIME_REPORT_ERRORS` of linux/net_tstamp.h).
        let settings = libc::sock_txtime { clockid: libc::CLOCK_TAI, flags: 1 << 1 };
        Ok(nix::sys::socket::setsockopt(self, TxTime, &settings)?)
    }

    /// Sends a payload, with an optional Ethernet `tag` and an optional launch time in ns of
    /// CLOCK_TAI.
    ///
    /// # Errors
    /// As `sendmsg(2)`.
    pub fn send(
        &self,
        payload: &[u8],
        to: Remote,
        tag: Option<Tag>,
        launch: Option<u64>,
    ) -> io::Result<()> {
        let mut header = Vec::new();
        let address = match (&self.socket, to) {
            (Carrier::Udp(_), Remote::Udp(to)) => Some(SockAddr::from(to)),
            (Carrier::Ethernet { own, ethertype, .. }, Remote::Ethernet(to)) => {
                header = ethernet(*own, to, tag, *ethertype);
                None
            }
            _ => return Err(io::ErrorKind::AddrNotAvailable.into()),
        };
        let parts = [IoSlice::new(&header), IoSlice::new(payload)];
        let mut message = MsgHdr::new().with_buffers(&parts);
        if let Some(address) = &address {
            message = message.with_addr(address);
        }
        let launch = launch.map(launch_at);
        if let Some(control) = &launch {
            message = message.with_control(control);
        }
        let send = || SockRef::from(self).sendmsg(&message, 0).map(drop);
        match send() {
            Err(error) if is_of_earlier(&error) => send(),
            sent => sent,
        }
    }

    /// Whether the kernel has counted a frame (`SOF_TIMESTAMPING_OPT_ID`), given the result of
    /// [`send`](Self::send). The kernel also counts frames that the queueing discipline drops
    /// (linux/net/packet/af_packet.c, `packet_snd`).
    pub fn is_counted(sent: &io::Result<()>) -> bool {
        sent.as_ref().err().is_none_or(|error| error.raw_os_error() == Some(DROPPED))
    }

    /// Receives the next payload with its header into `buffer`. `None` if no payload waits.
    ///
    /// # Errors
    /// As `recvmsg(2)`.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut control = [0; CONTROL];
        let socket = SockRef::from(self);
        let message = match receive_message(&socket, buffer, &mut control, libc::MSG_DONTWAIT) {
            Ok(message) => message,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if is_of_earlier(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = self.stamps(&control[..message.control]);
        let from = match (&self.socket, message.from) {
            (Carrier::Udp(_), Some(from)) => Remote::Udp(from),
            _ => {
                let source = buffer.get(6..12).and_then(|bytes| bytes.try_into().ok());
                Remote::Ethernet(Mac(source.unwrap_or_default()))
            }
        };
        let tag = |tci: u16| Tag { vlan: tci & 0xfff, priority: (tci >> 13) as u8 };
        Ok(Some(Received {
            bytes: message.bytes.saturating_sub(self.payload_at()),
            from,
            kernel: NonZeroU64::new(found.software),
            wire: NonZeroU64::new(found.hardware),
            tag: found.tag.map(tag),
        }))
    }

    /// Removes and returns the next message of the error queue. Its software stamp is in ns of TAI.
    /// `None` if there is no message.
    ///
    /// # Errors
    /// As `recvmsg(2)`.
    pub fn sent(&self) -> io::Result<Option<Control>> {
        let mut control = [0; CONTROL];
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        match receive_message(&SockRef::from(self), &mut [0; 64], &mut control, flags) {
            Ok(message) => Ok(Some(self.stamps(&control[..message.control]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if is_of_earlier(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn stamps(&self, control: &[u8]) -> Control {
        let found = parse(control);
        let software = match found.software {
            0 => 0,
            ns => ns + self.tai_offset,
        };
        Control { software, ..found }
    }

    /// Waits until a frame or a stamp arrives, or for `most`.
    ///
    /// # Errors
    /// As `poll(2)`; interruption by a signal is not an error.
    pub fn wait(&self, most: Duration) -> io::Result<()> {
        let time = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        match poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Carrier::Udp(socket) => socket.as_fd(),
            Carrier::Ethernet { socket, .. } => socket.as_fd(),
        }
    }
}

/// Whether an error may be due to an ICMP answer to an earlier frame. The kernel reports such an
/// error once, at the next call (udp(7)).
fn is_of_earlier(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
}

/// Builds the header of a frame.
fn ethernet(from: Mac, to: Mac, tag: Option<Tag>, ethertype: u16) -> Vec<u8> {
    let mut header = [to.0, from.0].concat();
    if let Some(Tag { vlan, priority }) = tag {
        header.extend(VLAN.to_be_bytes());
        header.extend((u16::from(priority) << 13 | vlan).to_be_bytes());
    }
    header.extend(ethertype.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Step;
    use crate::hardware::HardwareStamps;
    use linux::Namespace;
    use linux::time::now;
    use std::net::Ipv4Addr;
    use std::time::Instant;

    #[test]
    fn headers_with_and_without_a_tag() {
        let (from, to) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
        let plain = ethernet(from, to, None, 0x88b6);
        assert_eq!(plain, [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb6]);
        let tag = Tag { vlan: 5, priority: 3 };
        // 3 << 13 | 5 = 6005h.
        let tagged = ethernet(from, to, Some(tag), 0x88b6);
        assert_eq!(tagged[12..], [0x81, 0x00, 0x60, 0x05, 0x88, 0xb6]);
    }

    /// Receives a payload within five seconds.
    fn receive(port: &Port, buffer: &mut [u8]) -> Received {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            if let Some(received) = port.receive(buffer).unwrap() {
                return received;
            }
            assert!(Instant::now() < end, "nothing came");
            port.wait(Duration::from_millis(100)).unwrap();
        }
    }

    #[test]
    fn a_datagram_is_stamped_on_both_sides() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let [near, far] = [any; 2].map(|address| Port::udp(address).unwrap());
        near.stamp(false).unwrap();
        far.stamp(false).unwrap();
        let to = Remote::Udp(far.address().unwrap().unwrap());
        let before = now();
        let mut buffer = [0; 2000];
        // The kernel starts to stamp received frames only shortly after the request.
        let kernel = (0..100).find_map(|_| {
            near.send(&[7; 200], to, None, None).unwrap();
            let received = receive(&far, &mut buffer);
            assert_eq!((received.bytes, &buffer[..200]), (200, &[7; 200][..]));
            assert_eq!(Some(received.from), near.address().unwrap().map(Remote::Udp));
            std::thread::sleep(Duration::from_millis(10));
            received.kernel
        });
        let kernel = u64::from(kernel.expect("a stamp"));
        assert!(kernel >= before && kernel <= now(), "{before} {kernel}");
        let stamps: Vec<Control> = std::iter::from_fn(|| near.sent().unwrap()).collect();
        let steps: Vec<_> = stamps.iter().filter_map(|stamp| stamp.step).collect();
        assert!(steps.contains(&(Step::Sent, 0)), "{steps:?}");
        assert!(stamps.iter().all(|stamp| stamp.software >= before), "{stamps:?}");
    }

    #[test]
    fn a_frame_keeps_its_tag() {
        let Ok(home) = Namespace::new() else { return skipped() };
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let tag = Tag { vlan: 5, priority: 3 };
        let open = |name: &str| {
            let interface = Interface::find(name).unwrap();
            (Port::ethernet(&interface, 0x88b6).unwrap(), interface.mac)
        };
        let (near, own) = home.enter(|| open("near0")).unwrap();
        let (far, mac) = away.enter(|| open("far0")).unwrap();
        near.send(&[9; 104], Remote::Ethernet(mac), Some(tag), None).unwrap();
        let mut buffer = [0; 2000];
        let received = receive(&far, &mut buffer);
        assert_eq!((received.bytes, received.from), (104, Remote::Ethernet(own)));
        assert_eq!(received.tag, Some(tag));
        assert_eq!(buffer[far.payload_at()..][..104], [9; 104]);
        let error = HardwareStamps::on(&near, "near0").unwrap_err();
        assert!(error.starts_with("near0"), "{error}");
    }

    fn skipped() {
        eprintln!("skipped: no network namespaces here");
    }
}
