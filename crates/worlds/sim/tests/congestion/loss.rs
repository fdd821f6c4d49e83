//! Random loss on the wire, not in a queue.

use crate::congestion::network::*;
use stats::random::Probability;

fn with_loss(congestion: &str, ppm: u32) -> FlowsReport {
    let mut config = flows(1, congestion, Duration::ZERO, Duration::from_ms(30));
    let faults = config.network.cables.iter_mut().flat_map(|cable| &mut cable.faults);
    faults.zip(1..).for_each(|(faults, seed)| {
        faults.loss = Probability::from_ppm(ppm).expect("a share");
        faults.seed = seed;
    });
    simulate(&config)
}

#[test]
fn a_thousandth_lost_costs_less_than_a_tenth() {
    for congestion in ["swift", "swift=25us"] {
        let [clean, lossy] = [0, 1_000].map(|ppm| with_loss(congestion, ppm));
        let [full, less] = [&clean, &lossy].map(|report| report.delivered(ms(1), ms(30))[0]);
        assert!(lossy.senders[0].retransmitted > 20, "{:?}", lossy.senders[0]);
        assert!(less * 100 >= full * 90, "{congestion}: {less} of {full}");
    }
}

/// Frames that three later frames overtake are retransmitted long before a timeout, and rarely more
/// than once.
#[test]
fn loss_is_seen_without_timeouts() {
    let report = with_loss("swift=25us", 10_000);
    let (sender, receiver) = (report.senders[0], report.receivers[0]);
    assert!(sender.retransmitted > 200 && sender.timeouts <= 3, "{sender:?}");
    assert!(receiver.duplicates * 20 < sender.retransmitted, "{receiver:?} {sender:?}");
}
