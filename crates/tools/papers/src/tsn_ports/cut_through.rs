//! INET's showcase of cut-through switching.

use super::{CaseLab, Figures};
use report::Failure;
use sim::ethernet::Rate;
use sim::ethernet::bridge::Mode;
use sim::ethernet::traffic::Pattern;
use sim::network::{TrafficConfig, Tree};
use wire::Duration;

/// Bytes of the frame, header to FCS, without tag: 1200 bytes of the application, UDP, IP, header,
/// FCS.
const FRAME: usize = 1200 + 8 + 20 + 14 + 4;

pub(super) fn simulate(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    Ok(vec![
        ("store_and_forward", latency(lab.rows(&["store_and_forward"]), Mode::StoreAndForward)?),
        ("cut_through", latency(lab.rows(&["cut_through"]), Mode::CutThrough)?),
    ])
}

fn latency(lab: CaseLab<'_>, mode: Mode) -> Result<f64, Failure> {
    let mut tree = Tree::new(Rate::G1, Duration::from_ns(50));
    let (from, to) = (tree.station(), tree.station());
    let bridges = [(); 2].map(|()| tree.bridge(mode, Duration::ZERO));
    tree.link(from, bridges[0]);
    tree.link(bridges[0], bridges[1]);
    tree.link(bridges[1], to);
    let every = Pattern::Periodic(Duration::from_us(200));
    let stream = tree.stream(from, TrafficConfig::new(1, FRAME, 0, every));
    tree.network().stations.iter_mut().for_each(|station| station.tagging = None);
    let observed = lab.run(&mut tree, Duration::from_ms(10))?;
    Ok(observed.latencies(&[stream]).max)
}
