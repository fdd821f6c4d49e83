//! A small NVMe controller: what NVMe 1.4 demands of one that only reads, writes and flushes.

use super::{u32_at, u64_at};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

/// Bytes of the disk.
pub const DISK: usize = 4 << 20;
const BLOCK: usize = 512;
const PAGE: u64 = 4096;
/// Queue pairs with the admin queues.
const QUEUES: usize = 8;
/// CAP: 64 entries, contiguous queues, 1 s, doorbells 8 bytes apart, the NVM command set.
const CAP: u64 = 63 | 1 << 16 | 2 << 24 | 1 << 32 | 1 << 37;
const INVALID_OPCODE: u16 = 1;
const INVALID_FIELD: u16 = 2;
const OUT_OF_RANGE: u16 = 0x80;

/// The client's memory.
#[derive(Default)]
pub struct Dma {
    /// First address, bytes, file.
    pub memory: Option<(u64, u64, File)>,
    /// The way to it by messages.
    pub socket: Option<UnixStream>,
    /// Messages of the client that crossed those.
    pub crossed: Vec<Vec<u8>>,
}

impl Dma {
    /// Reads or writes; every address has to be the client's.
    fn access(&mut self, write: bool, address: u64, bytes: &mut [u8]) {
        let (first, size, file) = self.memory.as_ref().expect("mapped");
        let at = address.checked_sub(*first).expect("mapped");
        assert!(at + bytes.len() as u64 <= *size, "mapped");
        match (&mut self.socket, write) {
            (Some(socket), _) => self.crossed.extend(exchange(socket, write, address, bytes)),
            (None, true) => file.write_all_at(bytes, at).unwrap(),
            (None, false) => file.read_exact_at(bytes, at).unwrap(),
        }
    }

    fn read<const N: usize>(&mut self, address: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.access(false, address, &mut bytes);
        bytes
    }
}

/// DMA_READ or DMA_WRITE. Yields the messages of the client that come before the reply.
fn exchange(socket: &mut UnixStream, write: bool, address: u64, bytes: &mut [u8]) -> Vec<Vec<u8>> {
    let data: &[u8] = if write { bytes } else { &[] };
    let mut message = vec![0x55, 0xaa, if write { 12 } else { 11 }, 0];
    message.extend((32 + data.len() as u32).to_le_bytes());
    message.extend([0; 8]);
    message.extend(address.to_le_bytes());
    message.extend((bytes.len() as u64).to_le_bytes());
    message.extend(data);
    socket.write_all(&message).unwrap();
    let mut crossed = Vec::new();
    loop {
        let mut reply = vec![0; 16];
        socket.read_exact(&mut reply).unwrap();
        reply.resize(u32_at(&reply, 4) as usize, 0);
        socket.read_exact(&mut reply[16..]).unwrap();
        if reply[..4] != message[..4] {
            crossed.push(reply);
            continue;
        }
        assert_eq!(u32_at(&reply, 8), 1, "no error");
        if !write {
            bytes.copy_from_slice(&reply[32..]);
        }
        return crossed;
    }
}

#[derive(Clone, Copy, Default)]
struct Queue {
    base: u64,
    entries: u16,
    head: u16,
    tail: u16,
}

#[derive(Clone, Copy, Default)]
struct Pair {
    sq: Queue,
    cq: Queue,
    phase: bool,
    vector: Option<u16>,
}

/// What a turn did.
#[derive(Default)]
pub struct Done {
    pub vectors: Vec<u16>,
    /// I/O commands.
    pub commands: u64,
}

pub struct Controller {
    disk: Vec<u8>,
    cc: u32,
    aqa: u32,
    asq: u64,
    acq: u64,
    pairs: [Pair; QUEUES],
    reads: u64,
    damages: Option<u64>,
}

impl Controller {
    pub fn new(damages: Option<u64>) -> Self {
        let pairs = [Pair::default(); QUEUES];
        let disk = vec![0; DISK];
        Self { disk, cc: 0, aqa: 0, asq: 0, acq: 0, pairs, reads: 0, damages }
    }

    pub fn reset(&mut self) {
        (self.cc, self.aqa, self.asq, self.acq) = (0, 0, 0, 0);
        self.pairs = [Pair::default(); QUEUES];
    }

    /// A register.
    pub fn read(&self, offset: u64) -> u64 {
        match offset {
            0 => CAP,
            8 => 0x1_0400,
            0x14 => self.cc.into(),
            // Ready; shutdown complete.
            0x1c => u64::from(self.cc & 1) | if self.cc >> 14 & 3 != 0 { 2 << 2 } else { 0 },
            0x24 => self.aqa.into(),
            0x28 => self.asq,
            0x30 => self.acq,
            _ => 0,
        }
    }

    pub fn write(&mut self, offset: u64, length: usize, value: u64) {
        match (offset, length) {
            (0x14, 4) => {
                let was = std::mem::replace(&mut self.cc, value as u32);
                if was & 1 == 0 && value & 1 != 0 {
                    let queue = |base, entries: u32| Queue {
                        base,
                        entries: (entries & 0xfff) as u16 + 1,
                        ..Queue::default()
                    };
                    self.pairs[0] = Pair {
                        sq: queue(self.asq, self.aqa),
                        cq: queue(self.acq, self.aqa >> 16),
                        phase: true,
                        vector: Some(0),
                    };
                } else if was & 1 != 0 && value & 1 == 0 {
                    self.pairs = [Pair::default(); QUEUES];
                }
            }
            (0x24, 4) => self.aqa = value as u32,
            (0x28, 8) => self.asq = value,
            (0x30, 8) => self.acq = value,
            (0x0c | 0x10, 4) => {}
            other => panic!("a write of {other:x?}"),
        }
    }

    /// A doorbell, by its offset from the first.
    pub fn doorbell(&mut self, offset: u64, value: u32) {
        let (number, head) = ((offset / 16) as usize, offset / 8 % 2 == 1);
        let pair = &mut self.pairs[number];
        let queue = if head { &mut pair.cq } else { &mut pair.sq };
        assert!(value < u32::from(queue.entries), "queue {number}: {value}");
        if head { queue.head = value as u16 } else { queue.tail = value as u16 }
    }

    /// Carries out what was submitted.
    pub fn work(&mut self, dma: &mut Dma) -> Done {
        let mut done = Done::default();
        for number in 0..QUEUES {
            let mut signal = false;
            while let Some(command) = self.fetch(number, dma) {
                let (status, result) = match number {
                    0 => self.admin(&command, dma),
                    _ => self.io(&command, dma),
                };
                done.commands += u64::from(number > 0);
                self.complete(number, &command, (status, result), dma);
                signal = true;
            }
            done.vectors.extend(self.pairs[number].vector.filter(|_| signal));
        }
        done
    }

    fn fetch(&mut self, number: usize, dma: &mut Dma) -> Option<[u8; 64]> {
        let sq = &mut self.pairs[number].sq;
        if sq.head == sq.tail {
            return None;
        }
        let at = sq.base + u64::from(sq.head) * 64;
        sq.head = (sq.head + 1) % sq.entries;
        Some(dma.read(at))
    }

    fn complete(
        &mut self,
        number: usize,
        command: &[u8; 64],
        (status, result): (u16, u32),
        dma: &mut Dma,
    ) {
        let Pair { sq, cq, phase, .. } = &mut self.pairs[number];
        let at = cq.base + u64::from(cq.tail) * 16;
        let mut entry = [0; 16];
        entry[..4].copy_from_slice(&result.to_le_bytes());
        entry[8..10].copy_from_slice(&sq.head.to_le_bytes());
        entry[10..12].copy_from_slice(&(number as u16).to_le_bytes());
        entry[12..14].copy_from_slice(&command[2..4]);
        entry[14..].copy_from_slice(&(status << 1 | u16::from(*phase)).to_le_bytes());
        // The phase tag last.
        dma.access(true, at, &mut entry[..12]);
        dma.access(true, at + 12, &mut entry[12..]);
        cq.tail += 1;
        if cq.tail == cq.entries {
            (cq.tail, *phase) = (0, !*phase);
        }
    }

    fn admin(&mut self, command: &[u8; 64], dma: &mut Dma) -> (u16, u32) {
        let [cdw10, cdw11] = [40, 44].map(|at| u32_at(command, at));
        let (id, entries) = ((cdw10 & 0xffff) as usize, (cdw10 >> 16) as u16 + 1);
        let base = u64_at(command, 24);
        let queue = Queue { base, entries, ..Queue::default() };
        match command[0] {
            0x06 => (self.identify(cdw10, base, dma), 0),
            // Set Features (Number of Queues): those that there are.
            0x09 if cdw10 & 0xff == 7 => (0, (QUEUES as u32 - 2) << 16 | (QUEUES as u32 - 2)),
            0x05 if id < QUEUES => {
                let vector = (cdw11 & 2 != 0).then_some((cdw11 >> 16) as u16);
                self.pairs[id] = Pair { cq: queue, phase: true, vector, ..Pair::default() };
                (0, 0)
            }
            0x01 if id < QUEUES && cdw11 >> 16 == id as u32 => {
                self.pairs[id].sq = queue;
                (0, 0)
            }
            0x00 | 0x04 if id < QUEUES => {
                self.pairs[id].sq = Queue::default();
                (0, 0)
            }
            0x01 | 0x05 => (INVALID_FIELD, 0),
            _ => (INVALID_OPCODE, 0),
        }
    }

    fn identify(&self, cns: u32, to: u64, dma: &mut Dma) -> u16 {
        let mut data = [0; 4096];
        match cns & 0xff {
            // Namespace: size and capacity in blocks of 512 bytes.
            0 => {
                for at in [0, 8, 16] {
                    data[at..at + 8].copy_from_slice(&((DISK / BLOCK) as u64).to_le_bytes());
                }
                data[130] = 9;
            }
            // Controller: serial number, at most 64 KiB a command, one namespace.
            1 => {
                data[4..24].copy_from_slice(b"ANOTHER             ");
                data[77] = 4;
                (data[512], data[513], data[516]) = (0x66, 0x44, 1);
            }
            2 => data[0] = 1,
            _ => return INVALID_FIELD,
        }
        dma.access(true, to, &mut data);
        0
    }

    fn io(&mut self, command: &[u8; 64], dma: &mut Dma) -> (u16, u32) {
        let write = match command[0] {
            0 => return (0, 0),
            1 => true,
            2 => false,
            _ => return (INVALID_OPCODE, 0),
        };
        let start = u64_at(command, 40) as usize * BLOCK;
        let length = (u32_at(command, 48) as usize & 0xffff) * BLOCK + BLOCK;
        if start + length > DISK {
            return (OUT_OF_RANGE, 0);
        }
        let mut copy = self.disk[start..start + length].to_vec();
        if !write {
            self.reads += 1;
            if self.damages == Some(self.reads) {
                copy[7] ^= 0x10;
            }
        }
        let mut at = 0;
        for (address, bytes) in prps(command, length, dma) {
            dma.access(!write, address, &mut copy[at..at + bytes]);
            at += bytes;
        }
        if write {
            self.disk[start..start + length].copy_from_slice(&copy);
        }
        (0, 0)
    }
}

/// The pieces of memory of a command (section 4.3).
fn prps(command: &[u8; 64], length: usize, dma: &mut Dma) -> Vec<(u64, usize)> {
    let [first, second] = [24, 32].map(|at| u64_at(command, at));
    let mut pieces = vec![(first, length.min((PAGE - first % PAGE) as usize))];
    let mut left = length - pieces[0].1;
    if left > 0 && left as u64 <= PAGE {
        pieces.push((second, left));
        return pieces;
    }
    let mut list = second;
    while left > 0 {
        let bytes = left.min(PAGE as usize);
        pieces.push((u64::from_le_bytes(dma.read(list)), bytes));
        left -= bytes;
        list += 8;
    }
    pieces
}
