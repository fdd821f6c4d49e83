//! Networks for measurements: loopback, and veth pairs with a limited rate between network
//! namespaces. The namespaces are deleted when the command ends.

use super::wire_cost::{MTU, wire};
use super::{LinkCheck, Transport};
use live::Clock;
use live::net::{
    Address, ETHERNET, Filter, Interface, Namespace, PacketSocket, Protection, Station,
};
use report::Failure;
use std::net::{Ipv4Addr, SocketAddr};
use switch::congestion::Rate;
use wire::{Duration, Instant};

/// The network namespaces of both ends of a link.
pub struct TestNetwork {
    /// The host's namespace.
    pub near: Namespace,
    /// The device's namespace.
    pub far: Namespace,
    /// Address on which the device node listens.
    pub far_address: Address,
    near_interface: &'static str,
}

/// Burst of the token bucket in bytes: less than the line carries in one tick of the scheduler.
const BURST: usize = 16 << 10;
const NEAR: &str = "near0";
const FAR: &str = "far0";
/// Addresses for documentation (RFC 5737). The namespaces have no other addresses.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
impl TestNetwork {
    /// Creates a loopback network: of this machine for TCP, of a namespace for raw Ethernet.
    /// Ethernet has no ports, so this network carries one device node.
    ///
    /// # Errors
    /// If no namespace can be created.
    pub fn loopback(transport: Transport) -> Result<Self, Failure> {
        let (near, far, far_address) = match transport {
            Transport::Tcp => {
                let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                (Namespace::current()?, Namespace::current()?, any.into())
            }
            Transport::Raw => {
                let alone = Namespace::new()?;
                alone.run("ip link set lo up")?;
                let address =
                    alone.enter(|| Address::to_listen("raw:lo", Protection::Loopback))??;
                (alone.enter(Namespace::current)??, alone, address)
            }
        };
        Ok(Self { near, far, far_address, near_interface: "lo" })
    }

    /// Creates a cable between two namespaces.
    ///
    /// # Errors
    /// If no namespace can be created, or `ip` is missing.
    pub fn cable(transport: Transport) -> Result<Self, Failure> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        near.cable(NEAR, &far, FAR)?;
        let far_address = match transport {
            Transport::Tcp => {
                let ends = [(&near, NEAR), (&far, FAR)];
                for ((place, interface), address) in ends.into_iter().zip(ADDRESSES) {
                    place.run(&format!("ip address add {address}/24 dev {interface}"))?;
                }
                SocketAddr::from((ADDRESSES[1], 0)).into()
            }
            Transport::Raw => {
                far.enter(|| Address::to_listen(&format!("raw:{FAR}"), Protection::Insecure))??
            }
        };
        Ok(Self { near, far, far_address, near_interface: NEAR })
    }

    /// Returns the address at which the host reaches a device node that listens on `address`.
    pub fn peer(&self, address: &Address) -> Address {
        match address {
            Address::Tcp(_) | Address::Other(_) => address.clone(),
            Address::Raw(Station { mac, .. }) => {
                Address::Raw(Station { interface: self.near_interface.into(), mac: *mac })
            }
        }
    }

    /// Limits a cable in both directions, as [`Namespace::limit`].
    ///
    /// # Errors
    /// If `tc` is missing or fails.
    pub fn limit(&self, rate: Rate) -> Result<(), Failure> {
        self.near.limit(NEAR, rate.bits_per_second, BURST)?;
        self.far.limit(FAR, rate.bits_per_second, BURST)?;
        Ok(())
    }
}

/// Sends frames of several sizes as fast as a limited cable accepts them. If the measured rates are
/// not equal, the bucket counts wrong.
///
/// # Errors
/// If no cable can be created.
pub fn check(clock: Clock, rate: Rate, span: Duration) -> Result<Vec<LinkCheck>, Failure> {
    let place = TestNetwork::cable(Transport::Raw)?;
    place.limit(rate)?;
    let interface = place.near.enter(|| Interface::find(NEAR))??;
    let open = || PacketSocket::open(&interface, wire::raw::ETHERTYPE, &Filter::everything());
    let mut socket = place.near.enter(open)??;
    let mut passed = Vec::new();
    for payload in [46, 168, 400, MTU] {
        let mut frame = vec![0; ETHERNET + payload];
        frame[..6].fill(0xff);
        frame[12..14].copy_from_slice(&wire::raw::ETHERTYPE.to_be_bytes());
        // Bucket and socket buffer must be full before the measurement.
        send(clock, &mut socket, &frame, clock.now() + span)?;
        let start = clock.now();
        let frames = send(clock, &mut socket, &frame, start + span)?;
        let seconds = (clock.now() - start).as_ns() as f64 / 1e9;
        let bits_per_second = frames as f64 * wire(payload) as f64 * 8.0 / seconds;
        passed.push(LinkCheck { frame_payload: payload, wire_bits_per_s: bits_per_second.round() });
    }
    Ok(passed)
}

fn send(
    clock: Clock,
    socket: &mut PacketSocket,
    frame: &[u8],
    until: Instant,
) -> Result<u64, Failure> {
    let mut sent = 0;
    while clock.now() < until {
        if socket.send(frame)? {
            sent += 1;
        } else {
            std::thread::yield_now();
        }
    }
    Ok(sent)
}
