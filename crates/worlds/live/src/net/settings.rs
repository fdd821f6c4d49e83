//! Local settings of carriers.

use super::gate::LineGate;
use super::raw::RawSettings;
use credentials::Credentials;
use linux::Marking;
use std::sync::Arc;

/// Local settings of the connections of a node.
#[derive(Clone, Debug, Default)]
pub struct LinkSettings {
    /// Settings of raw Ethernet.
    pub raw: RawSettings,
    /// Marks of sent packets.
    pub marking: Marking,
    /// The gate in front of the line. Over TCP only the hand-over to the kernel waits for the gate;
    /// the kernel decides when segments, acknowledgements and retransmissions leave.
    pub gate: Option<LineGate>,
    /// The key of this node and its peers, for TCP under TLS. Raw Ethernet ignores them.
    pub credentials: Option<Arc<Credentials>>,
}

impl From<RawSettings> for LinkSettings {
    fn from(raw: RawSettings) -> Self {
        Self { raw, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{
        Address, Carrier, CarrierListener, Connection, ETHERNET, Filter, Interface, Listener,
        Namespace, PacketSocket,
    };
    use bytes::Bytes;
    use socket2::{Domain, SockRef};
    use std::os::fd::AsFd;
    use wire::Instant;

    /// `SO_PRIORITY` and the octet of the IP header, of both ends of a connection to `at`.
    fn both_ends(at: &str, marking: Marking) -> [(u32, u32); 2] {
        let settings = LinkSettings { marking, ..LinkSettings::default() };
        let at = Address::Tcp(at.parse().unwrap());
        let mut listener = CarrierListener::bind(&at, settings.clone()).unwrap();
        let to = listener.address().unwrap();
        let near = Carrier::connect(Instant::ZERO, &to, None, &settings).unwrap();
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
        let lo = Interface::find("lo").unwrap();
        let mut tap = PacketSocket::open(&lo, ethertype, &Filter::everything()).unwrap();
        let settings = LinkSettings { marking, ..LinkSettings::default() };
        let listener = Listener::bind(ip, settings).unwrap();
        let to = listener.address().unwrap();
        let mut near = Connection::connect(to, &LinkSettings::default()).unwrap();
        // Data before accept(2), which the kernel acknowledges for the listening socket.
        while !near.established().unwrap() {}
        near.send(Bytes::from_static(&[7; 100])).unwrap();
        drop((near, listener.accept().unwrap()));
        let mut buffer = [0; 2048];
        let packets = std::iter::from_fn(|| {
            let length = tap.receive(&mut buffer).unwrap()?;
            let packet = &buffer[ETHERNET..length];
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
            let marks_with =
                |dscp| home.enter(|| all_packets(at, Marking { priority: Some(5), dscp })).unwrap();
            let marks = marks_with(Some(46));
            // SYN-ACK, the acknowledgement of the data, and FIN.
            assert!(
                marks.len() >= 3 && marks.iter().all(|mark| *mark == 46 << 2),
                "{at}: {marks:?}"
            );
            let marks = marks_with(None);
            assert!(marks.iter().all(|mark| *mark == 0), "{at}: {marks:?}");
        }
    }
}
