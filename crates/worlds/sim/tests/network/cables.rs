//! Cables and interfaces.

use super::*;
use sim::ethernet::cable::{Config, Counters, Delivery, Faults, Output};

fn frame(id: u64, now: Instant) -> Frame {
    let mut bytes = vec![0; 60];
    bytes[..6].copy_from_slice(&Mac::local(2).0);
    Frame::new(id, Bytes::from(bytes), 6, now)
}

fn transmission(id: u64, at_ns: u64) -> Transmission {
    let start = Instant::from_ns(at_ns);
    let frame = frame(id, start);
    let end = start + frame.duration(Rate::G1);
    Transmission { frame, start, end, rate: Rate::G1, preemptable: false, class: 0 }
}

/// Sends `count` frames, one each microsecond. Returns the arrivals with their times.
fn carry(config: Config, count: u64) -> (Vec<(Instant, Transmission)>, Counters) {
    let mut cable = Cable::new(config);
    let mut arrived = Vec::new();
    let mut poll = |cable: &mut Cable, until: Instant| {
        while let Output::Timeout(Some(at)) = cable.poll(Instant::ZERO)
            && at <= until
        {
            let Output::Deliver(transmission) = cable.poll(at) else { panic!("due at {at}") };
            arrived.push((at, transmission));
        }
    };
    for id in 0..count {
        let transmission = transmission(id, id * 1_000);
        poll(&mut cable, transmission.start);
        cable.handle(transmission.start, LineEvent::Transmit(transmission));
    }
    poll(&mut cable, Instant::from_ns(u64::MAX / 1_000));
    assert_eq!(cable.on_the_way(), 0);
    (arrived, cable.counters())
}

#[test]
fn frame_is_delivered_whole_or_after_header() {
    let propagation = Duration::from_ns(500);
    for (delivery, at) in [(Delivery::Whole, 576 + 500), (Delivery::Header, (8 + 14) * 8 + 500)] {
        let config = Config { propagation, delivery, faults: Faults::default() };
        let (arrived, _) = carry(config, 1);
        let (when, transmission) = &arrived[0];
        assert_eq!(*when, Instant::from_ns(at));
        assert_eq!(transmission.start, Instant::from_ns(500));
        assert_eq!(transmission.end, Instant::from_ns(1_076));
        let latency = transmission.frame.latency;
        assert_eq!(latency.spent(FrameStage::Propagation), propagation);
        assert_eq!(latency.spent(FrameStage::Serialisation), Duration::from_ns(at - 500));
    }
}

#[test]
fn faults_are_counted_and_keep_order() {
    let faults = Faults {
        seed: 5,
        loss: Probability::from_ppm(100_000).unwrap(),
        corruption: Probability::from_ppm(50_000).unwrap(),
        delay: Probability::from_ppm(200_000).unwrap(),
        delay_up_to: Duration::from_us(20),
        // Frame 100 begins 100 ns before the cut, frame 199 within it.
        cuts: vec![(Instant::from_ns(100_100), Instant::from_ns(199_900))],
        ..Faults::default()
    };
    let propagation = Duration::from_ns(50);
    let config = Config { propagation, faults: faults.clone(), ..Default::default() };
    let (arrived, counters) = carry(config.clone(), 1_000);
    assert_eq!(counters.offered, 1_000);
    assert_eq!(counters.delivered, arrived.len() as u64);
    assert_eq!(counters.delivered + counters.lost + counters.cut, 1_000);
    assert!(counters.cut >= 100, "{counters:?}");
    assert!((60..130).contains(&counters.lost), "{counters:?}");
    let corrupt = arrived.iter().filter(|(_, transmission)| transmission.frame.corrupt).count();
    assert_eq!(corrupt as u64, counters.corrupted);
    assert!((25..75).contains(&corrupt), "{counters:?}");
    assert!(arrived.is_sorted_by_key(|(_, transmission)| transmission.frame.id));
    let mut last = Instant::ZERO;
    for (when, transmission) in &arrived {
        assert!(transmission.start >= last, "two frames at once");
        last = transmission.end;
        assert!(*when >= Instant::from_ns(transmission.frame.id * 1_000 + 626));
        assert_eq!(transmission.frame.latency.until(), *when);
        assert!(!(100..200).contains(&transmission.frame.id), "{}", transmission.frame.id);
    }
    assert!(arrived == carry(config, 1_000).0, "two runs differ");
    let always = Faults { loss: Probability::ALWAYS, ..Faults::default() };
    let config = Config { propagation, faults: always, ..Default::default() };
    assert_eq!(carry(config, 10).1.lost, 10);
}

fn interface(tagging: Option<nic::Tagging>) -> nic::Config {
    nic::Config {
        mac: Mac::local(2),
        ports: vec![port::Config::new(Rate::G1)],
        tx_delay: Duration::from_ns(300),
        rx_delay: Duration::from_ns(200),
        tx_ring: 2,
        tagging,
        streams: Vec::new(),
        groups: Vec::new(),
    }
}

#[test]
fn an_interface_delays_and_tags() {
    let mut nic = Nic::new(interface(Some(nic::Tagging::vlan(7))));
    nic.handle(Instant::ZERO, nic::Input::FromHost(frame(0, Instant::ZERO)));
    assert_eq!(nic.room(), 1);
    let at = Instant::from_ns(300);
    assert_eq!(nic.poll(Instant::ZERO), nic::Output::Timeout(Some(at)));
    let nic::Output::Line { event: LineEvent::Transmit(transmission), .. } = nic.poll(at) else {
        panic!("due")
    };
    assert_eq!(transmission.frame.tag, Some(Tag { pcp: 6, vid: 7 }));
    assert_eq!(transmission.end, at + Duration::from_ns((8 + 68) * 8));
    assert_eq!(transmission.frame.latency.spent(FrameStage::Nic), Duration::from_ns(300));
    assert_eq!(nic.room(), 2);
}

/// A ring that waits for its gate does not block the other rings.
#[test]
fn rings_are_by_queue() {
    let open = Duration::from_us(100);
    let gates = Some(gates_of(&[(0x40, open), (0x01, open)]));
    let port = port::Config { gates, ..port::Config::new(Rate::G1) };
    let no_delay = Duration::ZERO;
    let tagging = Some(nic::Tagging::vlan(7));
    let config = nic::Config {
        ports: vec![port],
        tx_delay: no_delay,
        rx_delay: no_delay,
        ..interface(tagging)
    };
    let mut nic = Nic::new(config);
    for (id, priority) in [(0, 0), (1, 0), (2, 6)] {
        let mut frame = frame(id, Instant::ZERO);
        frame.priority = priority;
        nic.handle(Instant::ZERO, nic::Input::FromHost(frame));
    }
    assert_eq!((nic.room_for(0), nic.room_for(6), nic.room_for(3)), (0, 1, 2));
    assert_eq!(nic.room(), 0);
    let nic::Output::Line { event: LineEvent::Transmit(first), .. } = nic.poll(Instant::ZERO)
    else {
        panic!("its gate is open")
    };
    assert_eq!((first.frame.id, nic.room_for(6), nic.room_for(0)), (2, 2, 0));
    let opens = Instant::from_ns(100_000);
    assert_eq!(nic.poll(first.end + Duration::from_ns(96)), nic::Output::Timeout(Some(opens)));
    let nic::Output::Line { event: LineEvent::Transmit(second), .. } = nic.poll(opens) else {
        panic!("its gate is open")
    };
    assert_eq!((second.frame.id, nic.room_for(0)), (0, 1));
}

#[test]
fn an_interface_checks_what_it_receives() {
    let mut nic = Nic::new(interface(None));
    let mut good = transmission(0, 0);
    good.frame.tag = Some(Tag { pcp: 1, vid: 1 });
    let mut corrupt = transmission(1, 0);
    corrupt.frame.corrupt = true;
    let mut foreign = transmission(2, 0);
    foreign.frame.bytes = vec![0; 60].into();
    let mut broadcast = transmission(3, 0);
    broadcast.frame.bytes = vec![0xff; 60].into();
    for input in [good, corrupt, foreign, broadcast] {
        nic.handle(Instant::ZERO, nic::Input::FromLine { port: 0, transmission: input });
    }
    let mut ids = Vec::new();
    while let nic::Output::ToHost(frame) = nic.poll(Instant::from_ns(200)) {
        assert_eq!(frame.tag, None);
        ids.push(frame.id);
    }
    assert_eq!(ids, [0, 3]);
    let counters = nic.counters();
    assert_eq!((counters.received, counters.to_host), (4, 2));
    assert_eq!((counters.fcs_errors, counters.not_for_us), (1, 1));
}

#[test]
fn frames_are_reordered_and_duplicated_within_the_given_time() {
    let (from, until) = (Instant::from_ns(200_000), Instant::from_ns(800_000));
    let faults = Faults {
        seed: 5,
        reordering: Probability::from_ppm(100_000).unwrap(),
        duplication: Probability::from_ppm(100_000).unwrap(),
        delay_up_to: Duration::from_us(20),
        during: vec![(from, until)],
        ..Faults::default()
    };
    let config = Config { faults, ..Config::default() };
    let (arrived, counters) = carry(config, 1_000);
    assert_eq!(arrived.len() as u64, 1_000 + counters.duplicated);
    assert_eq!(counters.delivered, counters.offered + counters.duplicated);
    assert!((30..90).contains(&counters.duplicated) && (30..90).contains(&counters.reordered));
    let passed = arrived.windows(2).filter(|pair| pair[0].1.frame.id > pair[1].1.frame.id);
    assert!(passed.clone().count() > 20);
    let ids = |pair: &[(Instant, Transmission)]| pair[1].1.frame.id;
    assert!(passed.clone().map(ids).all(|id| (200..800).contains(&id)));
    assert!(arrived.windows(2).all(|pair| pair[0].0 <= pair[1].0), "in order of time");
}
