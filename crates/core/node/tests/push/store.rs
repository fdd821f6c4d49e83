//! The far side's store with messages and reads by hand.

use bytes::Bytes;
use node::push::Completions;
use pcie::Ready;
use wire::push::{Queue, Record, message};
use wire::tlp::{Attributes, Completion, MemoryRequest, Packet, Status, Tlp};
use wire::{Bdf, Tag, nvme};

type Store = switch::push_store::Store<Completions>;

const ROOT: Bdf = Bdf::new(0, 1, 0);
const DRIVE: Bdf = Bdf::new(3, 0, 0);
const QUEUE: Queue =
    Queue { id: 1, last: 7, head: 0, completion_last: 7, base: 0x1000, completion_base: 0x2000 };
const DATA: u64 = 0x1_0000_0800;

fn send(store: &mut Store, records: &[Record]) {
    let mut payload = Vec::new();
    records.iter().for_each(|record| record.encode(&mut payload));
    let message = message(ROOT, DRIVE, 128, false, payload.into());
    assert_eq!(store.take(message), None, "the port consumes it");
}

fn bytes(command: u16, address: u64, length: usize) -> Record {
    let bytes = (0..length).map(|i| (address as usize + i) as u8).collect();
    Record::Bytes { queue: 1, command, address, bytes }
}

/// A store with queue 1 and these records.
fn store(records: &[Record]) -> Store {
    let mut store = Store::new(1 << 20, Completions::default());
    send(&mut store, &[Record::Queue(QUEUE)]);
    send(&mut store, records);
    store
}

fn read(address: u64, length: usize) -> Tlp {
    Tlp::read_bytes(DRIVE, Tag::truncate(9), address, length).unwrap()
}

/// Whether the store answers this read. Checks that each byte is the low byte of its address.
fn hits(store: &mut Store, address: u64, length: usize) -> bool {
    if store.answer(read(address, length), false).is_some() {
        return false;
    }
    let mut all = Vec::new();
    while let Some(reply) = store.pop(Ready::ALL) {
        let Packet::Completion(c) = reply.packet else { panic!("{reply:?}") };
        assert_eq!(usize::from(c.byte_count), length - all.len());
        let lead = usize::from(c.lower_address & 3);
        let end = reply.data.len().min(lead + usize::from(c.byte_count));
        all.extend_from_slice(&reply.data[lead..end]);
    }
    let expected: Vec<u8> = (0..length).map(|i| (address as usize + i) as u8).collect();
    assert_eq!(all, expected);
    true
}

fn entry(cid: u16, sq_head: u16) -> Bytes {
    let completion = nvme::Completion { sq_head, sq_id: 1, cid, ..Default::default() };
    Bytes::copy_from_slice(&completion.encode())
}

fn write(store: &mut Store, address: u64, data: &Bytes) {
    let write = Tlp::write_bytes(DRIVE, address, data).unwrap();
    assert_eq!(store.answer(write.clone(), false), Some(write), "the host gets it");
}

#[test]
fn a_read_is_answered_as_the_root_complex_answers() {
    let mut store = store(&[bytes(5, DATA + 0x40, 200)]);
    let mut request = read(DATA + 0x40, 200);
    (request.tc, request.attributes) = (3, Attributes::from_bits(0b101));
    assert_eq!(store.answer(request.clone(), false), None);
    assert_eq!(store.pop(Ready::ALL.with(wire::tlp::Class::Completion, false)), None);
    let Packet::MemoryRead(r) = request.packet else { unreachable!() };
    // Completions of 128 bytes end at their multiples: 64, 128 and 8 bytes.
    for (at, length, left) in [(0x40u64, 64, 200), (0x80, 128, 136), (0x100, 8, 8)] {
        let data: Bytes = (0..length).map(|i| (at as usize + i) as u8).collect();
        let completion = Completion {
            completer: ROOT,
            requester: DRIVE,
            tag: r.tag,
            status: Status::Success,
            byte_count: left,
            lower_address: (at & 0x7f) as u8,
            byte_count_modified: false,
        };
        let reply = store.pop(Ready::ALL).unwrap();
        let expected =
            Tlp { tc: 3, attributes: request.attributes, data, ..Tlp::completion(completion) };
        assert_eq!(reply, expected);
    }
    assert_eq!(store.pop(Ready::ALL), None);
    let counters = store.counters();
    assert_eq!((counters.hits, counters.hit_bytes, counters.unused_bytes), (1, 200, 0));
}

#[test]
fn completions_have_an_ecrc_if_the_message_has_one() {
    let mut store = store(&[]);
    let mut payload = Vec::new();
    bytes(5, DATA, 4).encode(&mut payload);
    assert_eq!(store.take(message(ROOT, DRIVE, 128, true, payload.into())), None);
    assert_eq!(store.answer(read(DATA, 4), false), None);
    assert!(store.pop(Ready::ALL).unwrap().digest);
}

#[test]
fn a_request_hits_as_a_whole_and_once() {
    let mut store = store(&[bytes(5, DATA, 64), bytes(5, DATA + 64, 64)]);
    assert!(!hits(&mut store, DATA + 64, 68), "4 bytes are missing");
    assert!(!hits(&mut store, DATA - 4, 8));
    assert!(hits(&mut store, DATA + 32, 64), "two pieces");
    assert!(!hits(&mut store, DATA + 32, 4), "it was answered before");
    assert!(hits(&mut store, DATA + 1, 30), "bytes, not double words");
    assert!(hits(&mut store, DATA + 96, 32));
    assert_eq!(store.bytes(), 2, "the first byte and the 32nd");
    assert_eq!((store.counters().hits, store.counters().misses), (3, 3));
}

#[test]
fn flushes_and_foreign_reads_go_to_the_host() {
    let mut store = store(&[bytes(5, DATA, 64)]);
    let flush = MemoryRequest {
        first_be: 0,
        ..MemoryRequest::for_bytes(DRIVE, Tag::default(), DATA, 4).unwrap()
    };
    assert!(store.answer(Tlp::memory_read(flush), false).is_some(), "a zero-length read");
    assert_eq!(store.counters().misses, 0);
    let gap = MemoryRequest { first_be: 0b1001, ..flush };
    assert!(store.answer(Tlp::memory_read(gap), false).is_some(), "enables with a gap");
    let other = Tlp::read_bytes(Bdf::new(3, 0, 1), Tag::default(), DATA, 4).unwrap();
    assert!(store.answer(other, false).is_some(), "another function");
    assert!(hits(&mut store, DATA, 64));
}

#[test]
fn completion_entry_invalidates_its_command_and_consumed_slots() {
    let slots: Vec<_> = (0..4).map(|slot| bytes(slot, 0x1000 + u64::from(slot) * 64, 64)).collect();
    let mut store = store(&[&slots[..], &[bytes(0, DATA, 64), bytes(1, DATA + 64, 64)]].concat());
    // Command 0 is complete, and slots 0 and 1 are consumed.
    write(&mut store, 0x2000, &entry(0, 2));
    assert!(!hits(&mut store, DATA, 64));
    assert!(!hits(&mut store, 0x1040, 64));
    assert!(hits(&mut store, DATA + 64, 64), "command 1 goes on");
    assert!(hits(&mut store, 0x1080, 64));
    // The queue has no slot 8: its head stays.
    write(&mut store, 0x2010, &entry(9, 8));
    assert!(store.bytes() > 0);
    // Outside the completion queue the same bytes mean nothing.
    write(&mut store, 0x2080, &entry(3, 4));
    assert!(hits(&mut store, 0x10c0, 64));
}

#[test]
fn partial_completion_entry_invalidates_everything() {
    let mut store = store(&[bytes(0, DATA, 64)]);
    write(&mut store, 0x2008, &entry(7, 1).slice(8..));
    assert_eq!((store.bytes(), store.counters().unused_bytes), (0, 64));
}

#[test]
fn write_of_function_invalidates_overlapped_bytes() {
    let mut store = store(&[bytes(0, DATA, 64)]);
    write(&mut store, DATA + 16, &Bytes::from_static(&[0; 4]));
    assert!(!hits(&mut store, DATA, 64) && !hits(&mut store, DATA + 16, 4));
    assert!(hits(&mut store, DATA, 16) && hits(&mut store, DATA + 20, 44));
}

#[test]
fn end_records_invalidate_the_bytes_they_name() {
    let all = [bytes(0, DATA, 64), bytes(1, DATA + 64, 64), bytes(2, DATA + 128, 64)];
    let rest = |record| {
        let mut store = store(&all);
        send(&mut store, &[record]);
        [0, 64, 128].map(|at| hits(&mut store, DATA + at, 64))
    };
    assert_eq!(rest(Record::EndCommand { queue: 1, command: 1 }), [true, false, true]);
    assert_eq!(
        rest(Record::EndRange { address: DATA + 64, length: u64::MAX }),
        [true, false, false]
    );
    assert_eq!(rest(Record::EndQueue(1)), [false; 3]);
    assert_eq!(rest(Record::EndQueue(2)), [true; 3]);
    assert_eq!(rest(Record::EndAll), [false; 3]);
    assert_eq!(rest(Record::Queue(QUEUE)), [false; 3], "created anew");
    assert_eq!(rest(bytes(3, DATA, 4)), [true; 3], "the same bytes from two commands");
}

#[test]
fn bytes_of_a_queue_that_is_not_followed_are_not_kept() {
    let mut store = Store::new(1 << 20, Completions::default());
    send(&mut store, &[bytes(0, DATA, 64)]);
    assert!(!hits(&mut store, DATA, 64));
    assert_eq!(store.counters().unused_bytes, 64);
}

#[test]
fn oldest_bytes_are_evicted_when_store_is_full() {
    let mut store = Store::new(128, Completions::default());
    send(&mut store, &[Record::Queue(QUEUE), bytes(0, DATA, 64), bytes(1, DATA + 64, 64)]);
    send(&mut store, &[bytes(2, DATA + 128, 32), bytes(3, DATA + 512, 132)]);
    assert_eq!((store.bytes(), store.counters().unused_bytes), (96, 64 + 132));
    assert!(!hits(&mut store, DATA, 64) && hits(&mut store, DATA + 64, 96));
}

#[test]
fn malformed_message_invalidates_everything_and_is_counted() {
    let mut store = store(&[bytes(0, DATA, 64)]);
    let bad = message(ROOT, DRIVE, 128, false, Bytes::from_static(&[9, 0, 0, 0]));
    assert_eq!(store.take(bad), None);
    assert_eq!((store.counters().malformed, store.bytes()), (1, 0));
}

#[test]
fn store_without_capacity_passes_messages_to_function() {
    let mut store = Store::new(0, Completions::default());
    let tlp = message(ROOT, DRIVE, 128, false, Bytes::new());
    assert_eq!(store.take(tlp.clone()), Some(tlp));
}
