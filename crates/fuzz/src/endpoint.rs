//! An endpoint that receives arbitrary valid TLPs, with a device that uses all
//! functions: every DMA read ends once, every TLP sent is legal.

use bytes::Bytes;
use pcie::endpoint::{Endpoint, EndpointConfig, Event};
use pcie::{Input, Output, Ready};
use std::collections::BTreeSet;
use testkit::Source;
use wire::tlp::{Completion, MemoryRequest, Packet, Status, Tlp};
use wire::{Bdf, Duration, Instant};

struct Run {
    endpoint: Endpoint,
    now: Instant,
    next_read: u64,
    reads: BTreeSet<u64>,
    /// Unanswered reads of the endpoint.
    sent: Vec<(MemoryRequest, usize)>,
    host: Bdf,
}

pub fn run(data: &[u8]) {
    let mut source = Source(data);
    let endpoint = Endpoint::new(EndpointConfig {
        vendor: 0xfa12,
        device: 2,
        subsystem: (1, 2),
        class: [5, 0, 0],
        revision: 0,
        serial: 3,
        incarnation: Some(4),
        bar0_size: 0x4000,
        vectors: 4,
        max_payload: 128 << source.below(6),
        read_request: 128 << source.below(6),
        reads_in_flight: 1 + source.below(64),
        foreign: None,
    });
    let mut run = Run {
        endpoint,
        now: Instant::ZERO,
        next_read: 0,
        reads: BTreeSet::new(),
        sent: Vec::new(),
        host: Bdf::default(),
    };
    while !source.0.is_empty() {
        run.operation(&mut source);
        run.events(&mut source);
    }
}

impl Run {
    fn operation(&mut self, source: &mut Source<'_>) {
        match source.below(10) {
            0 | 1 => {
                let length = usize::from(source.byte());
                let mut bytes = Bytes::from(source.take(length));
                if let Ok(tlp) = Tlp::decode(&mut bytes)
                    && self.endpoint.ready().has(tlp.class())
                {
                    self.endpoint.handle(self.now, Input::Tlp(tlp));
                }
            }
            2 => {
                let (id, address) = (self.next_read, u64::from(source.u32()) << source.below(40));
                self.next_read += 1;
                self.reads.insert(id);
                self.endpoint.dma_read(id, address, source.u32() as usize % 10_000);
            }
            3 => {
                let address = u64::from(source.u32()) << source.below(40);
                let length = source.u32() as usize % 10_000;
                if self.endpoint.posted_backlog() < 1 << 20 {
                    self.endpoint.dma_write(address, Bytes::from(vec![1; length]));
                }
            }
            4 => self.endpoint.interrupt(source.byte().into()),
            5 => self.endpoint.set_intx(source.byte() & 1 != 0),
            6 => self.now += Duration::from_us(u64::from(source.u32() & 0xf_ffff)),
            7 => self.complete(source),
            8 => self.endpoint.handle(self.now, Input::HotReset),
            _ => self.poll(source.byte()),
        }
    }

    fn poll(&mut self, mask: u8) {
        let ready = Ready::from_fn(|class| mask >> class.index() & 1 != 0);
        for _ in 0..2000 {
            match self.endpoint.poll(self.now, ready) {
                Output::Wait(wait) => {
                    assert!(wait.until.is_none_or(|at| at > self.now), "a timer of the past");
                    return;
                }
                Output::Tlp(tlp) => {
                    assert!(ready.has(tlp.class()));
                    let mut bytes = Vec::new();
                    tlp.encode(&mut bytes);
                    assert_eq!(Tlp::decode(&mut Bytes::from(bytes)).as_ref(), Ok(&tlp));
                    if let Packet::MemoryRead(request) = tlp.packet {
                        self.sent.push((request, request.byte_count()));
                    }
                }
            }
        }
    }

    /// Answers a read of the endpoint: fully, in part, or with an error.
    fn complete(&mut self, source: &mut Source<'_>) {
        if self.sent.is_empty() {
            return;
        }
        let (index, how) = (source.below(self.sent.len()), source.byte());
        let (request, left) = self.sent[index];
        let at = request.first_byte() + (request.byte_count() - left) as u64;
        let lead = (at & 3) as usize;
        let bytes = if how & 1 != 0 { left } else { left.min(64 - (at & 63) as usize) };
        let completion = Completion {
            completer: self.host,
            requester: if how & 0x40 != 0 { self.host } else { request.requester },
            tag: request.tag,
            status: Status::from_bits(if how & 6 == 0 { how >> 3 } else { 0 }),
            byte_count: left as u16,
            lower_address: at as u8 & 0x7f,
            byte_count_modified: false,
        };
        let data = Bytes::from(vec![how; (lead + bytes).next_multiple_of(4)]);
        self.sent[index].1 -= bytes;
        if self.sent[index].1 == 0 {
            self.sent.swap_remove(index);
        }
        let tlp = Tlp::new(Packet::Completion(completion), data);
        self.endpoint.handle(self.now, Input::Tlp(tlp));
    }

    fn events(&mut self, source: &mut Source<'_>) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Read { length, token, .. } => {
                    self.endpoint.complete_read(token, &vec![source.byte(); length]);
                }
                Event::Write { .. } | Event::Foreign(_) => {}
                Event::ReadDone { id, .. } => {
                    assert!(self.reads.remove(&id), "read {id} ended twice");
                }
                Event::Reset(_) => {
                    self.reads.clear();
                    self.sent.clear();
                }
            }
        }
    }
}
