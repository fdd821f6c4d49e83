//! Endpoint to endpoint: refused unless allowed, and then routed by the switch.

use crate::fabric::world::{Fabric, Happened, Plan, RAM, Shape, bar};
use pcie::dma_test::register;
use stats::random::Random;
use wire::Duration;

fn bars(fabric: &mut Fabric) -> Vec<u64> {
    fabric.ready().iter().map(bar).collect()
}

#[test]
fn without_p2p_the_root_complex_refuses() {
    let mut fabric = Plan::default().with_devices(2);
    let bars = bars(&mut fabric);
    let peer = bars[1] + register::RAM;
    assert_eq!(fabric.copy(bars[0], peer, RAM, 64), Err(Some(1)));
    assert_eq!(fabric.happened[0], Happened::Refused(peer), "redirected to the root");
    assert_eq!(fabric.copy(bars[0], RAM, peer, 64), Ok(()), "a posted write is refused silently");
    fabric.pass(Duration::from_ms(1));
    assert!(fabric.dma(1).ram().iter().all(|byte| *byte == 0));
    assert_eq!(fabric.count(|h| matches!(h, Happened::Refused(_))), 2);
}

#[test]
fn with_p2p_two_cascaded_switches_route() {
    let mut fabric = Plan { p2p: true, shape: Shape::ROUGH, ..Plan::default() }.cascade();
    let bars = bars(&mut fabric);
    // Devices 1 and 2 share the second switch, device 0 hangs off the first.
    for (who, peer) in [(1, 2), (2, 1), (0, 1), (2, 0)] {
        let noise = Random::new(who as u64).bytes(2000);
        fabric.memory(0, noise.len()).copy_from_slice(&noise);
        let there = bars[peer] + register::RAM + 0x101;
        assert_eq!(fabric.copy(bars[who], RAM, there, 2000), Ok(()), "{who} to {peer}");
        assert_eq!(fabric.copy(bars[who], there, RAM + 0x10_0001, 2000), Ok(()), "{peer} to {who}");
        assert!(fabric.memory(0x10_0001, noise.len()) == noise, "{who} and {peer}");
    }
    assert_eq!(fabric.count(|h| matches!(h, Happened::Refused(_))), 0);
}

#[test]
fn a_peer_that_is_gone_is_an_unsupported_request_at_once() {
    let mut fabric = Plan { p2p: true, ..Plan::default() }.with_devices(2);
    let bars = bars(&mut fabric);
    fabric.disconnect(1);
    fabric.pass(Duration::from_ms(1));
    let before = fabric.now;
    assert_eq!(fabric.copy(bars[0], bars[1] + register::RAM, RAM, 64), Err(Some(1)));
    assert!(fabric.now.since(before) < Duration::from_ms(1));
}
