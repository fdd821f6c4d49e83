//! Captures: pcap and pcapng.

use super::Packet;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use sim::ethernet::frame::{FCS, TAG};
use std::fs::File;

/// The longest block; link layers have packets of at most 256 KiB.
const BUFFER: usize = 1 << 19;

const PS: u128 = 1_000_000_000_000;

/// The EtherTypes of tags (IEEE 802.1Q-2022, table 9-1).
const TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// Whether a file that begins with these bytes is a capture.
pub fn is_capture(magic: &[u8]) -> bool {
    let Ok(magic) = magic.try_into().map(u32::from_be_bytes) else { return false };
    let pcap = [0xa1b2_c3d4, 0xa1b2_3c4d];
    magic == 0x0a0d_0d0a || pcap.contains(&magic) || pcap.contains(&magic.swap_bytes())
}

/// Where packets were captured.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: Linktype,
    /// Units of time per second; `None`: too many.
    resolution: Option<u64>,
    /// Added to times, in seconds.
    offset: i64,
}

#[derive(Default)]
struct Blocks {
    interfaces: Vec<Interface>,
    count: u64,
}

/// Returns the packets of a capture.
pub fn packets(file: File) -> Result<impl Iterator<Item = Result<Packet, String>> + use<>, String> {
    let mut reader = create_reader(BUFFER, file).map_err(text)?;
    let mut blocks = Blocks::default();
    Ok(std::iter::from_fn(move || next(reader.as_mut(), &mut blocks).transpose()))
}

fn text(error: PcapError<&[u8]>) -> String {
    match error {
        PcapError::UnexpectedEof | PcapError::Incomplete(_) => "the file ends in a block".into(),
        PcapError::BufferTooSmall => format!("a block of {BUFFER} bytes or more"),
        PcapError::ReadError => "cannot be read".to_owned(),
        _ => "not a valid capture".to_owned(),
    }
}

fn next(
    reader: &mut dyn PcapReaderIterator,
    blocks: &mut Blocks,
) -> Result<Option<Packet>, String> {
    loop {
        let behind = |count: u64, why: String| format!("after packet {count}: {why}");
        match reader.next() {
            Ok((length, block)) => {
                let packet = blocks.packet(&block);
                reader.consume(length);
                if let Some(packet) = packet.transpose() {
                    return packet.map(Some);
                }
            }
            Err(PcapError::Eof) => return Ok(None),
            Err(PcapError::Incomplete(_)) => {
                reader.refill().map_err(|error| behind(blocks.count, text(error)))?;
            }
            Err(error) => return Err(behind(blocks.count, text(error))),
        }
    }
}

impl Blocks {
    /// The packet in a block, if it has one.
    fn packet(&mut self, block: &PcapBlockOwned<'_>) -> Result<Option<Packet>, String> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let resolution = if header.is_nanosecond_precision() { 1e9 } else { 1e6 } as u64;
                self.interfaces.push(Interface {
                    link_type: header.network,
                    resolution: Some(resolution),
                    offset: 0,
                });
            }
            PcapBlockOwned::Legacy(packet) => {
                let resolution = self.interfaces[0].resolution.unwrap_or(1);
                let ticks = u64::from(packet.ts_sec) * resolution + u64::from(packet.ts_usec);
                return self.captured(0, ticks, packet.origlen, packet.data).map(Some);
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                self.interfaces.push(Interface {
                    link_type: interface.linktype,
                    resolution: interface.ts_resolution(),
                    offset: interface.ts_offset(),
                });
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let interface = packet.if_id as usize;
                return self.captured(interface, ticks, packet.origlen, packet.data).map(Some);
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                return Err(format!("packet {}: without a time", self.count + 1));
            }
            PcapBlockOwned::NG(_) => {}
        }
        Ok(None)
    }

    fn captured(
        &mut self,
        interface: usize,
        ticks: u64,
        length: u32,
        data: &[u8],
    ) -> Result<Packet, String> {
        self.count += 1;
        let place = format!("packet {}", self.count);
        let Some(interface) = self.interfaces.get(interface) else {
            return Err(format!("{place}: of interface {interface}, which has no block before"));
        };
        if interface.link_type != Linktype::ETHERNET {
            let found = interface.link_type.0;
            return Err(format!("{place}: link type {found}: expected Ethernet (1)"));
        }
        let at = interface.resolution.filter(|resolution| *resolution > 0).and_then(|resolution| {
            let at = u128::from(ticks) * PS / u128::from(resolution);
            at.checked_add_signed(i128::from(interface.offset) * PS as i128)
        });
        let at = at.ok_or_else(|| format!("{place}: without a valid time"))?;
        let tag = match data.get(12..14).is_some_and(|kind| TAGS.iter().any(|tag| tag == kind)) {
            true => TAG,
            false => 0,
        };
        let length = (u64::from(length) + FCS as u64).saturating_sub(tag as u64);
        Ok(Packet { place, at, length })
    }
}
