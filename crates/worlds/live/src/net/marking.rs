//! How frames of links are marked for the network: DSCP and priority (socket(7), ip(7)).

use crate::about;
use socket2::{Domain, SockRef, Socket, Type};
use std::io;

/// The marks of all that a node sends over links. The default leaves the kernel's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marking {
    /// `SO_PRIORITY`, 0 to 7: the queue or class of a queueing discipline; a VLAN interface maps it
    /// to the PCP of its tag (`egress-qos-map`, ip-link(8)).
    pub priority: Option<u8>,
    /// The Differentiated Services code point of IP packets, 0 to 63 (RFC 2474, section 3).
    pub dscp: Option<u8>,
}

impl Marking {
    /// Tries the marks on a socket that sends nothing.
    ///
    /// # Errors
    /// A sentence: a priority above 6 needs CAP_NET_ADMIN (socket(7)).
    pub fn check(self) -> io::Result<()> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        self.mark(SockRef::from(&socket), Some(Domain::IPV4))
    }

    /// Marks a socket of this IP version, or of none. The kernel derives a priority from IP_TOS
    /// (`rt_tos2priority` in Linux), so that SO_PRIORITY comes after it.
    pub(crate) fn mark(self, socket: SockRef<'_>, ip: Option<Domain>) -> io::Result<()> {
        if let (Some(dscp), Some(ip)) = (self.dscp, ip) {
            // The two low bits are those of ECN (RFC 3168, section 5).
            let octet = u32::from(dscp) << 2;
            let set = || {
                if ip == Domain::IPV6 {
                    socket.set_tclass_v6(octet)?;
                }
                // Also on a socket of IPv6, which may carry IPv4 under a mapped address.
                socket.set_tos_v4(octet)
            };
            set().map_err(|error| about(format!("DSCP {dscp}"), error))?;
        }
        let Some(priority) = self.priority else { return Ok(()) };
        socket.set_priority(priority.into()).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => io::Error::new(
                error.kind(),
                format!(
                    "priority {priority} needs CAP_NET_ADMIN: run as root, `setcap \
                     cap_net_admin+ep` the program, or take 0 to 6"
                ),
            ),
            _ => about(format!("priority {priority}"), error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Port;
    use crate::net::{
        Address, Carrier, CarrierListener, Connection, Interface, LinkSettings, Listener, Namespace,
    };
    use bytes::Bytes;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use std::os::fd::AsFd;
    use wire::Instant;

    /// `SO_PRIORITY` and the octet of the IP header, of both ends of a connection to `at`.
    fn both_ends(at: &str, marking: Marking) -> [(u32, u32); 2] {
        let settings = LinkSettings { marking, ..LinkSettings::default() };
        let at = Address::Tcp(at.parse().unwrap());
        let mut listener = CarrierListener::bind(&at, settings.clone()).unwrap();
        let to = listener.address().unwrap();
        let near = Carrier::connect(Instant::ZERO, &to, &settings).unwrap();
        let far = loop {
            if let Some(far) = listener.accept(Instant::ZERO) {
                break far;
            }
        };
        [near, far].map(|end| {
            let fd = end.as_fd();
            let socket = SockRef::from(&fd);
            let v6 = socket.domain().unwrap() == Domain::IPV6;
            let octet = if v6 { socket.tclass_v6() } else { socket.tos_v4() };
            (socket.priority().unwrap(), octet.unwrap())
        })
    }

    #[test]
    fn both_ends_of_a_connection_carry_the_marks() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let marked = |priority, dscp| both_ends(at, Marking { priority, dscp });
            assert_eq!(marked(None, None), [(0, 0); 2], "{at}");
            // Expedited forwarding is 46 (RFC 3246), 0xb8 in the octet.
            assert_eq!(marked(Some(5), Some(46)), [(5, 0xb8); 2], "{at}");
            // IP_TOS does not overwrite the priority, not even one of 0.
            assert_eq!(marked(Some(0), Some(8)), [(0, 0x20); 2], "{at}");
            assert_eq!(marked(Some(6), None), [(6, 0); 2], "{at}");
        }
    }

    /// The marks of all packets on `lo` whose TCP segment comes from this port: SYN-ACK, ACKs and
    /// FIN, some of which the kernel sends before the connection is accepted.
    fn all_packets(at: &str, marking: Marking) -> Vec<u8> {
        let ip = at.parse::<std::net::SocketAddr>().unwrap();
        let ethertype = if ip.is_ipv4() { 0x0800 } else { 0x86dd };
        let tap = Port::ethernet(&Interface::find("lo").unwrap(), ethertype).unwrap();
        let settings = LinkSettings { marking, ..LinkSettings::default() };
        let listener = Listener::bind(ip, settings).unwrap();
        let to = listener.address().unwrap();
        let mut near = Connection::connect(to, &LinkSettings::default()).unwrap();
        // Data before accept(2): the kernel acknowledges them for the socket that listens.
        while !near.established().unwrap() {}
        near.send(Bytes::from_static(&[7; 100])).unwrap();
        drop((near, listener.accept().unwrap()));
        let mut buffer = [0; 2048];
        let packets = std::iter::from_fn(|| {
            let received = tap.receive(&mut buffer).unwrap()?;
            let packet = &buffer[tap.payload_at()..][..received.bytes];
            // RFC 791, section 3.1, without options, and RFC 8200, section 3.
            let (octet, tcp) = match packet[0] >> 4 {
                4 => (packet[1], &packet[20..]),
                _ => (packet[0] << 4 | packet[1] >> 4, &packet[40..]),
            };
            Some((u16::from_be_bytes([tcp[0], tcp[1]]), octet))
        });
        packets.filter(|(port, _)| *port == to.port()).map(|(_, octet)| octet).collect()
    }

    #[test]
    fn every_packet_of_a_listener_is_marked_from_the_first_one_on() {
        let Ok(home) = Namespace::new() else {
            return eprintln!("skipped: no network namespaces here");
        };
        home.run("ip link set lo up").unwrap();
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let of =
                |dscp| home.enter(|| all_packets(at, Marking { priority: Some(5), dscp })).unwrap();
            let marks = of(Some(46));
            // SYN-ACK, the acknowledgement of the data, and FIN.
            assert!(marks.len() >= 3 && marks.iter().all(|of| *of == 46 << 2), "{at}: {marks:?}");
            let marks = of(None);
            assert!(marks.iter().all(|of| *of == 0), "{at}: {marks:?}");
        }
    }

    #[test]
    fn priority_7_without_the_capability_is_refused_in_a_sentence() {
        let refused = std::thread::spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW);
            set_capabilities(None, sets).unwrap();
            let of = |priority| Marking { priority: Some(priority), dscp: None }.check();
            (of(6), of(7))
        });
        let (six, seven) = refused.join().unwrap();
        six.unwrap();
        let error = seven.unwrap_err().to_string();
        assert!(error.contains("priority 7 needs CAP_NET_ADMIN"), "{error}");
    }
}
