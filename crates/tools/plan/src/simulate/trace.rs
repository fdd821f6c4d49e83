//! Writes the trace files of a simulation: the same records as in traces of live nodes
//! (`docs/trace.md`), in virtual time.

use analysis::trace::PortFollower;
use node::faults::Fault;
use report::Failure;
use sim::Config;
use sim::measure::{LinkChange, Observer, Point};
use sim::world::HostConfig;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use wire::Instant;
use wire::frame::FrameReport;
use wire::tlp::Tlp;
use wire::trace::{
    CHUNK_HEADER, ChunkHeader, Header, LinkState, NodeRole, PayloadKey, Payloads, Record, Tap,
    VIRTUAL_CLOCK, encode_tlp,
};

/// Bytes of a chunk, header included.
const CHUNK: usize = 1 << 20;
/// Minimum number of records that are held back to be sorted; the records of the last millisecond
/// are held back too, up to a maximum. A TLP is reported when the port takes it, with the earlier
/// time of its first byte. Behind a closed gate the difference is large.
const HELD: usize = 4096;
const MOST_HELD: usize = 1 << 16;
const WINDOW_PS: u64 = 1_000_000_000;

/// A record that is held back.
#[derive(Debug)]
enum PendingRecord {
    Tlp { tap: Tap, up: bool, tlp: Tlp },
    Frame(Tap, FrameReport),
    Link(Tap, LinkState<'static>),
    Fault(Tap, String),
}

struct Node {
    path: PathBuf,
    out: BufWriter<File>,
    failed: Option<io::Error>,
    number: u32,
    payloads: Payloads,
    buffer: Vec<u8>,
    start_ns: u64,
    last_ns: u64,
    pending: BTreeMap<(u64, u64), PendingRecord>,
    sequence: u64,
    newest_ps: u64,
    late: u64,
    /// The links so far, each with the record that precedes its next frame.
    links: HashMap<Tap, Option<LinkState<'static>>>,
}

/// Returns the name in trace files of the node at the far end of a host's link: `device0` of the
/// host's first drive, `switch0` of its first switch node.
///
/// # Panics
/// If the host has no such link.
pub fn node_name(host: &HostConfig, link: usize) -> String {
    let links = host.links();
    match links[link].drive {
        Some((drive, _)) => format!("device{drive}"),
        None => {
            let before = links[..link].iter().filter(|link| link.drive.is_none());
            format!("switch{}", before.count())
        }
    }
}

/// Writes the trace files of all nodes.
pub struct TraceFiles {
    nodes: Vec<Node>,
    /// Indices of the nodes, by host and by link: the node at the link's far end.
    hosts: Vec<usize>,
    below: Vec<usize>,
    /// For each link: the node above, and its port.
    above: Vec<(usize, usize)>,
}

impl TraceFiles {
    /// Begins the files of all nodes: `path` for the first host, `path.device0` and so on for the
    /// device nodes below it, `path.switch0` and so on for its switch nodes, and `path.host1`,
    /// `path.host1.device0` and so on for further hosts.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn create(config: &Config, path: &Path) -> Result<Self, Failure> {
        let suffixed = |path: &Path, name: String| {
            let mut path = path.to_owned().into_os_string();
            path.push(name);
            PathBuf::from(path)
        };
        let mut files =
            Self { nodes: Vec::new(), hosts: Vec::new(), below: Vec::new(), above: Vec::new() };
        for (host, host_config) in config.hosts.iter().enumerate() {
            let of_host = match host {
                0 => path.to_owned(),
                _ => suffixed(path, format!(".host{host}")),
            };
            let node = files.add(&of_host, NodeRole::Host)?;
            files.hosts.push(node);
            let first = files.below.len();
            for (at, link) in host_config.links().iter().enumerate() {
                let is_drive = link.drive.is_some();
                let role = if is_drive { NodeRole::Device } else { NodeRole::Switch };
                let name = format!(".{}", node_name(host_config, at));
                let above = link.above.map_or(node, |above| files.below[first + above]);
                files.above.push((above, link.port));
                let below = files.add(&suffixed(&of_host, name), role)?;
                files.below.push(below);
            }
        }
        Ok(files)
    }

    fn add(&mut self, path: &Path, role: NodeRole) -> Result<usize, Failure> {
        let node = Node::create(path, role, self.nodes.len() as u64 + 1)?;
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    /// Returns the files of one host and of the nodes below it.
    pub fn paths(&self, host: usize) -> Vec<PathBuf> {
        let end = self.hosts.get(host + 1).copied().unwrap_or(self.nodes.len());
        self.nodes[self.hosts[host]..end].iter().map(|node| node.path.clone()).collect()
    }

    /// Writes the records that are held back and closes the files. Returns the number of records
    /// that were too late to be sorted and have the time of the previous record.
    ///
    /// # Errors
    /// The first error of any file.
    pub fn finish(&mut self) -> Result<u64, Failure> {
        for node in &mut self.nodes {
            node.finish();
            if let Some(error) = node.failed.take() {
                return Err(cannot_write(&node.path, &error));
            }
        }
        Ok(self.nodes.iter().map(|node| node.late).sum())
    }

    /// Returns the node at a port, and its tap for the port.
    fn port_of(&self, point: Point) -> Option<(usize, Tap)> {
        match point {
            Point::RootPort(host) => Some((self.hosts[usize::from(host)], Tap::ROOT_PORT)),
            Point::DevicePort(link) => Some((self.below[usize::from(link)], Tap::FUNCTION)),
            _ => None,
        }
    }

    /// Returns the node at an end of a link, and its tap for the link.
    fn end(&self, point: Point) -> Option<(usize, Tap)> {
        match point {
            Point::TunnelHost(link) => {
                let (node, port) = *self.above.get(usize::from(link))?;
                Some((node, Tap::link(port)))
            }
            Point::TunnelDevice(link) => Some((*self.below.get(usize::from(link))?, Tap::UPLINK)),
            _ => None,
        }
    }
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure(format!("cannot write {}: {error}", path.display()))
}

impl Observer for TraceFiles {
    fn tlp(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {
        if let Some((node, tap)) = self.port_of(point) {
            self.nodes[node].hold(at, PendingRecord::Tlp { tap, up, tlp: tlp.clone() });
        }
    }

    fn fault(&mut self, at: Instant, point: Point, fault: &Fault) {
        if let Some((node, tap)) = self.port_of(point) {
            self.nodes[node].hold(at, PendingRecord::Fault(tap, fault.to_string()));
        }
    }

    fn tunnel_frame(&mut self, at: Instant, point: Point, frame: &FrameReport) {
        if let Some((node, tap)) = self.end(point) {
            self.nodes[node].frame(at, tap, frame);
        }
    }

    fn link(&mut self, at: Instant, point: Point, change: LinkChange) {
        let Some((node, tap)) = self.end(point) else { return };
        let node = &mut self.nodes[node];
        let (state, next) = match change {
            LinkChange::Down => (LinkState::Down("link lost"), LinkState::Connected),
            LinkChange::Interrupted => {
                (LinkState::Interrupted("connection lost"), LinkState::Returned)
            }
            LinkChange::Up | LinkChange::Resumed => return,
        };
        node.links.insert(tap, Some(next));
        node.hold(at, PendingRecord::Link(tap, state));
    }
}

impl Node {
    fn create(path: &Path, role: NodeRole, instance: u64) -> Result<Self, Failure> {
        let header = Header {
            role,
            ring: false,
            instance,
            start_unix_ns: 0,
            snap: 0,
            key: PayloadKey::PUBLIC.check(),
            clock: VIRTUAL_CLOCK.into(),
        };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
        let mut out = BufWriter::new(file);
        let failed = out.write_all(&bytes).err();
        Ok(Self {
            path: path.to_owned(),
            out,
            failed,
            number: 0,
            payloads: Payloads::new(
                Some(Box::new(PortFollower::recording())),
                PayloadKey::PUBLIC,
                None,
            ),
            buffer: vec![0; CHUNK_HEADER],
            start_ns: 0,
            last_ns: 0,
            pending: BTreeMap::new(),
            sequence: 0,
            newest_ps: 0,
            late: 0,
            links: HashMap::new(),
        })
    }

    fn frame(&mut self, at: Instant, tap: Tap, frame: &FrameReport) {
        // The first frame shows that the connection exists.
        if let Some(state) = self.links.entry(tap).or_insert(Some(LinkState::Connected)).take() {
            self.hold(at, PendingRecord::Link(tap, state));
        }
        self.hold(at, PendingRecord::Frame(tap, frame.clone()));
    }

    fn hold(&mut self, at: Instant, pending: PendingRecord) {
        self.sequence += 1;
        self.newest_ps = self.newest_ps.max(at.as_ps());
        self.pending.insert((at.as_ps(), self.sequence), pending);
        while self.pending.len() > HELD
            && let Some(((at, _), _)) = self.pending.first_key_value()
            && (at + WINDOW_PS < self.newest_ps || self.pending.len() > MOST_HELD)
        {
            self.write_first();
        }
    }

    fn write_first(&mut self) {
        let Some(((at, _), record)) = self.pending.pop_first() else { return };
        match &record {
            PendingRecord::Tlp { tap, up, tlp } => {
                let kept = self.payloads.kept_of(*up, tlp);
                let delta = self.begin(at / 1000, kept.max_record_length(tlp));
                encode_tlp(*tap, *up, tlp, &kept, delta, &mut self.buffer);
            }
            PendingRecord::Frame(tap, frame) => self.record(at, Record::of_frame(*tap, frame)),
            PendingRecord::Link(tap, state) => {
                self.record(at, Record::Link { tap: *tap, state: *state })
            }
            PendingRecord::Fault(tap, text) => {
                self.record(at, Record::Fault { tap: *tap, text });
            }
        }
    }

    fn record(&mut self, at_ps: u64, record: Record) {
        self.payloads.link(&record);
        let delta = self.begin(at_ps / 1000, record.max_length());
        record.encode(delta, &mut self.buffer);
    }

    /// Makes room for a record; returns the time since the previous record.
    fn begin(&mut self, at: u64, room: usize) -> u64 {
        if self.buffer.len() + room > CHUNK {
            self.write_chunk();
        }
        if self.buffer.len() == CHUNK_HEADER {
            self.start_ns = at.max(self.last_ns);
            self.last_ns = self.start_ns;
        }
        self.late += u64::from(at < self.last_ns);
        let delta = at.saturating_sub(self.last_ns);
        self.last_ns += delta;
        delta
    }

    fn write_chunk(&mut self) {
        let header = ChunkHeader::new(self.number, 0, self.start_ns, &self.buffer[CHUNK_HEADER..]);
        self.buffer[..CHUNK_HEADER].copy_from_slice(&header.encode());
        self.number += 1;
        if self.failed.is_none() {
            self.failed = self.out.write_all(&self.buffer).err();
        }
        self.buffer.truncate(CHUNK_HEADER);
    }

    fn finish(&mut self) {
        while !self.pending.is_empty() {
            self.write_first();
        }
        if self.buffer.len() > CHUNK_HEADER {
            self.write_chunk();
        }
        if self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
    }
}
