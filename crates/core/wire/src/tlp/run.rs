//! Runs: several packets as one [`Tlp`].
//!
//! The memory writes of a command's data differ only in address and length, the completions of a
//! read only in position and length, and push messages ([`crate::push`]) only in length. Receivers
//! that accept runs handle such packets together. On the wire, a frame always has the single
//! packets.

use super::{MemoryRequest, Packet, Status, Tlp, data_credits};
use bytes::{Buf, BufMut, Bytes};

/// The smallest payload of the first packet of a run, in bytes. Shorter packets, such as doorbells
/// and completion entries, stay separate.
const LEAST: usize = 64;

/// The division of a run's payload into packets, at least two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Payload of all packets in bytes.
    length: u32,
    /// Payload of the first packet in bytes; its header is the header of the run.
    first: u16,
    /// Payload in bytes of each packet except the first and the last; the last has at most as much.
    size: u16,
    /// Bytes in [`Tlp::data`] between the payloads of two packets: the received headers.
    gap: u8,
}

impl Run {
    /// A run of memory writes with `length` bytes. A packet has at most `size` bytes and ends at a
    /// multiple of `size`, except the last. `first` is the request of the first packet. `None` for
    /// a single packet, for partial double words, or across a multiple of 4 GiB, where headers
    /// differ.
    ///
    /// # Panics
    /// If `size` is not a power of two up to 4096.
    pub fn of_writes(first: &MemoryRequest, length: usize, size: usize) -> Option<Self> {
        let last = first.address.checked_add(length as u64)?.checked_sub(1)?;
        let run = Self::aligned(first.address, length, size)?;
        (first.is_whole() && first.address >> 32 == last >> 32).then_some(run)
    }

    /// A run of completions with `length` bytes from `address`; limits and panics as for
    /// [`of_writes`](Self::of_writes).
    pub fn of_completions(address: u64, length: usize, size: usize) -> Option<Self> {
        if address & 3 == 0 { Self::aligned(address, length, size) } else { None }
    }

    fn aligned(address: u64, length: usize, size: usize) -> Option<Self> {
        assert!(size.is_power_of_two() && size <= super::MAX_PAYLOAD, "packets of {size} bytes");
        let first = size - (address as usize & (size - 1));
        let run = Self { length: length as u32, first: first as u16, size: size as u16, gap: 0 };
        (length.is_multiple_of(4) && first >= LEAST && length > first).then_some(run)
    }

    /// Payload of the first packet in bytes.
    pub fn first(&self) -> usize {
        self.first.into()
    }

    /// Bytes between the payloads of two packets.
    pub fn gap(&self) -> usize {
        self.gap.into()
    }

    /// The run without its first packet; `None` if a single packet remains. The payload of this
    /// packet is all of [`Tlp::data`] after the gap.
    pub fn without_first(mut self) -> Option<Self> {
        self.length -= u32::from(self.first);
        self.first = self.length.min(self.size.into()) as u16;
        (self.length > u32::from(self.first)).then_some(self)
    }

    fn packets(&self) -> usize {
        1 + (self.length as usize - usize::from(self.first)).div_ceil(self.size.into())
    }

    /// Payload of the last packet in bytes.
    fn last(&self) -> usize {
        let behind = self.length as usize - usize::from(self.first);
        behind - (self.packets() - 2) * usize::from(self.size)
    }
}

impl Tlp {
    /// Number of packets: 1 without a run.
    pub fn packets(&self) -> usize {
        self.run.as_ref().map_or(1, Run::packets)
    }

    /// Payload in bytes, of all packets.
    pub fn payload(&self) -> usize {
        self.run.map_or(self.data.len(), |run| run.length as usize)
    }

    /// Payload in bytes of the first packet.
    pub fn first_payload(&self) -> usize {
        self.run.map_or(self.data.len(), |run| run.first.into())
    }

    /// Flow-control credits for the payloads of all packets.
    pub fn all_data_credits(&self) -> u32 {
        let Some(run) = self.run else { return self.data_credits() };
        let between = (run.packets() - 2) as u32 * data_credits(run.size.into());
        data_credits(run.first()) + between + data_credits(run.last())
    }

    /// Length on the wire in bytes of all packets.
    pub fn all_wire_length(&self) -> usize {
        let beside_payload = self.wire_length() - self.first_payload();
        self.packets() * beside_payload + self.payload()
    }

    /// The first packet, if this is a run.
    pub fn first_of_run(&self) -> Option<Self> {
        let run = self.run?;
        Some(Self { data: self.data.slice(..usize::from(run.first)), run: None, ..self.clone() })
    }

    /// Removes the first packets of a run; at least one stays.
    ///
    /// # Panics
    /// If the run does not have more than `packets` packets.
    pub fn remove_packets(&mut self, packets: usize) {
        let Some(run) = self.run.filter(|run| (1..run.packets()).contains(&packets)) else {
            assert_eq!(packets, 0, "packets to remove of {}", self.packets());
            return;
        };
        let removed = run.first() + (packets - 1) * usize::from(run.size);
        self.data.advance(removed + packets * run.gap());
        let length = run.length - removed as u32;
        let first = length.min(run.size.into()) as u16;
        self.run = (length > first.into()).then_some(Run { length, first, ..run });
        match &mut self.packet {
            Packet::MemoryWrite(request) => {
                request.address += removed as u64;
                request.length_dw = first / 4;
                request.last_be = if first == 4 { 0 } else { 0xf };
            }
            Packet::Completion(completion) => {
                completion.byte_count -= removed as u16;
                completion.lower_address =
                    completion.lower_address.wrapping_add(removed as u8) & 0x7f;
            }
            _ => {}
        }
    }

    /// The packets, each as a separate [`Tlp`].
    pub fn singles(self) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let run = rest.as_mut()?;
            match run.first_of_run() {
                None => rest.take(),
                first => {
                    run.remove_packets(1);
                    first
                }
            }
        })
    }

    /// The payloads of the packets in bytes.
    pub fn payloads(&self) -> impl Iterator<Item = usize> {
        let (mut first, mut rest) = (Some(self.first_payload()), self.run);
        std::iter::from_fn(move || {
            let payload = first.take()?;
            if let Some(run) = rest {
                rest = run.without_first();
                let left = run.length as usize - run.first();
                first = Some(rest.map_or(left, |rest| rest.first()));
            }
            Some(payload)
        })
    }

    /// The lengths of the packets on the wire in bytes.
    pub fn wire_lengths(&self) -> impl Iterator<Item = usize> {
        let beside_payload = self.wire_length() - self.first_payload();
        self.payloads().map(move |payload| beside_payload + payload)
    }

    /// The payload of each packet.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let (gap, mut at) = (self.run.map_or(0, |run| run.gap()), 0);
        self.payloads().map(move |payload| {
            let piece = &self.data[at..at + payload];
            at += payload + gap;
            piece
        })
    }

    /// Whether this packet continues `previous`, so that a run may have both. The previous packet may
    /// itself continue a run.
    pub fn continues(&self, previous: &Self) -> bool {
        let (length, payload) = (previous.data.len(), self.data.len());
        let headers = Headers::from_tlp(previous).filter(|_| length >= LEAST);
        headers.is_some_and(|headers| {
            let end = headers.length;
            headers.admits(length, payload)
                && self.header_length() == end
                && headers.at(length, payload)[..end] == self.header()[..end]
        })
    }

    /// Appends the bytes of the first `packets` packets.
    pub fn encode_packets(&self, packets: usize, out: &mut impl BufMut) {
        let Some(headers) = self.run.and_then(|_| Headers::from_tlp(self)) else {
            return if packets > 0 {
                self.encode(out)
            };
        };
        let mut offset = 0;
        for piece in self.pieces().take(packets) {
            out.put_slice(&headers.at(offset, piece.len())[..headers.length]);
            out.put_slice(piece);
            offset += piece.len();
        }
    }

    /// Makes a run of this packet and of the packets in `behind` that continue it; removes these
    /// packets from `behind`. `whole` ends with the payload of this packet and `behind`. A packet
    /// with a payload above `max_payload` bytes does not join the run.
    pub fn extend_run(&mut self, whole: &Bytes, behind: &mut Bytes, max_payload: usize) {
        let first = self.data.len();
        let Some(headers) = Headers::from_tlp(self).filter(|_| first >= LEAST) else { return };
        let gap = headers.length;
        let (mut length, mut size, mut at) = (first, 0, 0);
        while let Some(next) = behind.get(at..at + gap) {
            let bytes = match u16::from_be_bytes([next[2], next[3]]) & 0x3ff {
                0 => 4096,
                double_words => usize::from(double_words) * 4,
            };
            let fits = bytes <= max_payload && (size == 0 || bytes <= size);
            let whole = behind.len() >= at + gap + bytes && headers.admits(length, bytes);
            if !fits || !whole || headers.at(length, bytes)[..gap] != *next {
                break;
            }
            size = if size == 0 { bytes } else { size };
            (length, at) = (length + bytes, at + gap + bytes);
            if bytes < size {
                break;
            }
        }
        if size == 0 {
            return;
        }
        let begin = whole.len() - behind.len() - first;
        behind.advance(at);
        self.data = whole.slice(begin..begin + first + at);
        let (length, first, size, gap) = (length as u32, first as u16, size as u16, gap as u8);
        self.run = Some(Run { length, first, size, gap });
    }
}

/// The headers of the packets of a run.
struct Headers {
    first: [u8; 16],
    length: usize,
    packet: Packet,
}

impl Headers {
    /// `None` if the packet cannot begin a run.
    fn from_tlp(tlp: &Tlp) -> Option<Self> {
        let may = match tlp.packet {
            Packet::MemoryWrite(r) => r.is_whole(),
            Packet::Message(_) => crate::push::is_push(tlp),
            Packet::Completion(c) => c.status == Status::Success && c.lower_address & 3 == 0,
            _ => false,
        };
        let plain = may && !tlp.digest && !tlp.poisoned;
        let (length, packet) = (tlp.header_length(), tlp.packet);
        plain.then(|| Self { first: tlp.header(), length, packet })
    }

    /// Whether the run may have a packet with `payload` bytes at `offset` bytes after the run's
    /// first byte.
    fn admits(&self, offset: usize, payload: usize) -> bool {
        match self.packet {
            Packet::MemoryWrite(r) => {
                let address = r.address.saturating_add(offset as u64);
                address >> 32 == r.address >> 32 && (address & 0xfff) as usize + payload <= 4096
            }
            Packet::Completion(c) => usize::from(c.byte_count) > offset,
            _ => true,
        }
    }

    /// The header of the packet with `payload` bytes at `offset` bytes after the run's first byte.
    fn at(&self, offset: usize, payload: usize) -> [u8; 16] {
        let mut header = self.first;
        let [high, low] = ((payload / 4) as u16 & 0x3ff).to_be_bytes();
        (header[2], header[3]) = (header[2] & !3 | high, low);
        match self.packet {
            Packet::MemoryWrite(r) => {
                // No run crosses 4 GiB.
                let low = (r.address as u32).wrapping_add(offset as u32).to_be_bytes();
                header[self.length - 4..self.length].copy_from_slice(&low);
                header[7] = if payload == 4 { 0x0f } else { 0xff };
            }
            Packet::Completion(c) => {
                let [high, low] = (c.byte_count.wrapping_sub(offset as u16) & 0xfff).to_be_bytes();
                (header[6], header[7]) = (header[6] & !0xf | high, low);
                header[11] = c.lower_address.wrapping_add(offset as u8) & 0x7f;
            }
            _ => {}
        }
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoded;
    use crate::id::{Bdf, Tag};
    use proptest::prelude::*;

    fn request(address: u64, length: usize) -> MemoryRequest {
        MemoryRequest::for_bytes(Bdf::new(3, 0, 0), Tag::default(), address, length).unwrap()
    }

    /// Writes that often continue the previous one, mixed with others.
    fn packets() -> impl Strategy<Value = Vec<Tlp>> {
        let packet = (0..8u8, prop::sample::select(vec![4, 16, 64, 128, 256, 256, 256]));
        (prop::sample::select(vec![0x1000u64, 0x1f80, 0xffff_ff00, 0x1_0000_0040]))
            .prop_flat_map(move |start| (Just(start), prop::collection::vec(packet.clone(), 1..20)))
            .prop_map(|(mut at, packets)| {
                let one = |(number, (kind, length)): (usize, (u8, usize))| {
                    let address = if kind == 0 { 0x4000 } else { at };
                    let length = length.min(4096 - (address & 0xfff) as usize);
                    let bytes = Bytes::from(vec![number as u8; length]);
                    at = address + length as u64;
                    let mut tlp = Tlp::memory_write(request(address, length), bytes);
                    tlp.digest = kind == 1;
                    tlp.attributes.relaxed = kind == 2;
                    tlp
                };
                packets.into_iter().enumerate().map(one).collect()
            })
    }

    proptest! {
        #[test]
        fn a_run_is_its_packets(
            address in (0u64..0x4000).prop_map(|word| word * 4),
            words in 1usize..3000,
            shift in 7u32..=12,
        ) {
            let (size, data) = (1usize << shift, Bytes::from_iter((0..words * 4).map(|i| i as u8)));
            let first = data.len().min(size - (address as usize & (size - 1)));
            let write = request(address, first);
            let run = Run::of_writes(&write, data.len(), size);
            prop_assert_eq!(run.is_some(), first >= LEAST && data.len() > first);
            let Some(run) = run else { return Ok(()) };
            let run = Tlp { run: Some(run), ..Tlp::memory_write(write, data.clone()) };
            let (packets, payload) = (run.packets(), run.payload());
            let (credits, wire) = (run.all_data_credits(), run.all_wire_length());
            let together = encoded(|out| run.encode_packets(packets, out));
            let singles: Vec<Tlp> = run.singles().collect();
            prop_assert_eq!((packets, payload), (singles.len(), data.len()));
            prop_assert_eq!(credits, singles.iter().map(Tlp::data_credits).sum::<u32>());
            prop_assert_eq!(wire, singles.iter().map(Tlp::wire_length).sum::<usize>());
            let encoded_singly = encoded(|out| singles.iter().for_each(|tlp| tlp.encode(out)));
            prop_assert_eq!(together, encoded_singly);
            let (mut at, mut rest) = (address, data);
            for single in singles {
                let length = rest.len().min(size - (at as usize & (size - 1)));
                let bytes = rest.split_to(length);
                prop_assert_eq!(single, Tlp::memory_write(request(at, length), bytes));
                at += length as u64;
            }
        }

        #[test]
        fn received_runs_are_the_packets_of_the_frame(packets in packets(), cut in 0usize..300) {
            let mut bytes = encoded(|out| packets.iter().for_each(|tlp| tlp.encode(out)));
            bytes.truncate(bytes.len() - cut.min(bytes.len() / 2) / 4 * 4);
            let whole = Bytes::from(bytes);
            let decode = |runs: bool| {
                let (mut rest, mut all) = (whole.clone(), Vec::new());
                while !rest.is_empty() {
                    let Ok(mut tlp) = Tlp::decode(&mut rest) else { break };
                    if runs {
                        tlp.extend_run(&whole, &mut rest, 256);
                    }
                    let singles: Vec<Tlp> = tlp.clone().singles().collect();
                    assert_eq!((tlp.packets(), tlp.payload()), (singles.len(), singles.iter().map(Tlp::payload).sum()));
                    all.extend(singles);
                }
                all
            };
            prop_assert_eq!(decode(true), decode(false));
        }
    }

    #[test]
    fn completions_of_a_read_are_one_run() {
        for (address, length) in [(0x1080, 4096 - 0x80), (0x1000, 4094), (0x1041, 1000)] {
            let read = request(address, length);
            let completions: Vec<Tlp> = (0..length)
                .step_by(256)
                .map(|at| {
                    let completion = read.completion(Bdf::default(), Status::Success, length - at);
                    let payload =
                        Bytes::from(vec![at as u8; (length - at).min(256).next_multiple_of(4)]);
                    Tlp { data: payload, ..Tlp::completion(completion) }
                })
                .collect();
            let bytes =
                Bytes::from(encoded(|out| completions.iter().for_each(|tlp| tlp.encode(out))));
            let mut rest = bytes.clone();
            let mut first = Tlp::decode(&mut rest).unwrap();
            first.extend_run(&bytes, &mut rest, 256);
            assert_eq!(rest.is_empty(), address & 3 == 0);
            assert_eq!(
                encoded(|out| first.encode_packets(first.packets(), out)),
                bytes[..bytes.len() - rest.len()]
            );
            let singles: Vec<Tlp> = first.singles().collect();
            assert_eq!(singles, completions[..singles.len()]);
        }
    }

    #[test]
    fn a_frame_of_data_is_one_run() {
        let write = request(0x1000, 256);
        let run = Run::of_writes(&write, 4096, 256);
        let run = Tlp { run, ..Tlp::memory_write(write, vec![7; 4096].into()) };
        let bytes = encoded(|out| run.clone().singles().for_each(|single| single.encode(out)));
        let mut rest = Bytes::from(bytes);
        let whole = rest.clone();
        let mut first = Tlp::decode(&mut rest).unwrap();
        first.extend_run(&whole, &mut rest, 256);
        assert!(rest.is_empty());
        assert_eq!((first.packets(), first.payload()), (16, 4096));
        assert_eq!(first.all_wire_length(), whole.len());
    }
}
