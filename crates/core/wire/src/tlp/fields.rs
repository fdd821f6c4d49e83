//! The fields of TLP headers as validated values.

use crate::id::{Bdf, Tag};

/// The three classes of flow control and ordering (PCIe Base 4.0, 2.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Memory writes and messages.
    Posted,
    /// Requests that need a completion: reads and configuration writes.
    NonPosted,
    /// Completions of non-posted requests.
    Completion,
}

impl Class {
    /// All classes, in the order of [`index`](Self::index).
    pub const ALL: [Self; 3] = [Self::Posted, Self::NonPosted, Self::Completion];

    /// 0, 1 or 2: an index for tables of three.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// `Attr[2:0]` (PCIe Base 4.0, section 2.2.6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes {
    /// `Attr[0]`, no snoop.
    pub no_snoop: bool,
    /// `Attr[1]`, relaxed ordering.
    pub relaxed: bool,
    /// `Attr[2]`, ID-based ordering.
    pub id_based: bool,
}

impl Attributes {
    /// Decodes `Attr[2:0]`; ignores higher bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self { no_snoop: bits & 1 != 0, relaxed: bits & 2 != 0, id_based: bits & 4 != 0 }
    }

    /// Encodes the attributes as three bits.
    pub const fn bits(self) -> u8 {
        self.no_snoop as u8 | (self.relaxed as u8) << 1 | (self.id_based as u8) << 2
    }
}

/// Header fields of a memory read or write (PCIe Base 4.0, section 2.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryRequest {
    /// Requester ID.
    pub requester: Bdf,
    /// Transaction tag; without meaning for writes.
    pub tag: Tag,
    /// Address of the first double word, a multiple of 4. Below 4 GiB the
    /// 3 DW header is used, as the specification demands.
    pub address: u64,
    /// Length in double words, 1 to 1024.
    pub length_dw: u16,
    /// Byte enables of the first double word.
    pub first_be: u8,
    /// Byte enables of the last double word; 0 if there is only one.
    pub last_be: u8,
}

impl MemoryRequest {
    /// A request for `length` bytes from the byte `address`, with matching byte enables. `None` if
    /// it is empty, longer than 4096 bytes, crosses a 4 KiB boundary or wraps.
    pub fn for_bytes(requester: Bdf, tag: Tag, address: u64, length: usize) -> Option<Self> {
        if length == 0 || length > super::MAX_PAYLOAD {
            return None;
        }
        let last = address.checked_add(length as u64 - 1)?;
        if address >> 12 != last >> 12 {
            return None;
        }
        let start = address & !3;
        let length_dw = ((last - start) / 4 + 1) as u16;
        let head = 0xf << (address & 3) & 0xf;
        let tail = 0xf >> (3 - (last & 3));
        let (first_be, last_be) = if length_dw == 1 { (head & tail, 0) } else { (head, tail) };
        Some(Self { requester, tag, address: start, length_dw, first_be, last_be })
    }

    /// Whether all bytes of all double words are enabled.
    pub fn is_whole(&self) -> bool {
        self.first_be == 0xf && (self.length_dw == 1 || self.last_be == 0xf)
    }

    /// Length in bytes of all double words touched.
    pub fn length(&self) -> usize {
        usize::from(self.length_dw) * 4
    }

    /// Number of disabled bytes before the first enabled byte; 0 for a zero-length read, which
    /// enables no byte.
    pub fn leading(&self) -> usize {
        if self.first_be == 0 { 0 } else { self.first_be.trailing_zeros() as usize }
    }

    /// Address of the first enabled byte.
    pub fn first_byte(&self) -> u64 {
        self.address + self.leading() as u64
    }

    /// Number of bytes from the first to the last enabled byte: the byte count of the first
    /// completion (PCIe Base 4.0, table 2-37). A zero-length read counts as 1 byte.
    pub fn byte_count(&self) -> usize {
        let trailing = |be: u8| (be.leading_zeros() as usize).saturating_sub(4);
        if self.length_dw == 1 {
            match self.first_be {
                0 => 1,
                be => 4 - trailing(be) - self.leading(),
            }
        } else {
            let last = if self.last_be == 0 { 4 } else { trailing(self.last_be) };
            self.length() - self.leading() - last
        }
    }

    /// A completion of this read. `left` is the number of bytes that remain, the bytes of this
    /// completion included.
    pub fn completion(&self, completer: Bdf, status: Status, left: usize) -> Completion {
        let at = self.first_byte() + (self.byte_count() - left) as u64;
        Completion {
            completer,
            requester: self.requester,
            tag: self.tag,
            status,
            byte_count: left as u16,
            lower_address: at as u8 & 0x7f,
            byte_count_modified: false,
        }
    }
}

/// The type of a configuration request (PCIe Base 4.0, section 2.2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigKind {
    /// For the device on this link.
    Type0,
    /// For a bus further down: routed by ID.
    Type1,
}

/// Header fields of a configuration request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConfigRequest {
    /// Type 0 or type 1.
    pub kind: ConfigKind,
    /// Requester ID.
    pub requester: Bdf,
    /// Transaction tag.
    pub tag: Tag,
    /// Target ID.
    pub target: Bdf,
    /// Byte offset of the double word, a multiple of 4, 0 to 4092.
    pub register: u16,
    /// Byte enables.
    pub first_be: u8,
}

impl ConfigRequest {
    /// A request of `requester` for all four bytes of a register, with tag 0.
    pub fn whole(kind: ConfigKind, requester: Bdf, target: Bdf, register: u16) -> Self {
        Self { kind, requester, tag: Tag::default(), target, register, first_be: 0xf }
    }

    /// The completion of this request.
    pub fn completion(&self, completer: Bdf, status: Status) -> Completion {
        let Self { requester, tag, .. } = *self;
        let (byte_count, lower_address, byte_count_modified) = (4, 0, false);
        Completion {
            completer,
            requester,
            tag,
            status,
            byte_count,
            lower_address,
            byte_count_modified,
        }
    }
}

numbers! {
    /// Completion status (PCIe Base 4.0, table 2-34).
    pub enum Status: 7 {
        /// SC, 000b.
        Success = 0,
        /// UR, 001b.
        UnsupportedRequest = 1,
        /// CRS, 010b.
        ConfigRetry = 2,
        /// CA, 100b.
        CompleterAbort = 4,
    } else {
        /// A reserved code; a requester treats it as Unsupported Request (section 2.3.2).
        Reserved
    }
}

/// Header fields of a completion (PCIe Base 4.0, section 2.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// Completer ID.
    pub completer: Bdf,
    /// Requester ID, by which completions are routed.
    pub requester: Bdf,
    /// The tag of the request.
    pub tag: Tag,
    /// Completion status.
    pub status: Status,
    /// Bytes that remain for the request, the bytes of this completion included: 1 to 4096.
    pub byte_count: u16,
    /// Low 7 bits of the address of the first enabled byte in this completion.
    pub lower_address: u8,
    /// BCM, set only by PCI-X completers.
    pub byte_count_modified: bool,
}

impl Completion {
    /// Whether a completion with `payload` bytes is the last for its request.
    pub fn ends(&self, payload: usize) -> bool {
        let brought = payload.saturating_sub(usize::from(self.lower_address & 3));
        self.status != Status::Success || payload == 0 || brought >= usize::from(self.byte_count)
    }
}

numbers! {
    /// Routing of a message (PCIe Base 4.0, table 2-18).
    pub enum Routing: 7 {
        /// 000b, implicitly to the root complex.
        ToRootComplex = 0,
        /// 001b, by the address in the message body.
        ByAddress = 1,
        /// 010b, by the ID in the message body.
        ById = 2,
        /// 011b, from the root complex to all functions.
        Broadcast = 3,
        /// 100b, ends at the receiver of this link.
        Local = 4,
        /// 101b, gathered from all downstream ports.
        Gathered = 5,
    } else {
        /// A reserved code, ends at the receiver.
        Reserved
    }
}

/// Header fields of a message (PCIe Base 4.0, section 2.2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Requester ID.
    pub requester: Bdf,
    /// The tag field, which has no meaning for messages but is preserved.
    pub tag: Tag,
    /// Routing of the message.
    pub routing: Routing,
    /// Message code, see [`message_code`].
    pub code: u8,
    /// Bytes 8 to 15 of the header: address, target ID or vendor-defined.
    pub body: [u8; 8],
}

/// Message codes (PCIe Base 4.0, section 2.2.8, tables 2-19 to 2-27).
pub mod message_code {
    /// Assert_INTA. Assert_INTB to Assert_INTD have the next three codes.
    pub const ASSERT_INTA: u8 = 0x20;
    /// Deassert_INTA. Deassert_INTB to Deassert_INTD have the next three codes.
    pub const DEASSERT_INTA: u8 = 0x24;
    /// Vendor_Defined type 1.
    pub const VENDOR_TYPE_1: u8 = 0x7f;
}
