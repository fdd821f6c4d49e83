//! Capture files for Wireshark: pcapng (IETF draft-ietf-opsawg-pcapng), with three kinds of blocks:
//! the section header, interface descriptions and enhanced packets. Little-endian, times in
//! nanoseconds.
//!
//! A file is a [`Section`], then each [`Interface`] (numbered from 0 in the
//! order of their blocks), then [`Packet`]s.

#[cfg(test)]
mod tests;

use bytes::BufMut;

/// Link types (`LINKTYPE_` of the registry that the draft refers to).
pub mod link_type {
    /// LINKTYPE_ETHERNET.
    pub const ETHERNET: u16 = 1;
    /// LINKTYPE_USER0, for private use; tcpdump and libpcap call it DLT_USER0.
    pub const USER0: u16 = 147;
    /// LINKTYPE_ETHERNET_MPACKET: mPackets of IEEE 802.3br (IEEE 802.3-2022, figure 99-4), from the
    /// preamble to the CRC.
    pub const ETHERNET_MPACKET: u16 = 274;
}

// Block types (section 4 of the draft).
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// Identifies the byte order of the section (section 4.1).
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

// Options (sections 3.5, 4.1, 4.2 and 4.3).
const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// The direction of a packet, from the view of the interface (section 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received: 01b.
    Inbound = 1,
    /// Sent: 10b.
    Outbound = 2,
}

/// The first block of a file (section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section<'a> {
    /// The program that wrote the file; empty for none.
    pub application: &'a str,
    /// A comment; empty for none.
    pub comment: &'a str,
}

/// An interface where packets were captured (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Link type of the packets, see [`link_type`].
    pub link_type: u16,
    /// A short name; empty for none.
    pub name: &'a str,
    /// A description; empty for none.
    pub description: &'a str,
}

/// A packet (section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The number of the interface that captured the packet.
    pub interface: u32,
    /// Time in nanoseconds since 1970-01-01 00:00 UTC.
    pub at_ns: u64,
    /// The direction, if known.
    pub direction: Option<Direction>,
    /// The bytes of the packet, or only the first ones.
    pub data: &'a [u8],
    /// Number of further bytes that were not kept.
    pub cut: u32,
    /// A comment on the packet; empty for none.
    pub comment: &'a str,
}

impl Section<'_> {
    /// Appends the block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        block(out, SECTION_HEADER, |out| {
            out.put_u32_le(BYTE_ORDER_MAGIC);
            // Version 1.0; the section is as long as the file.
            out.put_u16_le(1);
            out.put_u16_le(0);
            out.put_i64_le(-1);
            let mut options = Options::new(out);
            options.text(OPT_COMMENT, self.comment);
            options.text(SHB_USERAPPL, self.application);
            options.end();
        });
    }
}

impl Interface<'_> {
    /// Appends the block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        block(out, INTERFACE_DESCRIPTION, |out| {
            out.put_u16_le(self.link_type);
            out.put_u16_le(0);
            // Snap length 0: no limit.
            out.put_u32_le(0);
            let mut options = Options::new(out);
            options.text(IF_NAME, self.name);
            options.text(IF_DESCRIPTION, self.description);
            // Times are in units of 10^-9 s.
            options.bytes(IF_TSRESOL, &[9]);
            options.end();
        });
    }
}

impl Packet<'_> {
    /// Appends the block.
    ///
    /// # Panics
    /// If the packet has 4 GiB or more.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let length = u32::try_from(self.data.len()).expect("a packet below 4 GiB");
        block(out, ENHANCED_PACKET, |out| {
            out.put_u32_le(self.interface);
            out.put_u32_le((self.at_ns >> 32) as u32);
            out.put_u32_le(self.at_ns as u32);
            // Captured length, original length.
            out.put_u32_le(length);
            out.put_u32_le(length.saturating_add(self.cut));
            out.put_slice(self.data);
            pad(out, self.data.len());
            let mut options = Options::new(out);
            options.text(OPT_COMMENT, self.comment);
            if let Some(direction) = self.direction {
                options.bytes(EPB_FLAGS, &(direction as u32).to_le_bytes());
            }
            options.end();
        });
    }
}

/// A block (section 3.1): type, length, body, length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.put_u32_le(kind);
    out.put_u32_le(0);
    body(out);
    let length = u32::try_from(out.len() - start + 4).expect("a block below 4 GiB");
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    out.put_u32_le(length);
}

/// Pads to 32 bits.
fn pad(out: &mut Vec<u8>, length: usize) {
    out.put_bytes(0, length.next_multiple_of(4) - length);
}

/// The options of a block (section 3.5).
struct Options<'a> {
    out: &'a mut Vec<u8>,
    any: bool,
}

impl<'a> Options<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, any: false }
    }

    /// Appends a text, unless it is empty; truncated at 65 535 bytes.
    fn text(&mut self, code: u16, text: &str) {
        if !text.is_empty() {
            let most = text.len().min(usize::from(u16::MAX));
            let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            self.bytes(code, &text.as_bytes()[..end]);
        }
    }

    fn bytes(&mut self, code: u16, value: &[u8]) {
        self.out.put_u16_le(code);
        self.out.put_u16_le(value.len() as u16);
        self.out.put_slice(value);
        pad(self.out, value.len());
        self.any = true;
    }

    fn end(self) {
        if self.any {
            self.out.put_u16_le(OPT_END);
            self.out.put_u16_le(0);
        }
    }
}
