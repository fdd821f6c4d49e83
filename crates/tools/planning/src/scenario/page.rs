//! The page of a scenario.

use super::Scenario;
use super::measured::Measured;
use super::simulated::LongestCommand;
use crate::bound::flows::class;
use plan::simulate::places;
use plan::{Bound as Required, Subject};
use report::Align::{Left, Right};
use report::lanes::{Band, Kind, Lane, Lanes, Occupied, Words};
use report::{Axis, Bar, Page, Plot, Stack, Table, Tile, time};
use sim::measure::{Latency, Stage};
use sim::network::CableEnd;
use wire::{Duration, Instant};

/// A host or a stream at a listener.
struct Subjected<'a> {
    name: String,
    deadline: Option<Duration>,
    bound: Option<Duration>,
    simulated: &'a Latency,
    measured: Vec<&'a Measured>,
}

impl Subjected<'_> {
    fn is_late(&self, latency: Option<u64>) -> bool {
        self.deadline.is_some_and(|deadline| latency.is_some_and(|ns| ns > deadline.as_ns()))
    }

    fn plot(&self) -> Plot {
        let most = self.simulated.quantile_ns(1.0);
        let bound = self.bound.map_or(0, Duration::as_ns);
        let measured = self.measured.iter().map(|one| one.max_ns).max().unwrap_or(0);
        let deadline = self.deadline.map_or(0, Duration::as_ns);
        let right = [most, bound, measured, deadline].into_iter().max().unwrap_or(1);
        let least = self.measured.iter().filter_map(|one| Some(one.shares.first()?.1)).min();
        let left = self.simulated.quantile_ns(0.0).min(least.unwrap_or(u64::MAX)).max(1);
        let x = Axis::times("latency, logarithmic", left as f64 * 0.95, right as f64 * 1.1);
        let mut plot = Plot::new(&self.name, x, Axis::shares("share"));
        let steps = (0..=200).map(|step| f64::from(step) / 200.0);
        plot.line(
            "simulated",
            steps.map(|share| (self.simulated.quantile_ns(share) as f64, share)),
        );
        for one in &self.measured {
            plot.line("measured", one.shares.iter().map(|(share, ns)| (*ns as f64, *share)));
        }
        plot.marks.extend(self.bound.map(|bound| (bound.as_ns() as f64, "bound".into())));
        plot.marks.extend(self.deadline.map(|at| (at.as_ns() as f64, "deadline".into())));
        plot
    }
}

impl Scenario<'_> {
    /// The page.
    pub fn page(&self) -> String {
        let mut page = Page::new(&format!("{}: bound, simulated, measured", self.file));
        let subjects = self.subjects();
        let measured =
            |subject: &Subjected<'_>| subject.measured.iter().map(|one| one.max_ns).max();
        let late = |by: &dyn Fn(&Subjected<'_>) -> Option<u64>| {
            subjects.iter().filter(|subject| subject.is_late(by(subject))).count()
        };
        let bound = |subject: &Subjected<'_>| Some(subject.bound.map_or(u64::MAX, Duration::as_ns));
        let seen = |subject: &Subjected<'_>| Some(subject.simulated.longest().as_ns());
        let tile = |count: usize, name: &str| Tile {
            value: count.to_string(),
            name: name.to_owned(),
            bad: count > 0,
        };
        page.tiles(&[
            tile(late(&bound), "deadlines that the bounds miss"),
            tile(late(&seen), "deadlines missed in simulation"),
            tile(late(&measured), "deadlines missed in measurements"),
        ]);
        for subject in subjects.iter().filter(|subject| subject.is_late(bound(subject))) {
            page.warning(&format!("{}: the bound misses the deadline", subject.name));
        }
        page.section("Latencies");
        page.table(&table(&subjects));
        for premise in &self.bounds.premises {
            page.note(premise);
        }
        self.parts(&mut page);
        page.section("Distributions");
        let plots = subjects.iter().filter(|subject| subject.simulated.count() > 0).take(24);
        let figures: Vec<_> =
            plots.map(|one| (one.name.clone(), String::new(), one.plot().html())).collect();
        page.figures(&figures);
        if let Some(longest) = &self.simulated.longest {
            page.section("The longest command and the gates");
            let caption = format!(
                "{} of {}, {} in simulation",
                longest.record.op.name(),
                self.planned.hosts[usize::from(longest.record.host)],
                time(longest.latency().as_ns() as f64)
            );
            let note = "Ports that the command passes; red frames belong to tunnels.";
            page.lanes(&caption, note, &self.lanes(longest));
        }
        page.finish("Bounds hold under the premises above; simulated values are one run.")
    }

    fn subjects(&self) -> Vec<Subjected<'_>> {
        let deadline = |subject: Subject| {
            self.planned.requirements.iter().find_map(|requirement| match requirement.bound {
                Required::Deadline(deadline) if requirement.subject == subject => Some(deadline),
                _ => None,
            })
        };
        let measured = |name: &str| self.measured.iter().filter(|one| one.name == name).collect();
        let hosts = self.planned.hosts.iter().enumerate().map(|(at, name)| {
            let own = self.bounds.commands.iter().filter(|command| command.host == *name);
            let longest = own.map(|command| command.bound.as_ref().ok().copied());
            let bound = longest.reduce(|one, other| Some(one?.max(other?))).flatten();
            Subjected {
                name: format!("commands of {name}"),
                deadline: deadline(Subject::Host(at)),
                bound,
                simulated: &self.simulated.hosts[at],
                measured: measured(name),
            }
        });
        let streams = self.bounds.streams.iter().zip(&self.simulated.streams);
        let streams = streams.zip(&self.planned.streams).flat_map(|((bound, seen), (name, id))| {
            let listeners = bound.listeners.iter().zip(seen).enumerate();
            listeners.map(move |(listener, (bound, simulated))| Subjected {
                name: format!("{name} to {}", bound.name),
                deadline: deadline(Subject::Stream { id: *id, listener }),
                bound: bound.bound.as_ref().ok().copied(),
                simulated,
                measured: measured(name),
            })
        });
        hosts.chain(streams).collect()
    }

    /// Stacked parts: of commands by stage and of streams by hop.
    fn parts(&self, page: &mut Page) {
        let format = |ns: u64| time(ns as f64);
        let mut stacks = Vec::new();
        for ((breakdown, count), name) in self.simulated.stages.iter().zip(&self.planned.hosts) {
            if *count == 0 {
                continue;
            }
            let used = Stage::ALL.iter().filter(|stage| breakdown.get(**stage) > Duration::ZERO);
            let used: Vec<Stage> = used.copied().collect();
            let parts: Vec<u64> =
                used.iter().map(|stage| breakdown.get(*stage).as_ns() / count).collect();
            let total = time(parts.iter().sum::<u64>() as f64);
            stacks.push(Stack {
                title: format!("Commands of {name}, simulated mean by stage"),
                note: String::new(),
                parts: used.iter().map(|stage| stage.name().to_owned()).collect(),
                bars: vec![Bar { name: name.clone(), total, parts }],
                format,
            });
        }
        let bounded = self
            .bounds
            .streams
            .iter()
            .flat_map(|stream| stream.listeners.iter().map(move |listener| (stream, listener)));
        for (stream, listener) in bounded.filter(|(_, one)| one.bound.is_ok()).take(12) {
            let hops: Vec<u64> =
                listener.hops.iter().map(|hop| hop.bound.map_or(0, Duration::as_ns)).collect();
            stacks.push(Stack {
                title: format!("{} to {}, bound by port", stream.name, listener.name),
                note: "Queue and transmission; cables, bridges and interfaces are not shown."
                    .into(),
                parts: listener.hops.iter().map(|hop| hop.port.clone()).collect(),
                bars: vec![Bar {
                    name: stream.name.clone(),
                    total: time(hops.iter().sum::<u64>() as f64),
                    parts: hops,
                }],
                format,
            });
        }
        if !stacks.is_empty() {
            page.section("Parts");
            page.stacks(&stacks);
        }
    }

    /// The ports that carried frames of tunnels during the command, with their gates.
    fn lanes(&self, longest: &LongestCommand) -> Lanes {
        let network = &self.planned.config.network;
        let begin = longest.record.since;
        let ns = |at: Instant| at.since(begin).as_ps() as f64 / 1e3;
        let mut wires: Vec<usize> = Vec::new();
        for sent in longest.frames.iter().filter(|sent| sent.stream.is_none()) {
            if !wires.contains(&sent.wire) {
                wires.push(sent.wire);
            }
        }
        let lane = |wire: &usize| {
            let (from, to) = places::wire(network, *wire)?;
            let frames = longest.frames.iter().filter(|sent| sent.wire == *wire);
            let boxed = frames.map(|sent| {
                let stream = sent.stream.and_then(|id| {
                    let found = self.planned.streams.iter().find(|(_, known)| *known == id);
                    found.map(|(name, _)| name.clone())
                });
                Occupied {
                    span: (ns(sent.span.0.max(begin)), ns(sent.span.1)),
                    overhead: (0.0, 0.0),
                    kind: if stream.is_some() { Kind::Whole } else { Kind::Chosen },
                    name: String::new(),
                    title: stream.unwrap_or_else(|| "tunnel".to_owned()),
                    since: None,
                }
            });
            Some(Lane {
                name: self.planned.link_name(&places::between((from, to))),
                bands: self.bands(from, longest),
                boxes: boxed.collect(),
                ..Lane::default()
            })
        };
        let words = Words {
            bands: ["gate of the tunnel open", "closed", "held"],
            kinds: ["stream", "preemptable", "tunnel"],
            overhead: "overhead",
            joined: "one frame",
            crosses: "lost",
        };
        let length = longest.latency().as_ps() as f64 / 1e3;
        let title = "Frames at each port during the longest command".to_owned();
        Lanes { title, length, lanes: wires.iter().filter_map(lane).collect(), words }
    }

    /// When the gate of the tunnel is open and closed at a port.
    fn bands(&self, port: CableEnd, longest: &LongestCommand) -> Vec<(f64, f64, Band)> {
        const MOST: usize = 400;
        let network = &self.planned.config.network;
        let config = network.port(port);
        let host = &self.planned.config.hosts[usize::from(longest.record.host)];
        let links = host.links();
        let found = links.first().and_then(|link| link.transport.stations());
        let (Some(gates), Some(([station, _], priority))) = (&config.gates, found) else {
            return Vec::new();
        };
        let queue = class(network, port, network.tag(station, priority));
        let (begin, end) = (longest.record.since, longest.record.until);
        let ns = |at: Instant| at.since(begin).as_ps() as f64 / 1e3;
        let (mut bands, mut at) = (Vec::new(), begin);
        while at < end && bands.len() < MOST {
            let next = gates.next_change(queue, at).unwrap_or(end).min(end);
            let band = if gates.is_open(queue, at) { Band::Open } else { Band::Closed };
            bands.push((ns(at), ns(next), band));
            at = next;
        }
        bands
    }
}

fn table(subjects: &[Subjected<'_>]) -> Table {
    let columns = [
        ("", Left),
        ("deadline", Right),
        ("bound", Right),
        ("simulated p50", Right),
        ("simulated max", Right),
        ("measured max", Right),
        ("bound / simulated", Right),
    ];
    let mut table = Table::new(&columns);
    for subject in subjects {
        let ns = |ns: Option<u64>| ns.map_or_else(String::new, |ns| time(ns as f64));
        let bound = subject.bound.map(Duration::as_ns);
        let seen = (subject.simulated.count() > 0).then(|| subject.simulated.longest().as_ns());
        let ratio = bound.zip(seen).map(|(bound, seen)| bound as f64 / seen.max(1) as f64);
        table.row(vec![
            subject.name.clone(),
            ns(subject.deadline.map(Duration::as_ns)),
            bound.map_or_else(|| "none".to_owned(), |ns| time(ns as f64)),
            ns(seen.map(|_| subject.simulated.quantile_ns(0.5))),
            ns(seen),
            ns(subject.measured.iter().map(|one| one.max_ns).max()),
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        ]);
    }
    table
}
