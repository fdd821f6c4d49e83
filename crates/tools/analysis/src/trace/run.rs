//! The traces of one run.

use super::clock::{Bound, ClockOffset};
use super::decode;
use super::file::{Item, TraceFile};
use super::follow::PortFollower;
use super::index::{FROM_PUSH, Index};
use crate::commands::{AnalyserCounters, AnalyserSettings, Direction, Event, Payload};
use report::Failure;
use std::collections::HashMap;
use std::path::PathBuf;
use wire::frame::Kind;
use wire::tlp::Tlp;
use wire::trace::{Follower, LinkState, NodeRole, Record, Tap, VIRTUAL_CLOCK};

/// A node and its trace.
#[derive(Debug)]
pub struct Node {
    /// The trace file.
    pub file: TraceFile,
    /// The index of the file.
    pub index: Index,
    /// The node above this node and the link to it; `None` for the root.
    pub parent: Option<Parent>,
}

/// The link of a node to the node above it.
#[derive(Debug)]
pub struct Parent {
    /// Index of the parent in [`Run::nodes`].
    pub node: usize,
    /// Link of the parent to this node.
    pub tap: Tap,
    /// Offset of this node's clock from the parent's clock.
    pub clock: ClockOffset,
    /// This node's connections, by the parent's number of the same connection.
    pub(super) connections: HashMap<u32, u32>,
}

/// The traces of one run on one timeline.
#[derive(Debug)]
pub struct Run {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// Index of the node nearest to the host. Its clock is the timeline.
    pub root: usize,
}

/// An event in the analysis of a run.
#[derive(Debug)]
pub enum Finding<'a> {
    /// A TLP passed the port: number of the TLP at the port, direction, TLP, and time.
    Tlp(u64, Direction, &'a Tlp, u64),
    /// The TLP with this number at the port had another payload at the port of this other node.
    Differs {
        /// Number of the TLP.
        number: u64,
        /// Index of the other node in [`Run::nodes`].
        other: usize,
    },
    /// An event of the analyser.
    Event(Event),
    /// Records are missing; their number, if known.
    Gap(Option<u64>),
    /// A link came up or went down.
    Link(Tap, LinkState<'a>, u64),
    /// The host resets the devices behind a link.
    Reset(Tap, u64),
    /// The trace ends: commands in flight end as they are.
    End {
        /// Whether the trace was cut off, for example because the node was killed.
        cut: bool,
        /// Number of recent requests whose completions may have come after the end of the trace.
        young: u64,
    },
}

impl Run {
    /// Opens the traces of one run.
    ///
    /// # Errors
    /// One line for the user: a file is not a trace, or the traces do not belong together.
    pub fn open(paths: &[PathBuf]) -> Result<Self, Failure> {
        let files = paths.iter().map(|path| TraceFile::open(path));
        Self::from_files(files.collect::<Result<_, _>>()?)
    }

    /// Combines the traces of one run.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_files(files: Vec<TraceFile>) -> Result<Self, Failure> {
        let mut nodes: Vec<Node> = Vec::new();
        for file in files {
            // Simulations give the same numbers to their nodes.
            let same = |node: &&Node| {
                let (one, other) = (&node.file.header, &file.header);
                let simulated = other.clock == VIRTUAL_CLOCK && node.file.path != file.path;
                one.instance == other.instance && !simulated
            };
            if let Some(node) = nodes.iter().find(same) {
                return Err(Failure(format!(
                    "{} and {} are traces of the same node; give each trace once",
                    node.file.path.display(),
                    file.path.display()
                )));
            }
            let index = Index::new(&file)?;
            nodes.push(Node { file, index, parent: None });
        }
        // The nodes are listed from the host to the drives.
        nodes.sort_by_key(|node: &Node| match node.file.header.role {
            NodeRole::Host => 0,
            NodeRole::Switch => 1,
            NodeRole::Device => 2,
        });
        for child in 0..nodes.len() {
            nodes[child].parent = find_parent(&nodes, child)?;
        }
        let roots: Vec<usize> = (0..nodes.len()).filter(|n| nodes[*n].parent.is_none()).collect();
        let name = |node: usize| nodes[node].file.path.display();
        match roots[..] {
            [root] => Ok(Self { nodes, root }),
            [first, second, ..] => Err(Failure(format!(
                "{} and {} are not of one run: no link of one leads to the other",
                name(first),
                name(second)
            ))),
            [] => Err(Failure(
                "the links of these traces form a loop: no node is next to the host".into(),
            )),
        }
    }

    /// Returns the node whose TLPs are analysed.
    pub fn root(&self) -> &Node {
        &self.nodes[self.root]
    }

    /// Returns the links from a node up to the root.
    fn parents(&self, node: usize) -> impl Iterator<Item = &Parent> {
        let parent = |node: usize| self.nodes[node].parent.as_ref();
        std::iter::successors(parent(node), move |above| parent(above.node))
    }

    /// Converts a time of `node`'s clock to the timeline, in nanoseconds.
    pub fn timeline(&self, node: usize, at: u64) -> i64 {
        self.parents(node).fold(at as i64, |at, parent| parent.clock.to_parent(at))
    }

    /// Returns the maximum error of `node`'s times on the timeline, in nanoseconds.
    pub fn uncertainty_ns(&self, node: usize) -> u64 {
        self.parents(node).map(|parent| parent.clock.uncertainty_ns).sum()
    }

    /// Analyses the TLPs at the port of the root node. Returns the analyser's counters and the
    /// number of TLPs that could not be decoded.
    ///
    /// # Errors
    /// As [`TraceFile::read`].
    pub fn analyse(
        &self,
        mut sink: impl FnMut(Finding<'_>, &AnalyserCounters),
    ) -> Result<(AnalyserCounters, u64), Failure> {
        let root = self.root();
        let mut pass = Pass {
            run: self,
            follower: PortFollower::new(AnalyserSettings {
                follow_rings: true,
                ..AnalyserSettings::default()
            }),
            most: root.index.tlps() as u64,
            unreadable: 0,
            last_ns: 0,
        };
        root.file.read(|item| pass.item(item, &mut sink))?;
        let end = wire::Instant::from_ns(pass.last_ns);
        let young = pass.follower.analyser.forget_young_requests(end);
        sink(Finding::End { cut: root.file.cut, young }, pass.counters());
        pass.follower.analyser.finish();
        pass.events(&mut sink);
        Ok((*pass.counters(), pass.unreadable))
    }
}

type Sink<'a> = &'a mut dyn FnMut(Finding<'_>, &AnalyserCounters);

struct Pass<'a> {
    run: &'a Run,
    follower: PortFollower,
    most: u64,
    unreadable: u64,
    /// Time of the latest record.
    last_ns: u64,
}

impl Pass<'_> {
    fn counters(&self) -> &AnalyserCounters {
        self.follower.analyser.counters()
    }

    fn item(&mut self, item: Item<'_>, sink: Sink<'_>) {
        let timed = match item {
            Item::Gap(lost) => {
                // The gap comes first, because it explains why commands end.
                sink(Finding::Gap(lost), self.counters());
                self.follower.analyser.gap();
                return self.events(sink);
            }
            Item::Record(timed) => timed,
        };
        self.last_ns = timed.at_ns;
        match timed.record {
            Record::Tlp { tap, up, length, bytes, hash, holes } if !tap.is_link() => {
                self.tlp(timed.at_ns, up, decode::tlp(length, bytes, hash, holes), sink);
            }
            Record::Control { tap, kind, .. } if kind == Kind::Reset as u8 => {
                self.follower.link(&timed.record);
                sink(Finding::Reset(tap, timed.at_ns), self.counters());
            }
            Record::Link { tap, state } => {
                self.follower.link(&timed.record);
                sink(Finding::Link(tap, state, timed.at_ns), self.counters());
            }
            _ => {}
        }
        self.events(sink);
    }

    fn tlp(&mut self, at: u64, up: bool, tlp: Option<(Tlp, Payload)>, sink: Sink<'_>) {
        let number = self.follower.analyser.seen();
        if number >= self.most {
            return;
        }
        let Some((tlp, mut payload)) = tlp else {
            // The unreadable TLP is counted too, so that the numbers match the index.
            self.unreadable += 1;
            self.follower.analyser.skip();
            return;
        };
        payload.from_push = self.run.root().index.is_from_push(number);
        let direction = if up { Direction::Up } else { Direction::Down };
        let instant = wire::Instant::from_ns(at);
        self.follower.analyser.push_recorded(instant, direction, &tlp, payload);
        sink(Finding::Tlp(number, direction, &tlp, at), self.counters());
        if let Some(other) = self.run.payload_differs(number) {
            sink(Finding::Differs { number, other }, self.counters());
        }
    }

    fn events(&mut self, sink: Sink<'_>) {
        while let Some(event) = self.follower.analyser.next_event() {
            sink(Finding::Event(event), self.counters());
        }
    }
}

/// Returns the node to which the link of `child` towards its host leads.
fn find_parent(nodes: &[Node], child: usize) -> Result<Option<Parent>, Failure> {
    if nodes[child].file.header.role == NodeRole::Host {
        return Ok(None);
    }
    for node in (0..nodes.len()).filter(|node| *node != child) {
        let pairs = pairs(&nodes[node].index, &nodes[child].index);
        let Some((tap, _, _)) = pairs.first().copied() else { continue };
        let connections = pairs.iter().map(|(_, parent, child)| (*parent, *child)).collect();
        let to_child = pairs.iter().map(|(_, parent, child)| (*child, *parent)).collect();
        let bounds = bounds(&nodes[node].index, &nodes[child].index, tap, &to_child);
        let clock = match one_clock(&nodes[node], &nodes[child]) {
            true => Some(ClockOffset::none(bounds.len() as u64)),
            false => ClockOffset::estimate(&bounds),
        };
        let clock = clock.ok_or_else(|| {
            let name = |node: usize| nodes[node].file.path.display().to_string();
            Failure(format!(
                "{} and {} have no frames of both directions in common: the offset \
                 of their clocks is unknown",
                name(node),
                name(child)
            ))
        })?;
        return Ok(Some(Parent { node, tap, clock, connections }));
    }
    Ok(None)
}

/// Returns whether both nodes belong to one simulation: their virtual time needs no estimate.
fn one_clock(a: &Node, b: &Node) -> bool {
    let header = |node: &Node| {
        (node.file.header.clock == VIRTUAL_CLOCK).then_some(node.file.header.start_unix_ns)
    };
    header(a).is_some() && header(a) == header(b)
}

/// Matches connections: link of the parent, parent's number, child's number. Connections with equal
/// greetings match in order.
fn pairs(parent: &Index, child: &Index) -> Vec<(Tap, u32, u32)> {
    let mut pairs = Vec::new();
    let mut taken: HashMap<(u64, u64), usize> = HashMap::new();
    for (child_number, connection) in child.connections.iter().enumerate() {
        if connection.tap != Tap::UPLINK {
            continue;
        }
        let skip = taken.entry((connection.local, connection.remote)).or_default();
        let same = parent.connections.iter().enumerate().filter(|(_, other)| {
            other.tap.port().is_some()
                && (other.remote, other.local) == (connection.local, connection.remote)
        });
        if let Some((parent_number, other)) = same.clone().nth(*skip) {
            pairs.push((other.tap, parent_number as u32, child_number as u32));
        }
        *skip += 1;
    }
    pairs
}

/// Returns the bounds of the clock offset from frames and echoes on both sides.
fn bounds(parent: &Index, child: &Index, tap: Tap, connections: &HashMap<u32, u32>) -> Vec<Bound> {
    let bound = |parent_at: u64, child_at: u64, up: bool| Bound {
        at: parent_at,
        offset: (child_at as i64).wrapping_sub(parent_at as i64),
        most: !up,
    };
    let mut bounds = Vec::new();
    for frame in child.frames.iter().filter(|frame| frame.tap == Tap::UPLINK) {
        let Some(connection) = connections.get(&frame.connection) else { continue };
        if let Some(other) = parent.frame(tap, *connection, frame.up, frame.sequence) {
            bounds.push(bound(parent.frames[other as usize].at, frame.at, frame.up));
        }
    }
    let echoes = parent.echoes.iter().filter(|echo| echo.tap == tap);
    let parent_echoes: HashMap<(bool, u64), u64> =
        echoes.map(|echo| ((echo.reply, echo.number), echo.at)).collect();
    for echo in child.echoes.iter().filter(|echo| echo.tap == Tap::UPLINK) {
        if let Some(at) = parent_echoes.get(&(echo.reply, echo.number)) {
            bounds.push(bound(*at, echo.at, echo.reply));
        }
    }
    bounds
}

/// Returns the index, or `None` for `NONE` and `FROM_PUSH`.
pub(super) fn known(number: u32) -> Option<usize> {
    (number < FROM_PUSH).then_some(number as usize)
}
