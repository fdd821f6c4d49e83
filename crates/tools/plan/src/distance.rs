//! The round trip of a frame and its acknowledgement between two stations, through empty queues. A
//! plan contains the whole network, so the target delay of congestion control need not be measured.

use crate::simulate::places::{self, Egress};
use sim::ethernet::frame::{FCS, HEADER, MINIMUM, PREAMBLE, TAG};
use sim::network::{CableEnd, Wiring};
use switch::congestion::{Config, SwiftConfig, Target};
use wire::Duration;

/// Completes a congestion control. Swift without a time gets a target delay: the round trip of the
/// largest frame plus a delay of queues, at least [`QUEUE`] of such frames on the slowest line.
pub fn with_target(
    congestion: Config,
    wiring: &Wiring<'_>,
    stations: [usize; 2],
    priority: u8,
    mtu: usize,
) -> Config {
    let Config::Swift(swift) = congestion else { return congestion };
    let Target::Above(queue) = swift.target else { return congestion };
    let [host, device] = stations;
    let route_there = route(wiring, host, device, priority, mtu);
    let back = route(wiring, device, host, priority, mtu);
    let (empty, slowest) = (route_there.0 + back.0, route_there.1.max(back.1));
    let queue = queue.max(Duration::from_ps(QUEUE * slowest.as_ps()));
    let target = Target::RoundTrip(Duration::from_us((empty + queue).as_ps().div_ceil(1_000_000)));
    let scaling = Duration::from_ps(4 * queue.as_ps());
    Config::Swift(SwiftConfig { target, scaling, ..swift })
}

/// Number of largest frames that may wait in queues.
const QUEUE: u64 = 4;

/// Returns half of the sum of two times between `from` and `to`: of the largest frame and of a
/// frame without payload. Both directions together are then one frame and one acknowledgement. Also
/// returns the time of the largest frame on the slowest line.
fn route(
    wiring: &Wiring<'_>,
    from: usize,
    to: usize,
    priority: u8,
    mtu: usize,
) -> (Duration, Duration) {
    let network = wiring.network;
    let tag = if network.tag(from, priority).is_some() { TAG } else { 0 };
    let long = PREAMBLE + (HEADER + tag + mtu + FCS).max(MINIMUM);
    let short = PREAMBLE + MINIMUM;
    let [sender, receiver] = [&network.stations[from], &network.stations[to]];
    let mut ps = sender.tx_delay.as_ps() + receiver.rx_delay.as_ps();
    let mut slowest = Duration::ZERO;
    for egress in places::route(wiring, from, to, priority) {
        let frame = egress.rate.duration(long);
        slowest = slowest.max(frame);
        ps += (frame.as_ps() + egress.rate.duration(short).as_ps()) / 2;
        ps += gate(&egress, frame).as_ps();
        let Some((cable, other)) = wiring.across(egress.place) else { continue };
        ps += network.cables[cable].propagation.as_ps();
        if let CableEnd::Bridge(bridge, _) = other {
            ps += network.bridges[bridge].delay.as_ps();
        }
    }
    (Duration::from_ps(ps), slowest)
}

fn gate(egress: &Egress<'_>, frame: Duration) -> Duration {
    let gates = egress.gates.map(|gates| gates.longest_wait(egress.queue, frame));
    gates.flatten().unwrap_or_default()
}
