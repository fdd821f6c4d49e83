//! A function whose data survive resets, so that a host could confuse them with other data.

use bytes::Bytes;
use pcie::config::contents::{ContentsCapability, VENDOR};
use pcie::endpoint::{Endpoint, EndpointConfig, Event};
use pcie::function::Ports;
use pcie::{Function, Input, Output, Ready};
use wire::tlp::{ConfigKind, ConfigRequest, Packet, Tlp};
use wire::{Bdf, Instant};

/// Blocks of eight bytes, from [`BLOCKS`] of BAR 0 on.
pub const COUNT: usize = 2;
/// Offset of the blocks in BAR 0.
pub const BLOCKS: u64 = 0x1000;
/// WO, 1 byte in BAR 0: a write of n sends block n to the bus address 8 n.
pub const DOORBELL: u64 = 0;

/// The function.
#[derive(Debug)]
pub struct Disk {
    endpoint: Endpoint,
    pub serial: u64,
    pub incarnation: u64,
    pub blocks: [u64; COUNT],
}

impl Disk {
    pub fn new(serial: u64, incarnation: u64, blocks: [u64; COUNT]) -> Self {
        let endpoint = Endpoint::new(EndpointConfig {
            vendor: VENDOR,
            device: 0x0d3b,
            subsystem: (VENDOR, 1),
            class: [0x01, 0x80, 0],
            revision: 0,
            serial,
            incarnation: Some(incarnation),
            bar0_size: 0x8000,
            vectors: 1,
            max_payload: 256,
            read_request: 256,
            reads_in_flight: 1,
            foreign: None,
        });
        Self { endpoint, serial, incarnation, blocks }
    }

    /// Another host attached the function meanwhile and wrote its number at `capability`.
    pub fn owned(mut self, capability: u16, owner: u32) -> Self {
        let at = capability + ContentsCapability::OWNER;
        let host = Bdf::default();
        let request = ConfigRequest::whole(ConfigKind::Type0, host, Bdf::new(1, 0, 0), at);
        let tlp = Tlp::new(Packet::ConfigWrite(request), Bytes::from(owner.to_le_bytes().to_vec()));
        self.endpoint.handle(Instant::ZERO, Input::Tlp(tlp));
        while let Output::Tlp(_) = self.endpoint.poll(Instant::ZERO, Ready::ALL) {}
        self
    }

    fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Read { offset, length, token, .. } => {
                    let data: Vec<u8> = (offset..offset + length as u64)
                        .map(|at| {
                            self.place(at)
                                .map_or(0, |(block, byte)| self.blocks[block].to_le_bytes()[byte])
                        })
                        .collect();
                    self.endpoint.complete_read(token, &data);
                }
                Event::Write { offset: DOORBELL, data, .. } => {
                    let block = usize::from(data[0]) % COUNT;
                    let bytes = self.blocks[block].to_le_bytes().to_vec();
                    self.endpoint.dma_write(8 * block as u64, Bytes::from(bytes));
                    self.endpoint.interrupt(0);
                }
                Event::Write { offset, data, .. } => {
                    for (at, value) in (offset..).zip(data) {
                        if let Some((block, byte)) = self.place(at) {
                            let mut bytes = self.blocks[block].to_le_bytes();
                            bytes[byte] = value;
                            self.blocks[block] = u64::from_le_bytes(bytes);
                        }
                    }
                }
                Event::ReadDone { .. } | Event::Reset(_) | Event::Foreign(_) => {}
            }
        }
    }

    /// The block and byte at an offset in BAR 0.
    fn place(&self, at: u64) -> Option<(usize, usize)> {
        let at = at.checked_sub(BLOCKS)? as usize;
        (at / 8 < COUNT).then_some((at / 8, at % 8))
    }
}

impl Function for Disk {
    fn handle(&mut self, now: Instant, input: Input) {
        self.endpoint.handle(now, input);
        self.take_events();
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.take_events();
        self.endpoint.poll(now, ready)
    }

    fn ready(&self) -> Ready {
        self.endpoint.ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}
