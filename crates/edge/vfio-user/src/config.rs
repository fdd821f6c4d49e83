//! Configuration space as the VMM sees it: the far function's configuration space, except for bits
//! that belong to the host node.
//!
//! Every bit is either *far* (read from and written to the function across the network) or
//! *shadowed* (stored in this module). The shadowed bits are those of Linux
//! (`drivers/vfio/pci/vfio_pci_config.c`), for the same reasons:
//!
//! - the BARs: the VMM reads the sizes and writes its own addresses; the far BARs keep the
//!   addresses of the host node's hierarchy. There is no expansion ROM;
//! - memory and I/O space enable: the far function stays enabled. The shadow returns the written
//!   bits, which have no other effect: a VMM itself hides disabled BARs from the guest, and SPDK
//!   does not set the memory space bit before it uses BAR 0;
//! - interrupt line, built-in self test, the multi-function bit;
//! - the interrupt pin, which is constant, even for an absent function (see [`Config::absent`]);
//! - MSI-X message control, because the MSI-X capability of the far function belongs to the host
//!   node;
//! - in the PCI Express capability: the payload and request sizes, extended tags, phantom functions
//!   and 10-bit tags, which the host node configured for the far hierarchy; and Initiate Function
//!   Level Reset, which becomes a reset by the host node;
//! - the power state, because a function in D3 would lose its BARs without notice to the host node.
//!
//! MSI is removed from the capability list; the client uses MSI-X or INTx. Extended capabilities
//! that change the routing or the size of the function (SR-IOV, ARI, ATS, PRI, PASID, multicast,
//! resizable BARs) read as null capabilities. The contents capability, which belongs to the host
//! node, also reads as a null capability.

use pcie::config::contents::{self, ContentsCapability};
use pcie::config::{capability, command, register};
use pcie::enumerate::Bar;

// Byte offsets of registers of a type 0 header (PCI Express Base 4.0, section 7.5.1). The crate
// `pcie` does not define all of them.
const BIST: usize = 0x0f;
const ROM: usize = 0x30;
const COMMAND: usize = register::COMMAND as usize;
const BAR0: usize = register::BAR0 as usize;
const INTERRUPT_PIN: usize = register::INTERRUPT_PIN as usize;
const COMMAND_SPACES: u8 = 0x03;
const STATUS_CAPABILITIES: u8 = 0x10;
/// Capability ID of MSI (PCI Code and ID Assignment, section 2).
const CAP_MSI: u8 = 0x05;
const EXTENDED: usize = 0x100;
const EXTENDED_HIDDEN: [u16; 8] = [0x0e, 0x0f, 0x10, 0x12, 0x13, 0x15, 0x1b, 0x24];
/// The number of capabilities after which a list counts as circular.
const CAP_LIMIT: usize = 48;

/// Size of configuration space in bytes.
const CONFIG_SIZE: usize = 4096;

/// An endpoint that the host node offers to a VMM, as the host node enumerated it.
#[derive(Clone, Debug)]
pub struct EndpointInfo {
    /// Configuration space of the function, read after the host node has set the BARs, the payload
    /// size and memory-space enable of the far hierarchy. The capabilities are found in this copy.
    /// Each read by the VMM reads far bits from the function again.
    pub config: Box<[u8; CONFIG_SIZE]>,
    /// The BARs. A 64-bit BAR is at the lower one of its two indexes.
    pub bars: [Option<Bar>; 6],
    /// Whether a client may map the page with the doorbells (`--mmap-doorbells`): stores to the
    /// page reach the endpoint as writes of double words.
    pub doorbells: bool,
}

/// Whether the capability at byte `at` is the contents capability, which belongs to the host node.
/// If a VMM wrote the owner field, an earlier use by another host would not be noticed.
fn is_contents(config: &[u8; CONFIG_SIZE], at: usize) -> bool {
    let bytes = |at: usize, length| config.get(at..at + length);
    bytes(0, 2) == Some(&contents::VENDOR.to_le_bytes()[..])
        && bytes(at, 2) == Some(&capability::EXT_VENDOR_SPECIFIC.to_le_bytes()[..])
        && bytes(at + usize::from(ContentsCapability::HEADER), 4)
            == Some(&ContentsCapability::HEADER_VALUE.to_le_bytes()[..])
}

fn dword(config: &[u8; CONFIG_SIZE], at: usize) -> u32 {
    u32::from_le_bytes([config[at], config[at + 1], config[at + 2], config[at + 3]])
}

/// A write to the far function: `size` bytes at `offset`, within a double word, little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteWrite {
    /// Byte offset.
    pub offset: u16,
    /// Number of bytes, 1 to 4.
    pub size: u8,
    /// The value to write.
    pub value: u32,
}

/// The effect of a write by the VMM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteEffect {
    /// Writes to the far function, in order: at most two.
    pub far: Vec<RemoteWrite>,
    /// Whether a function-level reset was requested.
    pub reset: bool,
}

/// The MSI-X capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MsixCapability {
    /// Number of vectors, 1 to 2048.
    pub vectors: u16,
    /// BAR of the table, and the table's byte offset in the BAR.
    pub table: (u8, u64),
    /// BAR of the pending bits, and their byte offset in the BAR.
    pub pba: (u8, u64),
    /// Offset in configuration space of the second byte of Message Control, which contains MSI-X
    /// Enable and Function Mask.
    pub control: usize,
}

impl MsixCapability {
    /// The bit MSI-X Enable in the second byte of Message Control.
    pub(crate) const ENABLE: u8 = 0x80;

    /// Decodes the capability at byte `at` from its three double words (PCI Express Base 4.0,
    /// section 7.7.2).
    pub(crate) fn new(at: usize, [head, table, pba]: [u32; 3]) -> Self {
        let place = |value: u32| ((value & 7) as u8, u64::from(value & !7));
        let vectors = (head >> 16 & 0x7ff) as u16 + 1;
        Self { vectors, table: place(table), pba: place(pba), control: at + 3 }
    }
}

/// The shadow of configuration space.
#[derive(Debug)]
pub(crate) struct Config {
    /// Bits that are read from `shadow`.
    shadowed: Box<[u8; CONFIG_SIZE]>,
    /// Values of the shadowed bits.
    shadow: Box<[u8; CONFIG_SIZE]>,
    /// Values of the shadowed bits after a reset.
    initial: Box<[u8; CONFIG_SIZE]>,
    /// Shadowed bits that the VMM may change.
    writable: Box<[u8; CONFIG_SIZE]>,
    /// Values of the shadowed bits in the far function. A write to a byte with shadowed and far
    /// bits writes these values back.
    far: Box<[u8; CONFIG_SIZE]>,
    /// The MSI-X capability; `None` if the function has none.
    pub msix: Option<MsixCapability>,
    /// Offset of the byte of Device Control with the FLR bit; `None` if the function does not
    /// support FLR.
    reset_at: Option<usize>,
    /// The two bytes of the far function's Command register as the VMM wrote them. `None` for a
    /// byte that the VMM has not written since the last reset.
    pub command: [Option<u8>; 2],
}

impl Config {
    /// Creates the shadow of a function after power-on.
    pub(crate) fn new(info: &EndpointInfo) -> Self {
        let mut config = Self {
            shadowed: Box::new([0; CONFIG_SIZE]),
            shadow: Box::new([0; CONFIG_SIZE]),
            initial: Box::new([0; CONFIG_SIZE]),
            writable: Box::new([0; CONFIG_SIZE]),
            far: info.config.clone(),
            msix: None,
            reset_at: None,
            command: [None; 2],
        };
        config.header(info);
        config.capabilities(&info.config);
        config.extended_capabilities(&info.config);
        config.shadow = config.initial.clone();
        config
    }

    /// Shadows the bits `mask` of byte `at`, with the initial value `value`. The VMM can change the
    /// bits in `writable`.
    fn shadow_bits(&mut self, at: usize, mask: u8, value: u8, writable: u8) {
        self.shadowed[at] |= mask;
        self.initial[at] = (self.initial[at] & !mask) | (value & mask);
        self.writable[at] |= writable;
    }

    fn header(&mut self, info: &EndpointInfo) {
        self.shadow_bits(COMMAND, COMMAND_SPACES, 0, COMMAND_SPACES);
        self.far[COMMAND] |= command::MEMORY_SPACE as u8;
        self.shadow_bits(register::HEADER_TYPE.into(), 0x80, 0, 0);
        self.shadow_bits(BIST, 0xff, 0, 0);
        self.shadow_bits(register::INTERRUPT_LINE.into(), 0xff, 0xff, 0xff);
        self.shadow_bits(INTERRUPT_PIN, 0xff, info.config[INTERRUPT_PIN], 0);
        for at in (BAR0..BAR0 + 24).chain(ROM..ROM + 4) {
            self.shadow_bits(at, 0xff, 0, 0);
        }
        for (index, bar) in info.bars.iter().enumerate() {
            let Some(bar) = bar else { continue };
            let at = BAR0 + index * 4;
            let bytes = if bar.is_64bit && index < 5 { 8 } else { 4 };
            let low = u8::from(bar.is_64bit) << 2 | u8::from(bar.prefetchable) << 3;
            let size = bar.size.checked_next_power_of_two().unwrap_or(1 << 63).max(16);
            let mask = (!(size - 1)).to_le_bytes();
            for (i, mask) in mask.iter().enumerate().take(bytes) {
                self.shadow_bits(at + i, 0xff, if i == 0 { low } else { 0 }, *mask);
            }
        }
    }

    fn capabilities(&mut self, config: &[u8; CONFIG_SIZE]) {
        if config[usize::from(register::STATUS)] & STATUS_CAPABILITIES == 0 {
            return;
        }
        let mut pointer = usize::from(register::CAPABILITIES);
        for _ in 0..CAP_LIMIT {
            let at = usize::from(config[pointer] & 0xfc);
            if at < 0x40 {
                return;
            }
            match config[at] {
                CAP_MSI => {
                    // The capability is skipped in the list and shadowed: with an MSI address from
                    // the VMM the far function could write to any address.
                    let next = config[at + 1];
                    self.shadow_bits(pointer, 0xff, next, 0);
                    let control = config[at + 2];
                    let wide = if control & 0x80 != 0 { 4 } else { 0 };
                    let masks = if config[at + 3] & 1 != 0 { 10 } else { 0 };
                    let end = (at + 10 + wide + masks).min(EXTENDED);
                    for (i, byte) in config[at..end].iter().enumerate() {
                        self.shadow_bits(at + i, 0xff, *byte, 0);
                    }
                    // `pointer` stays unchanged, so that a second MSI capability is skipped too.
                    if usize::from(next & 0xfc) < 0x40 {
                        return;
                    }
                    pointer = at + 1;
                    continue;
                }
                capability::POWER_MANAGEMENT => self.shadow_bits(at + 4, 0x03, 0, 0x03),
                capability::PCIE => self.express(at, config),
                capability::MSIX if at + 12 <= EXTENDED => self.msix(at, config),
                _ => {}
            }
            pointer = at + 1;
        }
    }

    fn express(&mut self, at: usize, config: &[u8; CONFIG_SIZE]) {
        // Device Control: MPS 7:5, extended tag 8, phantom 9, MRRS 14:12,
        // FLR 15 (PCI Express Base 4.0, section 7.5.3.4).
        let control = at + 8;
        self.shadow_bits(control, 0xe0, config[control], 0xe0);
        self.shadow_bits(control + 1, 0xf3, config[control + 1] & 0x7f, 0x73);
        if config[at + 7] & 0x10 != 0 {
            self.reset_at = Some(control + 1);
        }
        // Device Control 2: 10-bit tag requester enable 12 (section 7.5.3.16).
        if config[at + 2] & 0xf >= 2 && at + 0x2c <= EXTENDED {
            self.shadow_bits(at + 0x29, 0x10, config[at + 0x29], 0x10);
        }
    }

    fn msix(&mut self, at: usize, config: &[u8; CONFIG_SIZE]) {
        if self.msix.is_none() {
            // Message Control is shadowed completely: its read-only bits are constant, and the host
            // node changes the enable bit of the far function.
            self.shadow_bits(at + 2, 0xff, config[at + 2], 0);
            self.shadow_bits(at + 3, 0xff, config[at + 3] & 0x3f, 0xc0);
            let dwords = [at, at + 4, at + 8].map(|at| dword(config, at));
            self.msix = Some(MsixCapability::new(at, dwords));
        }
    }

    fn extended_capabilities(&mut self, config: &[u8; CONFIG_SIZE]) {
        let mut at = EXTENDED;
        for _ in 0..CAP_LIMIT {
            let header = dword(config, at);
            if header == 0 || header == u32::MAX {
                return;
            }
            let next = (header >> 20) as usize & 0xffc;
            if EXTENDED_HIDDEN.contains(&(header as u16)) || is_contents(config, at) {
                let end = if next > at { next } else { CONFIG_SIZE };
                for byte in at..end {
                    self.shadow_bits(byte, 0xff, 0, 0);
                }
                self.shadow_bits(at + 2, 0xf0, config[at + 2], 0);
                self.shadow_bits(at + 3, 0xff, config[at + 3], 0);
            }
            if next < EXTENDED || next + 4 > CONFIG_SIZE {
                return;
            }
            at = next;
        }
    }

    /// Reads `size` bytes within a double word; `None` if not all bits are shadowed.
    pub(crate) fn read(&self, offset: u16, size: u8) -> Option<[u8; 4]> {
        let range = usize::from(offset)..usize::from(offset) + usize::from(size);
        if self.shadowed[range.clone()].iter().any(|mask| *mask != 0xff) {
            return None;
        }
        let mut out = [0; 4];
        out[..usize::from(size)].copy_from_slice(&self.shadow[range]);
        Some(out)
    }

    /// Reads bytes of an absent function: all ones, except for the interrupt pin. When the guest
    /// disables MSI-X, as a driver does after the loss of a drive, QEMU reads the pin to set up
    /// INTx. For QEMU all ones would be an error, and INTx would not work after the return of the
    /// function.
    pub(crate) fn absent(&self, offset: u64, bytes: &mut [u8]) {
        bytes.fill(0xff);
        let pin = (INTERRUPT_PIN as u64).checked_sub(offset).map(|at| at as usize);
        if let Some(byte) = pin.and_then(|at| bytes.get_mut(at)) {
            *byte = self.initial[INTERRUPT_PIN];
        }
    }

    /// Replaces the shadowed bits in bytes read from the far function.
    pub(crate) fn overlay(&self, offset: u16, bytes: &mut [u8]) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            let at = usize::from(offset) + i;
            let mask = self.shadowed[at];
            *byte = (*byte & !mask) | (self.shadow[at] & mask);
        }
    }

    /// Handles a write of `bytes`, which lie within a double word.
    pub(crate) fn write(&mut self, offset: u16, bytes: &[u8]) -> WriteEffect {
        let mut written = WriteEffect::default();
        let mut run: Option<RemoteWrite> = None;
        for (i, byte) in bytes.iter().enumerate() {
            let at = usize::from(offset) + i;
            let writable = self.writable[at];
            self.shadow[at] = (self.shadow[at] & !writable) | (byte & writable);
            if self.reset_at == Some(at) && byte & 0x80 != 0 {
                written.reset = true;
            }
            let mask = self.shadowed[at];
            if let Some(place) = at.checked_sub(COMMAND).and_then(|i| self.command.get_mut(i)) {
                *place = Some((byte & !mask) | (self.far[at] & mask));
            }
            if mask == 0xff {
                written.far.extend(run.take());
                continue;
            }
            let far = u32::from((byte & !mask) | (self.far[at] & mask));
            let run = run.get_or_insert(RemoteWrite { offset: at as u16, size: 0, value: 0 });
            run.value |= far << (8 * run.size);
            run.size += 1;
        }
        written.far.extend(run);
        written
    }

    /// Returns to the state after a reset.
    pub(crate) fn reset(&mut self) {
        self.shadow = self.initial.clone();
        self.command = [None; 2];
    }

    /// Whether the VMM has enabled MSI-X.
    pub(crate) fn msix_enabled(&self) -> bool {
        self.msix.is_some_and(|msix| self.shadow[msix.control] & MsixCapability::ENABLE != 0)
    }

    /// Whether the VMM has set Function Mask of MSI-X.
    pub(crate) fn msix_masked(&self) -> bool {
        self.msix.is_some_and(|msix| self.shadow[msix.control] & 0x40 != 0)
    }

    /// Handles a write of `bytes` at `offset` to an absent function: clears in
    /// [`command`](Self::command) the bits of the Command register that the write clears. Thus bus
    /// mastering stays disabled if the VMM disables it while the function is absent. Bits that the
    /// write sets are ignored, because a driver reads all ones, changes one bit and writes the
    /// value back.
    pub(crate) fn clear_command(&mut self, offset: u64, bytes: &[u8]) {
        for (index, place) in self.command.iter_mut().enumerate() {
            let at = COMMAND + index;
            let byte = (at as u64).checked_sub(offset).and_then(|i| bytes.get(i as usize));
            if let Some(byte) = byte {
                *place = place.map(|old| old & (byte | self.shadowed[at]));
            }
        }
    }
}
