//! Tests of ports over time.

use super::pages::{artefacts, labels, write_screenshots, written_as};
use super::run;
use crate::simulate::timeline::{Chosen, Piece, PortTimeline, Timeline, Timelines};
use crate::simulate::{Observers, PageLabels, Shared};
use crate::{Plan, Planned};
use sim::ethernet::port::{Algorithm, Config, Counted, CreditBased, Preemption};
use sim::measure::{Observer, Point, PortChange, PortSample};
use sim::network::CableEnd;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tsn::gates::{HoldAdvance, Operation};
use tsn::preemption::{FragmentSize, verification};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// Control (class 7), video (5) and logs (0) of three senders, and a tunnel (3), through one bridge
/// at 100 Mb/s.
const LINE: &str = "transport = \"tsn\"\n[link]\nrate = \"100M\"\npriority = 3\n\
    [nodes.store]\n[nodes.plc]\n[nodes.camera]\n[nodes.logger]\n[nodes.sink]\n[bridges.x]\n\
    [drive]\nnode = \"store\"\n[workload]\nrw = \"randread\"\nruntime = \"8ms\"\ntime_based = \"on\"\n\
    [traffic.control]\nfrom = \"plc\"\nto = \"sink\"\nlength = \"128B\"\ninterval = \"500us\"\n\
    start = \"480us\"\npriority = 7\n\
    [traffic.video]\nfrom = \"camera\"\nto = \"sink\"\nlength = \"700B\"\nburst = 4\n\
    interval = \"500us\"\nstart = \"100us\"\npriority = 5\n\
    [traffic.logs]\nfrom = \"logger\"\nto = \"sink\"\nlength = \"1518B\"\ninterval = \"350us\"\n\
    pattern = \"poisson\"\npriority = 0\n";

/// Configures the port to the sink: a window of 50 us per 500 us for class 7 alone, with hold, and
/// a shaper of 50 Mb/s for class 5.
fn port(config: &Config) -> Config {
    let entry = |states, us, operation| Entry {
        operation,
        states: GateStates(states),
        interval: Duration::from_us(us),
    };
    let entries =
        [entry(0x80, 50, Operation::SetAndHoldMac), entry(0x7f, 450, Operation::SetAndReleaseMac)];
    let list = GateControlList::of_entries(Instant::ZERO, &entries).unwrap();
    let mut port = Config {
        gates: Some(Gates::new(list, Clock::default())),
        preemption: Some(preemption()),
        ..config.clone()
    };
    port.classes[5].algorithm = Algorithm::CreditBased(CreditBased {
        idle_slope: 50_000_000,
        counted: Counted::WithGap,
        rises_in_guard_band: false,
    });
    port
}

fn preemption() -> Preemption {
    Preemption {
        express: 0xa0,
        fragment: FragmentSize::new(0).unwrap(),
        // The longest frame that cannot be cut: 143 bytes (IEEE 802.3-2022, clause 99).
        advance: HoldAdvance { hold: Duration::from_ns(143 * 80), release: Duration::ZERO },
        verify: verification::Config { enabled: false, ..Default::default() },
    }
}

fn planned() -> Planned {
    let mut planned = Plan::parse("p.toml", LINE).unwrap().build().unwrap();
    let sink = planned.stations.iter().position(|name| name == "sink").unwrap();
    let network = &mut planned.config.network;
    network.stations[sink].ports[0].preemption = Some(preemption());
    let cable =
        network.cables.iter().find(|cable| [cable.a, cable.b].contains(&CableEnd::station(sink)));
    let cable = cable.unwrap();
    let to_sink = if cable.a == CableEnd::station(sink) { cable.b } else { cable.a };
    let CableEnd::Bridge(bridge, number) = to_sink else { panic!("a bridge") };
    let port = port(&network.bridges[bridge].ports[number]);
    network.bridges[bridge].ports[number] = port;
    planned
}

fn page(planned: &Planned, name: &str) -> (String, PathBuf) {
    let named = |words: &str| planned.link_name(words);
    let words = PageLabels { streams: &planned.streams, ..labels(name, "", &named) };
    let path = artefacts().join(format!("{name}.html"));
    let (_, html) = written_as(&planned.config, &path, &words);
    let section = html.split("<h2>Ports along time</h2>").nth(1).expect("the section");
    let section = section.split("<h2>").next().unwrap_or(section);
    (section.to_owned(), path)
}

/// Frame starts on each wire as the simulation reports them: time, wait, id and length.
#[derive(Default)]
struct Starts(BTreeMap<usize, Vec<(Instant, Duration, u64, usize)>>);

impl Observer for Starts {
    fn port(&mut self, at: Instant, wire: Point, sample: &PortSample<'_>) {
        let Point::Wire(wire) = wire else { return };
        if let PortChange::Started { sent, waited } = sample.change {
            let start = (at, waited, sent.frame.id, sent.frame.length());
            self.0.entry(wire.into()).or_default().push(start);
        }
    }
}

/// Returns the timelines of a plan, and all frame starts.
fn recorded(planned: &Planned, chosen: Option<Chosen>) -> (Vec<PortTimeline>, Starts) {
    let timelines = Shared::new(Timelines::new(&planned.config, chosen));
    let starts = Shared::new(Starts::default());
    let both = Observers(vec![Box::new(timelines.clone()), Box::new(starts.clone())]);
    let report = run(&planned.config, Box::new(both));
    (timelines.0.borrow_mut().finish(report.time), starts.0.take())
}

fn check(timeline: &Timeline, starts: &[(Instant, Duration, u64, usize)]) {
    let Timeline { from, to, rows, .. } = timeline;
    let pieces = || rows.iter().flat_map(|row| &row.pieces);
    let mut first: Vec<_> = pieces()
        .filter(|piece| piece.first && (*from..*to).contains(&piece.start))
        .map(|piece| (piece.start, piece.waited, piece.id, piece.length))
        .collect();
    first.sort_unstable();
    let inside: Vec<_> =
        starts.iter().filter(|start| (*from..*to).contains(&start.0)).copied().collect();
    assert_eq!(first, inside, "each frame once");
    let mut by_frame: BTreeMap<u64, Vec<&Piece>> = BTreeMap::new();
    pieces().for_each(|piece| by_frame.entry(piece.id).or_default().push(piece));
    for (id, pieces) in by_frame {
        let whole = pieces[0].first && pieces.last().unwrap().last;
        let bytes: usize = pieces.iter().map(|piece| piece.bytes).sum();
        assert!(!whole || bytes == pieces[0].length, "frame {id}: {pieces:?}");
    }
    for row in rows {
        assert_eq!(row.queue[0].0, *from, "the queue is known from the beginning on");
        assert!(
            row.queue.iter().all(|(at, frames, bytes)| at < to && (*frames > 0) == (*bytes > 0))
        );
        let all = row.credit.iter();
        assert!(all.clone().is_sorted_by_key(|point| point.0));
        assert!(all.clone().all(|point| (*from..=*to).contains(&point.0)));
    }
}

/// The timeline of each port covers its longest wait and all events around it.
#[test]
fn timeline_shows_the_simulated_frames() {
    let planned = planned();
    let (ports, starts) = recorded(&planned, None);
    assert!(ports.len() >= 2, "the port and its partner");
    for port in &ports {
        let Some(timeline) = &port.timeline else { continue };
        let starts = &starts.0[&port.wire];
        check(timeline, starts);
        let longest = starts.iter().map(|start| start.1).max().unwrap();
        assert_eq!(port.wait(), longest);
        let frame = timeline.frame.as_ref().unwrap();
        let slot = starts.iter().find(|start| start.1 == longest).unwrap();
        assert_eq!(
            (frame.start, frame.id, frame.length),
            (slot.0, slot.2, slot.3),
            "the first of them"
        );
    }
    let first = ports[0].timeline.as_ref().unwrap();
    assert_eq!((first.to - first.from), Duration::from_us(1000), "two cycles");
    let credit = &first.rows[5].credit;
    assert_eq!((credit[0].0, credit.last().unwrap().0), (first.from, first.to));
    assert!(first.rows[0].pieces.iter().any(|piece| !piece.first), "fragments");
    let again = recorded(&planned, None).0;
    assert_eq!(first, again[0].timeline.as_ref().unwrap());
}

/// Any port can be shown from any time on.
#[test]
fn timeline_port_and_time_can_be_selected() {
    let planned = planned();
    let from = Instant::from_ns(2_000_000);
    let wire = planned.wire("x:sink").unwrap();
    let (ports, starts) = recorded(&planned, Some(Chosen { wire, from: Some(from) }));
    let timeline = ports[0].timeline.as_ref().unwrap();
    assert_eq!((ports[0].wire, timeline.from, &timeline.frame), (wire, from, &None));
    assert_eq!(timeline.to - from, Duration::from_us(1000), "two cycles");
    check(timeline, &starts.0[&wire]);
    // A port without TSN features is recorded too, for a millisecond or two.
    let wire = planned.wire("x:store").unwrap();
    assert!(ports.iter().all(|port| port.wire != wire));
    let ports = recorded(&planned, Some(Chosen { wire, from: None })).0;
    assert_eq!((ports[0].wire, ports[0].period), (wire, Duration::from_ms(1)));
    assert!(ports[0].timeline.as_ref().unwrap().frame.is_some());
}

#[test]
fn ports_have_names() {
    let planned = planned();
    let [there, back] = ["x:sink", "sink:x"].map(|name| planned.wire(name).unwrap());
    assert_eq!((there / 2, there % 2 + back % 2), (back / 2, 1), "two directions of a cable");
    assert_eq!(planned.wire("sink"), Ok(back), "a station has one port");
    for (name, words) in [("x", "x:sink"), ("x:y", "x:sink"), ("", "sink:x")] {
        let error = planned.wire(name).unwrap_err();
        assert!(error.contains(words) && error.contains(name), "{error}");
    }
}

#[test]
fn port_screenshots_are_written_on_request() {
    let (section, path) = page(&planned(), "timeline");
    for words in [
        "<figcaption>x port 5 to sink<small>The longest wait: a frame of logs of 1522 B in class 0",
        "the gate cycle is 500 us",
        "class 7, express",
        "class 0, preemptable",
        "class 5, express, credit-based, idle slope 50 Mb/s",
        "preemptable frames held",
        ">video<",
        "Not shown, for no frame waited there: sink to x port 5.",
    ] {
        assert!(section.contains(words), "no {words} in {section}");
    }
    assert!(!section.contains("class 3"), "the tunnel does not pass there");
    write_screenshots(&path, 3..=24);
}

/// The six ports with the longest waits, and the names of the others.
#[test]
fn plans_with_gates_have_pictures() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plans/zonal-vehicle.toml");
    let planned = Plan::read(&file).unwrap().build().unwrap();
    let (section, _) = page(&planned, "zonal-vehicle");
    assert_eq!(section.matches("<figure class=\"along\">").count(), 6);
    for words in [
        "a frame of the tunnel from store to cabin of",
        "Not shown, for their longest waits are shorter: rear_bridge port 3 to recorder.",
        "Not shown, for no frame waited there: front_bridge port 2 to camera.",
    ] {
        assert!(section.contains(words), "no {words}");
    }
}
