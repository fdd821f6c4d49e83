//! The codec of pushes, and a device's store with a hostile host and a hostile function.

use bytes::Bytes;
use node::push::Completions;
use pcie::Ready;
use std::collections::BTreeMap;
use switch::push_store::Store;
use testkit::Source;
use wire::push::{Push, Queue, Record, message};
use wire::tlp::{Class, Packet, Tlp};
use wire::{Bdf, Tag};

const ROOT: Bdf = Bdf::new(0, 1, 0);
const FUNCTIONS: [Bdf; 2] = [Bdf::new(3, 0, 0), Bdf::new(3, 0, 1)];

/// A store, and what it may answer: the bytes that were pushed last, if nothing certain ended them.
struct Run {
    store: Store<Completions>,
    capacity: usize,
    may: BTreeMap<(Bdf, u64), u8>,
}

pub fn run(data: &[u8]) {
    let mut source = Source(data);
    let capacity = 1 << (source.byte() % 14);
    let store = Store::new(capacity, Completions::default());
    let mut run = Run { store, capacity, may: BTreeMap::new() };
    while !source.0.is_empty() {
        match source.byte() % 8 {
            0 => {
                let length = usize::from(source.byte()) * 4;
                let payload = source.take(length);
                run.push(target(&mut source), Bytes::from(payload));
            }
            1..=3 => {
                let records: Vec<_> =
                    (0..1 + source.below(4)).map(|_| record(&mut source)).collect();
                let mut payload = Vec::new();
                records.iter().for_each(|record| record.encode(&mut payload));
                run.push(target(&mut source), payload.into());
            }
            4 | 5 => run.read(&mut source),
            6 => run.write(&mut source),
            _ => {
                run.store.clear().for_each(drop);
                run.may.clear();
            }
        }
        run.check();
    }
}

fn target(source: &mut Source<'_>) -> Bdf {
    FUNCTIONS[source.below(FUNCTIONS.len())]
}

/// In three pages: of a submission queue, of a completion queue, and of data.
fn address(source: &mut Source<'_>) -> u64 {
    0x1000 + u64::from(source.u32() % 0x3000)
}

fn record(source: &mut Source<'_>) -> Record {
    let (queue, command) = (u16::from(source.byte() % 3), u16::from(source.byte() % 5));
    match source.below(8) {
        0 | 1 => Record::Queue(Queue {
            id: queue,
            last: 1 + u16::from(source.byte() % 63),
            head: u16::from(source.byte() % 2),
            completion_last: 1 + u16::from(source.byte()),
            base: 0x1000,
            completion_base: 0x2000,
        }),
        2..=4 => {
            let (address, length) = (address(source) & !3, 4 * (1 + source.below(40)));
            let mut bytes = source.take(length);
            bytes.resize(length, 7);
            Record::Bytes { queue, command, address, bytes: bytes.into() }
        }
        5 => Record::EndCommand { queue, command },
        6 => Record::EndRange { address: address(source), length: source.u32().into() },
        _ if source.byte().is_multiple_of(2) => Record::EndQueue(queue),
        _ => Record::EndAll,
    }
}

impl Run {
    fn push(&mut self, target: Bdf, payload: Bytes) {
        if payload.len() > 4096 {
            return;
        }
        let tlp = message(ROOT, target, 256, false, payload.clone());
        let (front, valid) = Push::decode_front(&tlp).expect("one of ours");
        let mut again = Vec::new();
        let front: Vec<_> = front.records.collect();
        front.iter().for_each(|record| record.encode(&mut again));
        let lengths = front.iter().map(Record::length).sum::<usize>();
        assert_eq!(again.len(), lengths);
        assert!(payload.starts_with(&again), "what was decoded is what is encoded");
        assert_eq!(valid.is_ok(), again.len() == payload.len());
        match Push::decode(&tlp).expect("one of ours") {
            Ok(push) => push.records.for_each(|record| self.note(target, &record)),
            Err(_) => self.may.clear(),
        }
        assert_eq!(self.store.take(tlp), None, "the port consumes it");
    }

    fn note(&mut self, target: Bdf, record: &Record) {
        match record {
            Record::Bytes { address, bytes, .. } => {
                let places = (*address..).map(|at| (target, at));
                self.may.extend(places.zip(bytes.iter().copied()));
            }
            Record::EndRange { address, length } => {
                self.end(target, *address, *length);
            }
            Record::EndAll => self.may.retain(|(function, _), _| *function != target),
            Record::Queue(_) | Record::EndCommand { .. } | Record::EndQueue(_) => {}
        }
    }

    fn end(&mut self, target: Bdf, address: u64, length: u64) {
        let range = address..address.saturating_add(length);
        self.may.retain(|(function, at), _| *function != target || !range.contains(at));
    }

    /// A read is answered with these bytes, once, or goes to the host as a whole.
    fn read(&mut self, source: &mut Source<'_>) {
        let (function, at, tag) =
            (target(source), address(source), Tag::truncate(source.byte().into()));
        let length = 1 + source.below(200);
        let Some(tlp) = Tlp::read_bytes(function, tag, at, length) else { return };
        if let Some(same) = self.store.answer(tlp.clone(), false) {
            assert_eq!(same, tlp);
            return;
        }
        let mut bytes = Vec::new();
        while let Some(reply) = self.store.pop(Ready::ALL) {
            assert_eq!(reply.class(), Class::Completion);
            let Packet::Completion(c) = reply.packet else { panic!("{reply:?}") };
            assert_eq!((c.requester, c.tag, c.completer), (function, tag, ROOT));
            assert_eq!(usize::from(c.byte_count), length - bytes.len());
            let lead = usize::from(c.lower_address & 3);
            let end = reply.data.len().min(lead + usize::from(c.byte_count));
            bytes.extend_from_slice(&reply.data[lead..end]);
        }
        let expected = (at..at + length as u64).map(|at| self.may.remove(&(function, at)));
        let expected: Option<Vec<u8>> = expected.collect();
        assert_eq!(Some(bytes), expected, "{length} bytes at {at:#x}");
    }

    fn write(&mut self, source: &mut Source<'_>) {
        let (function, at) = (target(source), address(source) & !3);
        let length = 4 * (1 + source.below(12));
        let mut bytes = source.take(length);
        bytes.resize(length, 0);
        let Some(tlp) = Tlp::write_bytes(function, at, &bytes.into()) else { return };
        assert_eq!(self.store.answer(tlp.clone(), false), Some(tlp), "the host gets it");
        self.end(function, at, length as u64);
    }

    fn check(&self) {
        let (kept, counters) = (self.store.bytes(), self.store.counters());
        assert!(kept <= self.capacity && kept <= self.may.len(), "{kept} of {}", self.capacity);
        let ended = counters.hit_bytes + counters.unused_bytes;
        assert_eq!(counters.pushed_bytes, ended + kept as u64, "no byte is lost");
    }
}
