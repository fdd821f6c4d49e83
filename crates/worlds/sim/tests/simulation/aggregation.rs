//! Aggregation policies, rate limits and turns of links, in whole simulations.

use crate::simulation::worlds::*;
use wire::frame::FrameReport;

#[derive(Default)]
struct Counted {
    /// Tunnel frames of both ends.
    frames: u64,
    /// TCP segments with data, counted on both wires of their path.
    segments: u64,
}

#[derive(Clone, Default)]
struct Segments(Rc<RefCell<Counted>>);

impl Observer for Segments {
    fn tunnel_frame(&mut self, _: Instant, _: Point, frame: &FrameReport) {
        self.0.borrow_mut().frames += u64::from(frame.sent);
    }

    fn ethernet_frame(&mut self, _: Instant, _: Point, bytes: &[u8]) {
        let tag = if bytes[12..14] == [0x81, 0x00] { 4 } else { 0 };
        let ip = &bytes[14 + tag..];
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let headers = 20 + usize::from(ip[20 + 12] >> 4) * 4;
        self.0.borrow_mut().segments += u64::from(ip[9] == 6 && total > headers);
    }
}

/// Two busy drives behind one bridge.
fn busy(change: impl Fn(&mut SwitchConfig)) -> Config {
    let network = bridged(vec![station(Rate::G1); 3], 1, bridge::Mode::StoreAndForward, None);
    let ports = (0..2).map(|n| (tcp([0, n + 1]), drive(n, Timing::NULL))).collect();
    let host = host(Workload::Fio(fio(Rw::RandRw, 4096, 8)), ports);
    let mut config = config(vec![host], network);
    change(switch(&mut config));
    config
}

/// Runs `config`. Also returns when a TLP first waited without a reason.
fn watched(config: &Config) -> (Report, Option<Instant>) {
    let mut world = World::new(config).unwrap();
    let mut held = None;
    while !world.run_instant().unwrap() {
        if world.held_back().is_some() {
            held = held.or(Some(world.now()));
        }
    }
    (world.report(), held)
}

#[test]
fn no_tlp_waits_while_network_has_room() {
    for policy in [Policy::Adaptive, Policy::PerTlp] {
        let (report, held) = watched(&busy(|switch| switch.aggregation = policy));
        check(&report);
        assert_eq!(held, None, "{policy}");
    }
    // The check detects TLPs that wait because of a policy.
    let wait = Policy::Wait(Duration::from_us(1));
    let (report, held) = watched(&busy(|switch| switch.aggregation = wait));
    check(&report);
    assert!(held.is_some(), "a TLP that waits was not seen");
}

#[test]
fn each_policy_makes_the_frames_it_says() {
    let frames = |policy| {
        let report = run(&busy(|switch| switch.aggregation = policy));
        check(&report);
        let sum =
            |figure: fn(&sim::world::TunnelReport) -> u64| report.tunnels.iter().map(figure).sum();
        (sum(|way| way.frames), sum(|way| way.tlps), report.hosts[0].span)
    };
    let (frames_alone, tlps_alone, _): (u64, u64, _) = frames(Policy::PerTlp);
    assert_eq!(frames_alone, tlps_alone, "one TLP a frame");
    let (adaptive, tlps, span) = frames(Policy::Adaptive);
    assert!(adaptive * 5 < tlps * 4, "{tlps} TLPs in {adaptive} frames");
    let (waiting, tlps, slower) = frames(Policy::Wait(Duration::from_us(20)));
    assert!(waiting < tlps, "{tlps} TLPs in {waiting} frames");
    assert!(slower > span, "waiting costs time: {slower}, adaptive {span}");
}

#[test]
fn a_tlp_alone_is_a_segment_alone() {
    let config = busy(|switch| switch.aggregation = Policy::PerTlp);
    let segments = Segments::default();
    let mut world = World::new(&config).unwrap();
    world.observe(Box::new(segments.clone()));
    let report = world.run().unwrap();
    check(&report);
    assert_eq!(world.retransmitted(), 0);
    let counted = segments.0.borrow();
    assert!(counted.frames > 1_000, "{}", counted.frames);
    // The last segment may not have passed its second wire.
    assert_eq!(
        counted.segments.div_ceil(2),
        counted.frames,
        "TCP segments with data, tunnel frames"
    );
}

#[test]
fn a_rate_limit_is_kept_and_shared() {
    let limit = "200M".parse().unwrap();
    let free = run(&busy(|_| {}));
    let report = run(&busy(|switch| switch.rate_limit = Some(limit)));
    check(&report);
    let host = &report.hosts[0];
    // Half of the commands are writes, whose data the host's end sends.
    let bits = host.bytes as u128 / 2 * 8 * 1_000_000_000_000 / u128::from(host.span.as_ps());
    assert!(bits < 200_000_000, "{bits} b/s");
    assert!(host.span > free.hosts[0].span);
}

/// The bytes that the host sends on one link before it changes to another link.
#[derive(Clone, Default)]
struct Turns(Rc<RefCell<Vec<(Point, usize)>>>);

impl Observer for Turns {
    fn stream(&mut self, _: Instant, point: Point, sent: bool, bytes: &[u8]) {
        if !sent || !matches!(point, Point::TunnelHost(_)) {
            return;
        }
        let turns = &mut *self.0.borrow_mut();
        match turns.last_mut().filter(|(last, _)| *last == point) {
            Some((_, sum)) => *sum += bytes.len(),
            None => turns.push((point, bytes.len())),
        }
    }
}

#[test]
fn behind_a_rate_limit_links_take_turns_as_those_of_live_nodes() {
    let drive = |number| DriveConfig { reads_in_flight: 64, ..drive(number, Timing::NULL) };
    let writes = Fio { numjobs: 2, ..fio(Rw::Write, 64 << 10, 4) };
    let host = host(Workload::Fio(writes), vec![(pipe(), drive(0)), (pipe(), drive(1))]);
    let mut plan = config(vec![host], NetworkConfig::default());
    switch(&mut plan).rate_limit = Some("100M".parse().unwrap());
    let turns = Turns::default();
    let mut world = World::new(&plan).unwrap();
    world.observe(Box::new(turns.clone()));
    check(&world.run().unwrap());
    let turns = turns.0.take();
    let middle = &turns[turns.len() / 4..turns.len() / 2];
    // The start and the end of a turn may differ by one frame each.
    let turn = node::link_state::FRAME;
    let long = middle.iter().filter(|(_, bytes)| bytes.abs_diff(turn) <= 2 * 1_460).count();
    assert!(long > middle.len() / 2, "{middle:?}");
    assert!(middle.iter().all(|(_, bytes)| *bytes <= turn + 2 * 1_460), "{middle:?}");
}
