//! The network of a plan in network namespaces of this machine: one namespace per station and per
//! bridge, a veth pair per cable, limited to the cable's rate. The kernel removes all of it when the
//! process ends, in whatever way.

use live::net::Namespace;
use plan::Planned;
use report::Failure;
use sim::ethernet::Rate;
use sim::network::CableEnd;
use std::net::Ipv4Addr;
use wire::Duration;

/// Name of a station's interface.
pub const INTERFACE: &str = "eth0";
/// Lines from this rate on are not limited: one processor core sends less.
pub const UNLIMITED: Rate = Rate::G25;
/// By how much the kernel's timer of a token bucket may be late.
const LATE: Duration = Duration::from_us(20);
/// Bytes on the wire of the longest frame with a tag, preamble to gap.
const LONGEST: usize = 1542;
/// The congestion control of new connections in a namespace (Linux, ip-sysctl.rst). Reno, as in the
/// simulator, is always there, and does not pace.
const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// The most stations and bridges: each has a namespace and at least one thread.
const MOST: usize = 64;

/// The namespaces of a plan's network.
pub struct RigNetwork {
    /// The namespaces of the stations, in the order of the plan.
    pub stations: Vec<Namespace>,
    /// The namespaces of the bridges, in the order of the plan.
    bridges: Vec<Namespace>,
}

/// Returns the address of a station, of the network for benchmarks (RFC 2544, appendix C.2.2).
pub fn address(station: usize) -> Ipv4Addr {
    let [high, low] = (station as u16 + 1).to_be_bytes();
    Ipv4Addr::new(198, 18, high, low)
}

impl RigNetwork {
    /// Creates the namespaces, bridges and cables of a plan.
    ///
    /// # Errors
    /// If this process may create no namespaces, if `ip` or `tc` is missing or fails, or if the
    /// network is too large.
    pub fn new(plan: &Planned) -> Result<Self, Failure> {
        let network = &plan.config.network;
        let (stations, bridges) = (network.stations.len(), network.bridges.len());
        if stations + bridges > MOST {
            return Err(Failure(format!(
                "{stations} stations and {bridges} bridges: at most {MOST} fit on one machine"
            )));
        }
        let many = |count| (0..count).map(|_| Namespace::new()).collect::<Result<_, _>>();
        let made = Self { stations: many(stations)?, bridges: many(bridges)? };
        for bridge in &made.bridges {
            bridge.run("ip link add bridge0 type bridge stp_state 0 mcast_snooping 0")?;
            bridge.run("ip link set bridge0 up")?;
        }
        let spanning = network.wiring().spanning().to_vec();
        for (number, cable) in network.cables.iter().enumerate() {
            // Linux without STP floods a loop for ever.
            if spanning[number] {
                made.cable(number, cable.a, cable.b)?;
                for end in [cable.a, cable.b] {
                    made.limit(number, end, network.port(end).rate)?;
                }
            }
        }
        for (number, station) in made.stations.iter().enumerate() {
            let address = address(number);
            station.run(&format!("ip address add {address}/15 dev {INTERFACE}"))?;
            station.enter(|| std::fs::write(CONGESTION_CONTROL, "reno"))??;
        }
        Ok(made)
    }

    /// Returns the namespace and the interface at an end of cable `number`.
    fn interface(&self, number: usize, end: CableEnd) -> (&Namespace, String) {
        match end {
            CableEnd::Station(station, _) => (&self.stations[station], INTERFACE.to_owned()),
            CableEnd::Bridge(bridge, port) => (&self.bridges[bridge], format!("c{number}p{port}")),
        }
    }

    fn cable(&self, number: usize, a: CableEnd, b: CableEnd) -> Result<(), Failure> {
        let ((near, near_name), (far, far_name)) =
            (self.interface(number, a), self.interface(number, b));
        near.cable(&near_name, far, &far_name)?;
        for (end, (place, name)) in [(a, (near, near_name)), (b, (far, far_name))] {
            if matches!(end, CableEnd::Bridge(..)) {
                place.run(&format!("ip link set {name} master bridge0"))?;
            }
        }
        Ok(())
    }

    /// Limits the rate of a port. The bucket holds one frame, or what the line carries in
    /// [`LATE`].
    fn limit(&self, number: usize, end: CableEnd, rate: Rate) -> Result<(), Failure> {
        if rate >= UNLIMITED {
            return Ok(());
        }
        let (place, name) = self.interface(number, end);
        let late = LATE.as_ps() / rate.ps_per_byte();
        Ok(place.limit(&name, rate.bits_per_second(), LONGEST.max(late as usize))?)
    }

    /// Cuts a cable, or repairs it.
    ///
    /// # Errors
    /// As [`Namespace::run`].
    pub fn set_cable(&self, plan: &Planned, number: usize, up: bool) -> Result<(), Failure> {
        let (place, name) = self.interface(number, plan.config.network.cables[number].a);
        let state = if up { "up" } else { "down" };
        place.run(&format!("ip link set {name} {state}"))?;
        Ok(())
    }
}
