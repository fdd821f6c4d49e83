//! Random small plans must meet the requirements for every plan.

use crate::simulation::worlds::*;
use node::push::Mode;
use proptest::prelude::*;
use sim::workload::CompletionMode;

fn rate() -> impl Strategy<Value = Rate> {
    prop::sample::select(vec![Rate::M100, Rate::G1, Rate::G2_5, Rate::G10, Rate::G100])
}

fn work() -> impl Strategy<Value = Workload> {
    let rw = prop::sample::select(vec![
        Rw::Read,
        Rw::Write,
        Rw::RandRead,
        Rw::RandWrite,
        Rw::RandRw,
        Rw::Rw,
    ]);
    let bs = prop::sample::select(vec![512, 4096, 12 << 10, 64 << 10]);
    (rw, bs, 1usize..6, 1usize..3, any::<bool>()).prop_map(|(rw, bs, depth, jobs, striped)| {
        Workload::Fio(Fio {
            numjobs: jobs,
            size: (bs * 12) as u64,
            stripe: if striped { 4096 } else { 0 },
            ..Fio::new(rw, bs, depth)
        })
    })
}

fn timing() -> impl Strategy<Value = Timing> {
    let jittery = Timing { variation: Duration::from_us(5), ..Timing::SAMSUNG_970_PRO };
    prop::sample::select(vec![Timing::SAMSUNG_970_PRO, Timing::OPTANE, Timing::NULL, jittery])
}

prop_compose! {
    fn plan()(
        seed in any::<u64>(),
        rate in rate(),
        work in work(),
        timing in timing(),
        drives in 1usize..4,
        bridges in 1usize..3,
        cut_through in any::<bool>(),
        gated in prop::option::of((100u64..400, 400u64..1000)),
        ring in 1usize..5,
        ack in prop::option::of(1u64..50),
        reads in 1usize..9,
        polling in any::<bool>(),
        push in prop::sample::select(Mode::ALL.to_vec()),
        transport in prop::sample::select(vec!["tcp", "tcp", "pipe", "none", "swift", "swift=100us"]),
    ) -> Config {
        let mut node = station(rate);
        node.tx_ring = ring;
        node.ack_delay = ack.map(Duration::from_us);
        let stations = vec![node; drives + 1];
        let mode = match cut_through {
            true => bridge::Mode::CutThrough,
            false => bridge::Mode::StoreAndForward,
        };
        // A frame must fit into a window: 1542 bytes take 123 us at 100 Mb/s.
        let gates = gated
            .filter(|_| rate != Rate::M100)
            .map(|(open, cycle)| gates(Duration::from_us(open), Duration::from_us(cycle)));
        let ports = (0..drives).map(|number| {
            let mut drive = drive(number, timing);
            drive.reads_in_flight = reads;
            let stations = [0, number + 1];
            // The target must exceed the round trip of the largest frame through empty queues,
            // which is 0.4 ms over three lines of 100 Mb/s and back. Four such frames may wait.
            let transport = match transport {
                "swift=100us" if rate == Rate::M100 => "swift=1ms",
                given => given,
            };
            let transport = match transport {
                "tcp" => tcp(stations),
                "pipe" => pipe(),
                congestion => raw(stations, congestion),
            };
            (transport, drive)
        });
        let mut host = host(work, ports.collect());
        host.root.push = push;
        if polling {
            host.software.completions = CompletionMode::Polling { interval: Duration::from_us(1) };
        }
        Config { seed, ..config(vec![host], bridged(stations, bridges, mode, gates)) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_plans_keep_all_laws(plan in plan()) {
        prop_assert!(twice(&plan).0.hosts[0].latency.count() > 0);
    }
}
