//! Over raw Ethernet, between network namespaces that the tests make.

use crate::isolated::isolated;
use crate::nodes::{Far, Link, Near, RAM, is_clean, pattern};
use crate::relay::{FAULTS, Relay};
use live::net::{
    Address, Filter, Interface, LineGate, LinkSettings, Namespace, PacketSocket, Peer, Protection,
    RawSettings, largest_payload,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;
use switch::aggregate::Policy;
use switch::congestion::Config;
use wire::Duration;

fn listen(interface: &str) -> Address {
    Address::to_listen(&format!("raw:{interface}"), Protection::Insecure).unwrap()
}

/// The address of `far` through `interface`.
fn through(interface: &str, far: &Far) -> Address {
    let text = far.address.to_string();
    let (_, mac) = text.split_once(',').unwrap();
    Peer::find(&format!("raw:{interface},{mac}"), Protection::Insecure).unwrap().address(0).clone()
}

/// Copies of many lengths and addresses, compared byte by byte.
fn copies(near: &mut Near, times: usize) {
    near.enable(0, 40);
    for round in 0..times {
        let length = [1, 4096, 70_001, 300_000][round % 4];
        let (from, to) = (round % 7, 0x10_0000 + round % 5);
        let data = pattern(length, round);
        near.fill(from, &data);
        near.fill(to, &vec![0; length]);
        let (source, target) = (RAM + from as u64, RAM + to as u64);
        assert_eq!(near.copy(0, source, target, length as u32), Ok(()), "round {round}");
        for (block, (got, sent)) in
            near.memory(to, length).chunks(512).zip(data.chunks(512)).enumerate()
        {
            assert!(got == sent, "round {round}, block {block}");
        }
    }
}

#[test]
fn a_cable_carries_every_policy_and_payload() {
    isolated("raw::a_cable_carries_every_policy_and_payload", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let wait = Policy::Wait(Duration::from_us(1));
        for (policy, payload) in [(Policy::Adaptive, 1024), (Policy::PerTlp, 128), (wait, 256)] {
            let link = Link { aggregation: policy, ..Link::new(payload) };
            let mut far = away.enter(|| Far::listen(listen("far0"), link)).unwrap();
            let mut near = Near::connect(link, &[through("near0", &far)]);
            assert_eq!(near.nodes[0].max_payload, usize::from(payload));
            copies(&mut near, 8);
            let counters = near.machine.attached().upstream().tunnel(0).counters();
            let shared = counters.tlps_sent - counters.frames_sent;
            assert_eq!(shared == 0, policy == Policy::PerTlp, "{policy}: {counters:?}");
            let link = far.stop().expect("it ran");
            assert!(is_clean(&link), "{link:?}");
        }
    });
}

#[test]
fn an_ordinary_bridge_in_between_carries_two_links() {
    isolated("raw::an_ordinary_bridge_in_between_carries_two_links", |home| {
        let [middle, left, right] = [(); 3].map(|()| Namespace::new().unwrap());
        middle.run("ip link add bridge0 type bridge").unwrap();
        middle.run("ip link set bridge0 up").unwrap();
        for (port, place, name) in
            [("port0", home, "near0"), ("port1", &left, "far0"), ("port2", &right, "far0")]
        {
            middle.cable(port, place, name).unwrap();
            middle.run(&format!("ip link set {port} master bridge0")).unwrap();
        }
        let far = [&left, &right]
            .map(|place| place.enter(|| Far::listen(listen("far0"), Link::new(256))).unwrap());
        let peers = far.each_ref().map(|far| through("near0", far));
        let mut near = Near::connect(Link::new(256), &peers);
        assert_eq!(near.nodes.len(), 2);
        copies(&mut near, 4);
        near.enable(1, 41);
        let data = pattern(100_000, 5);
        near.fill(0, &data);
        assert_eq!(near.copy(1, RAM, RAM + 0x10_0000, 100_000), Ok(()));
        assert!(near.memory(0x10_0000, 100_000) == data);
    });
}

#[test]
fn a_gate_lets_frames_go_in_its_windows_alone() {
    isolated("raw::a_gate_lets_frames_go_in_its_windows_alone", |home| {
        const CYCLE: u64 = 20_000_000;
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let mut far = away.enter(|| Far::listen(listen("far0"), Link::new(256))).unwrap();
        let list = tsn::taprio::parse("sched-entry S 20 10ms sched-entry S df 10ms").unwrap();
        let rate = "1G".parse().unwrap();
        let margin = Some(Duration::from_us(500));
        let gate = LineGate::new(&list, 5, rate, margin, linux::time::WallClock::Realtime).unwrap();
        let peer = through("near0", &far);
        let settings = LinkSettings { gate: Some(gate.clone()), ..LinkSettings::default() };
        let seen = watch(&away, "far0");
        let mut near = Near::connect_over(Link::new(256), &[peer], settings);
        copies(&mut near, 3);
        let report = gate.report();
        let seen = seen();
        assert!(seen.len() > 100, "{} frames", seen.len());
        let outside = seen.iter().filter(|ns| *ns % CYCLE > CYCLE / 2).count();
        let number = |label: &str| -> usize {
            let (before, _) = report.split_once(label).unwrap();
            before.rsplit(' ').next().unwrap().parse().unwrap()
        };
        assert!(number(" waited") > 0, "{report}");
        // 98 of 100, and what the node itself counts: threads here may lose their processor.
        assert!(outside <= seen.len() / 50 + number(" missed"), "{outside} outside; {report}");
        assert!(is_clean(&far.stop().expect("it ran")));
    });
}

/// Watches the frames of links that arrive at `interface`; the result stops it and has the kernel's
/// times of their arrival, in nanoseconds since 1970.
fn watch(place: &Namespace, interface: &str) -> impl FnOnce() -> Vec<u64> + use<> {
    let found = place.enter(|| Interface::find(interface).unwrap()).unwrap();
    let own = found.mac.0;
    let socket = place
        .enter(|| PacketSocket::open(&found, wire::raw::ETHERTYPE, &Filter::everything()).unwrap())
        .unwrap();
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::ReceiveTimestampns, &true)
        .unwrap();
    move || {
        use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
        let mut times = Vec::new();
        let (mut bytes, mut space) = ([0; 64], nix::cmsg_space!(nix::sys::time::TimeSpec));
        loop {
            let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
            let fd = socket.as_fd().as_raw_fd();
            let flags = MsgFlags::MSG_DONTWAIT;
            let Ok(got) = recvmsg::<()>(fd, &mut parts, Some(&mut space), flags) else {
                return times;
            };
            let stamp = got.cmsgs().unwrap().find_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(at) => Some(at),
                _ => None,
            });
            if bytes[..6] == own {
                let at = stamp.expect("it was asked for");
                times.push(at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64);
            }
        }
    }
}

/// Copies over a network with faults.
fn faulty(home: &Namespace, congestion: Config, thousandth: u64, seed: u64) {
    let raw = RawSettings { congestion, ..RawSettings::default() };
    let link = Link { raw, ..Link::new(256) };
    let [middle, away] = [(); 2].map(|()| Namespace::new().unwrap());
    middle.cable("port0", home, "near0").unwrap();
    middle.cable("port1", &away, "far0").unwrap();
    let relay = Relay::start(&middle, ["port0", "port1"], [thousandth; 4], seed);
    let mut far = away.enter(|| Far::listen(listen("far0"), link)).unwrap();
    let mut near = Near::connect(link, &[through("near0", &far)]);
    copies(&mut near, 16);
    for (fault, count) in FAULTS.iter().zip(relay.state.count.iter()) {
        assert!(count.load(Ordering::Relaxed) > 0, "nothing was {fault}");
    }
    let link = far.stop().expect("it ran");
    assert!(is_clean(&link), "{link:?}");
}

#[test]
fn copies_survive_lost_doubled_late_and_invalid_frames() {
    isolated("raw::copies_survive_lost_doubled_late_and_invalid_frames", |home| {
        faulty(home, Config::None, 20, 0x5eed);
    });
}

#[test]
fn copies_survive_faults_with_congestion_control() {
    isolated("raw::copies_survive_faults_with_congestion_control", |home| {
        // It takes loss above 2 % for congestion. The target round trip leaves room for threads
        // that wait for a processor.
        faulty(home, "swift=5ms".parse().unwrap(), 5, 0xfeed);
    });
}

#[test]
fn a_far_side_that_falls_silent_is_lost_and_may_come_back() {
    isolated("raw::a_far_side_that_falls_silent_is_lost_and_may_come_back", |home| {
        let [middle, away] = [(); 2].map(|()| Namespace::new().unwrap());
        middle.cable("port0", home, "near0").unwrap();
        middle.cable("port1", &away, "far0").unwrap();
        let relay = Relay::start(&middle, ["port0", "port1"], [0; 4], 1);
        let far = away.enter(|| Far::listen(listen("far0"), Link::new(256))).unwrap();
        let mut near = Near::connect(Link::new(256), &[through("near0", &far)]);
        copies(&mut near, 2);
        relay.state.cut.store(true, Ordering::SeqCst);
        let before = near.machine.clock().now();
        assert_eq!(near.copy(0, RAM, RAM + 4096, 64), Err(None), "all ones");
        let took = near.machine.clock().now() - before;
        assert!(!near.machine.attached().upstream().tunnel(0).is_up());
        assert!(took < Duration::from_ms(3_000), "{took}");
        relay.state.cut.store(false, Ordering::SeqCst);
        while !near.machine.attached().upstream().tunnel(0).is_up() {
            let (moved, timer) = near.machine.pump(&mut near.memory).unwrap();
            near.machine.wait(moved, timer).unwrap();
        }
    });
}

#[test]
fn on_the_loop_stations_are_told_apart() {
    isolated("raw::on_the_loop_stations_are_told_apart", |home| {
        home.run("ip link set lo up").unwrap();
        let far = Far::listen(listen("lo"), Link::new(512));
        assert_eq!(far.address.to_string(), "raw:lo,00:00:00:00:00:00");
        let mut near = Near::connect(Link::new(512), &[through("lo", &far)]);
        copies(&mut near, 4);
    });
}

#[test]
fn payloads_fit_the_frames_of_the_interface() {
    isolated("raw::payloads_fit_the_frames_of_the_interface", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        for (mtu, payload) in [(1500, 1024), (9000, 4096), (576, 512), (200, 128)] {
            home.run(&format!("ip link set near0 mtu {mtu}")).unwrap();
            let Address::Raw(station) = listen("near0") else { panic!("no station") };
            assert_eq!(largest_payload(&station).unwrap(), payload, "MTU {mtu}");
        }
        home.run("ip link set near0 mtu 150").unwrap();
        let Address::Raw(station) = listen("near0") else { panic!("no station") };
        assert!(largest_payload(&station).unwrap_err().to_string().contains("150"));
        home.run("ip link set near0 down").unwrap();
        let error = Address::to_listen("raw:near0", Protection::Insecure).unwrap_err().to_string();
        assert_eq!(error, "interface near0 is down; set it up with `ip link set dev NAME up`");
    });
}

#[test]
fn without_the_capability_the_error_names_it() {
    isolated("raw::without_the_capability_the_error_names_it", |home| {
        home.run("ip link set lo up").unwrap();
        let lo = Interface::find("lo").unwrap();
        // Belongs to a thread that ends with the test.
        let opened = std::thread::spawn(move || {
            let all = capabilities(None).unwrap();
            let effective = all.effective - CapabilitySet::NET_RAW;
            set_capabilities(None, CapabilitySets { effective, ..all }).unwrap();
            PacketSocket::open(&lo, wire::raw::ETHERTYPE, &Filter::everything())
        });
        let error = opened.join().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("raw Ethernet needs CAP_NET_RAW"), "{error}");
    });
}
