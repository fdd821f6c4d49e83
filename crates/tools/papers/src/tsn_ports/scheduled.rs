//! INET's showcase of gate scheduling: two clients, two bridges and two servers, with a schedule
//! computed by hand in which no frame waits.

use super::star::{CABLE, at, gates};
use super::{CaseLab, Figures};
use report::Failure;
use sim::ethernet::Rate;
use sim::ethernet::bridge::Mode;
use sim::ethernet::traffic::Pattern;
use sim::network::{TrafficConfig, Tree};
use wire::Duration;

/// Returns the bytes of a frame, header to FCS without tag: the bytes of the application, UDP, IP,
/// header, FCS.
const fn length(application: usize) -> usize {
    application + 8 + 20 + 14 + 4
}

const VIDEO: u8 = 4;
const BEST_EFFORT: u8 = 0;

pub(super) fn simulate(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let mut tree = Tree::new(Rate::M100, CABLE);
    let servers = [(); 2].map(|()| tree.station());
    let clients = [(); 2].map(|()| tree.station());
    let bridges = [(); 2].map(|()| tree.bridge(Mode::StoreAndForward, Duration::ZERO));
    for client in clients {
        tree.link(client, bridges[0]);
    }
    let trunk = tree.link(bridges[0], bridges[1]);
    for server in servers {
        tree.link(bridges[1], server);
    }
    // Four times per cycle of 1 ms: both videos, then one frame of best effort.
    let windows = [(1 << VIDEO, 91.5), (1 << BEST_EFFORT, 129.5), (0, 29.0)];
    tree.port(trunk).gates = Some(gates(&windows));
    let mut video = Vec::new();
    let mut best_effort = Vec::new();
    // A video frame takes 44.64 us, with its gap 45.6 us. The frame that the second client sends
    // before the end of the 250 us reaches the line between the bridges first.
    for (client, (frame, bulk)) in clients.into_iter().zip([(1.0, 51.2), (205.4, 301.2)]) {
        let mut add = |to, bytes, priority, every_us, start| {
            let pattern = Pattern::Periodic(Duration::from_us(every_us));
            let plain = TrafficConfig::new(to, length(bytes), priority, pattern);
            tree.stream(client, TrafficConfig { start: at(start), ..plain })
        };
        video.push(add(1, 500, VIDEO, 250, frame));
        best_effort.push(add(0, 1000, BEST_EFFORT, 500, bulk));
    }
    let lab =
        lab.rows(&["video_min", "video_max", "best_effort_min", "best_effort_max", "longest"]);
    let observed = lab.run(&mut tree, Duration::from_ms(200))?;
    let [video, best_effort] = [video, best_effort].map(|streams| observed.latencies(&streams));
    Ok(vec![
        ("video_min", video.min),
        ("video_max", video.max),
        ("best_effort_min", best_effort.min),
        ("best_effort_max", best_effort.max),
        ("longest", video.max.max(best_effort.max)),
    ])
}
