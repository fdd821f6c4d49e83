//! Media, memory and records with latencies in virtual time, so that answers arrive in any order.
//! The media have a volatile cache and faults.

use super::case::Case;
use super::contents::UNIT;
use nvme::block::{self, Error, Operation, Request};
use pcie::Ready;
use std::collections::{BTreeMap, VecDeque};
use testkit::nvme::{Host, Testbed};
use wire::tlp::MemoryRequest;
use wire::trace::CommandId;
use wire::{Duration, Instant};

/// An answer that is due later.
enum Answer {
    Memory(MemoryRequest),
    /// A media request; for a flush, with the data that it makes durable.
    Media(Request, Option<Cache>),
    Record,
}

/// A namespace on the media: durable data, and versions of all units.
#[derive(Clone, Default)]
struct Cache {
    versions: Vec<u64>,
    safe: Vec<(u64, Vec<u8>)>,
}

/// A media request that failed on purpose.
pub struct Fault {
    pub command: Option<CommandId>,
    pub error: Error,
}

pub struct World {
    pub host: Host,
    latencies: Vec<u16>,
    faults: BTreeMap<usize, Error>,
    store_faults: BTreeMap<usize, Error>,
    /// Whether no request fails.
    pub calm: bool,
    /// Faults that were not checked yet.
    pub faulted: Vec<Fault>,
    /// Failed changes of records that were not checked yet.
    pub unstored: Vec<Error>,
    requests: usize,
    commits: usize,
    pending: Vec<(Instant, usize, Answer)>,
    sent: usize,
    caches: BTreeMap<u32, Cache>,
    version: u64,
}

impl World {
    pub fn new(testbed: Testbed, case: &Case) -> Self {
        Self {
            host: Host::over(testbed),
            latencies: case.latencies.clone(),
            faults: case.faults.iter().copied().collect(),
            store_faults: case.store_faults.iter().copied().collect(),
            calm: true,
            faulted: Vec::new(),
            unstored: Vec::new(),
            requests: 0,
            commits: 0,
            pending: Vec::new(),
            sent: 0,
            caches: BTreeMap::new(),
            version: 0,
        }
    }

    pub fn testbed(&mut self) -> &mut Testbed {
        &mut self.host.testbed
    }

    /// Collects the drive's requests.
    fn collect(&mut self) {
        let testbed = &mut self.host.testbed;
        testbed.take_tlps(Ready::ALL);
        let memory: VecDeque<_> = std::mem::take(&mut testbed.reads);
        let media: VecDeque<_> = std::mem::take(&mut testbed.blocks);
        let records = testbed.store.commits.len();
        for read in memory {
            self.schedule(Answer::Memory(read));
        }
        for request in media {
            let flushed = (request.operation == Operation::Flush).then(|| self.view(request.nsid));
            self.schedule(Answer::Media(request, flushed));
        }
        let waiting = self.pending.iter().filter(|(.., one)| matches!(one, Answer::Record)).count();
        for _ in waiting..records {
            self.schedule(Answer::Record);
        }
    }

    fn schedule(&mut self, answer: Answer) {
        let latency = u64::from(self.latencies[self.sent % self.latencies.len()]);
        self.sent += 1;
        let due = self.host.testbed.now + Duration::from_us(latency);
        self.pending.push((due, self.sent, answer));
    }

    /// Executes the next answer, if it is due until `end`. Returns whether there was one.
    pub fn step(&mut self, end: Option<Instant>) -> bool {
        self.collect();
        let next = self.pending.iter().enumerate().min_by_key(|(_, (due, sent, _))| (*due, *sent));
        let next = next.map(|(at, (due, ..))| (at, *due));
        let Some((at, due)) = next.filter(|(_, due)| end.is_none_or(|end| *due <= end)) else {
            if let Some(end) = end {
                self.host.testbed.now = end.max(self.host.testbed.now);
            }
            return false;
        };
        let testbed = &mut self.host.testbed;
        testbed.now = testbed.now.max(due);
        match self.pending.swap_remove(at).2 {
            Answer::Memory(read) => testbed.answer_read(read, false),
            Answer::Media(request, flushed) => self.serve(request, flushed),
            Answer::Record => self.store(),
        }
        self.collect();
        self.host.testbed.subsystem.check_invariants();
        true
    }

    fn units(&self, nsid: u32) -> usize {
        self.host.testbed.media.namespaces[&nsid].len() / UNIT as usize
    }

    fn cache(&mut self, nsid: u32) -> &mut Cache {
        let units = self.units(nsid);
        let cache = self.caches.entry(nsid).or_default();
        cache.versions.resize(units, 0);
        cache.safe.resize(units, (0, vec![0; UNIT as usize]));
        cache
    }

    /// The data that a flush makes durable if it begins now.
    fn view(&mut self, nsid: u32) -> Cache {
        if !self.host.testbed.media.namespaces.contains_key(&nsid) {
            return Cache::default();
        }
        let bytes = self.host.testbed.media.namespaces[&nsid].clone();
        let units = bytes.chunks(UNIT as usize).map(<[u8]>::to_vec);
        let versions = self.cache(nsid).versions.clone();
        Cache { safe: versions.iter().copied().zip(units).collect(), versions }
    }

    /// Executes a media request, or makes it fail.
    fn serve(&mut self, request: Request, flushed: Option<Cache>) {
        let (id, nsid, command) = (request.id, request.nsid, request.command);
        let error = self.faults.get(&self.requests).copied().filter(|_| !self.calm);
        self.requests += usize::from(!self.calm);
        let result = if !self.host.testbed.media.namespaces.contains_key(&nsid) {
            // The namespace was deleted before the request.
            Err(Error::Internal)
        } else if let Some(error) = error {
            self.faulted.push(Fault { command, error });
            self.serve_half(&request);
            Err(error)
        } else {
            self.change(&request);
            if let Some(flushed) = flushed {
                for (safe, new) in self.cache(nsid).safe.iter_mut().zip(flushed.safe) {
                    if new.0 > safe.0 {
                        *safe = new;
                    }
                }
            }
            self.host.testbed.media.execute(request)
        };
        let testbed = &mut self.host.testbed;
        testbed.subsystem.complete_block(testbed.now, id, result);
    }

    /// Increments the versions of the units that a request changes.
    fn change(&mut self, request: &Request) {
        if matches!(request.operation, Operation::Read { .. } | Operation::Flush) {
            return;
        }
        let (offset, length) = request.operation.range();
        self.version += 1;
        let version = self.version;
        let units = (offset / UNIT) as usize..((offset + length) / UNIT) as usize;
        self.cache(request.nsid).versions[units].fill(version);
    }

    /// Executes the first half of a failing write.
    fn serve_half(&mut self, request: &Request) {
        if let Operation::Write { offset, data } = &request.operation {
            let half = data.len() / 2 / UNIT as usize * UNIT as usize;
            let (offset, data) = (*offset, data.slice(..half));
            let request =
                Request { operation: Operation::Write { offset, data }, ..request.clone() };
            self.change(&request);
            let _: block::Completion = self.host.testbed.media.execute(request);
        }
    }

    fn store(&mut self) {
        let error = self.store_faults.get(&self.commits).copied().filter(|_| !self.calm);
        self.commits += usize::from(!self.calm);
        let testbed = &mut self.host.testbed;
        testbed.store.failure = error;
        self.unstored.extend(error);
        testbed.serve_store();
        testbed.store.failure = None;
        let media = &testbed.media.namespaces;
        self.caches.retain(|nsid, _| media.contains_key(nsid));
    }

    /// Drops outstanding memory requests at a reset of the link; media requests stay.
    pub fn forget_memory(&mut self) {
        self.pending.retain(|(.., answer)| !matches!(answer, Answer::Memory(_)));
    }

    /// Handles a loss of power: random units of the volatile cache and of outstanding writes are
    /// lost.
    pub fn lose_power(&mut self, mut seed: u64) {
        let mut coin = move || {
            // SplitMix64: the upper half decides.
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed >> 63 != 0
        };
        self.collect();
        for (_, _, answer) in std::mem::take(&mut self.pending) {
            let Answer::Media(request, _) = answer else { continue };
            let Operation::Write { offset, data } = &request.operation else { continue };
            let Some(bytes) = self.host.testbed.media.namespaces.get_mut(&request.nsid) else {
                continue;
            };
            for (at, unit) in (*offset..).step_by(UNIT as usize).zip(data.chunks(UNIT as usize)) {
                if coin() {
                    bytes[at as usize..][..unit.len()].copy_from_slice(unit);
                }
            }
        }
        let nsids: Vec<u32> = self.host.testbed.media.namespaces.keys().copied().collect();
        for nsid in nsids {
            let safe = self.cache(nsid).safe.clone();
            let bytes = self.host.testbed.media.namespaces.get_mut(&nsid).expect("it is there");
            for (unit, (_, safe)) in bytes.chunks_mut(UNIT as usize).zip(safe) {
                if coin() {
                    unit.copy_from_slice(&safe);
                }
            }
            let units: Vec<_> = bytes.chunks(UNIT as usize).map(<[u8]>::to_vec).collect();
            self.version += 1;
            let version = self.version;
            let cache = self.cache(nsid);
            cache.versions.fill(version);
            cache.safe = units.into_iter().map(|unit| (version, unit)).collect();
        }
    }
}
