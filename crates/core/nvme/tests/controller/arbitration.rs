//! Arbitration: round robin, and weighted round robin with urgent priority class.

use super::*;
use wire::nvme::register::{CAP, Capabilities};
use wire::trace::NvmeEvent;

/// CC.AMS: weighted round robin with urgent priority class (NVMe 1.4, figure 73).
const WEIGHTED: u8 = 1;

/// A controller that executes one I/O command at a time, with queues 1 to 4 of urgent, high, medium
/// and low priority (QPRIO 0 to 3, figure 156).
fn host(arbitration: u8) -> Host {
    let config = configured(|settings| settings.commands = 1);
    let mut host = Host::over(Testbed::enumerated(config, true));
    host.arbitration = arbitration;
    host.enable(32);
    assert!(host.status().ready);
    // Weights 4, 2 and 1, 0's based; bursts without a limit.
    let weights = 3 << 24 | 1 << 16 | 7;
    host.admin(set_feature(feature::ARBITRATION, weights)).expect_success();
    for id in 1..=4u16 {
        let pair = Pair::new(id, 32);
        let [cq, sq] = create_commands(&pair);
        host.admin(cq).expect_success();
        host.admin(Command { cdw11: sq.cdw11 | u32::from(id - 1) << 1, ..sq }).expect_success();
        host.pairs[usize::from(id)] = Some(pair);
    }
    host.testbed.subsystem.set_events(true);
    host
}

/// The priorities of the fetched commands in order, one letter per command: A, U, H, M or L.
fn order(host: &mut Host) -> String {
    let events = std::iter::from_fn(|| host.testbed.subsystem.poll_event());
    let queue = |event| match event {
        NvmeEvent::Fetched { id, .. } => Some(b"AUHML"[usize::from(id.queue)] as char),
        _ => None,
    };
    events.filter_map(queue).collect()
}

/// Queues commands in all I/O queues while a command of low priority is outstanding.
fn backlog(host: &mut Host) {
    host.put(4, flush(1));
    host.fetch(4, false);
    for (queue, count) in [(4, 3), (3, 4), (2, 8), (1, 3)] {
        for _ in 0..count {
            host.put(queue, flush(1));
        }
        host.ring(queue);
    }
}

#[test]
fn weights_share_what_urgent_queues_leave() {
    let mut host = host(WEIGHTED);
    backlog(&mut host);
    host.testbed.settle();
    // The first command has used the share of low priority in the first round.
    assert_eq!(order(&mut host), "LUUUHHHHMMHHHHMMLLL");
    let admin = host.admin(get_feature(feature::ARBITRATION, 0)).expect_success();
    assert_eq!(admin, 3 << 24 | 1 << 16 | 7);
}

#[test]
fn admin_commands_come_first() {
    let mut host = host(WEIGHTED);
    backlog(&mut host);
    host.put(0, get_feature(feature::ARBITRATION, 0));
    host.ring(0);
    host.testbed.settle();
    assert_eq!(&order(&mut host)[..5], "LAUUU");
}

#[test]
fn round_robin_ignores_the_priority_of_a_queue() {
    let mut host = host(0);
    backlog(&mut host);
    host.testbed.settle();
    assert_eq!(order(&mut host), "LUHMLUHMLUHMLHMHHHH");
}

#[test]
fn cap_offers_one_mechanism_beside_round_robin() {
    let mut testbed = Testbed::enumerated(config(), true);
    assert_eq!(Capabilities::from_bits(testbed.read(CAP, 8)).arbitration, 1);
    for arbitration in [2, 6, 7] {
        let mut host = Host::over(Testbed::enumerated(config(), true));
        host.arbitration = arbitration;
        host.enable(32);
        assert!(host.status().fatal, "{arbitration}");
    }
}
