//! What the driver of an NVMe controller sees while the link is down: a controller that has failed,
//! and that is not ready after its reset. So the reset waits for the link, as long as CAP.TO says,
//! and the driver does not remove the controller.

use follow::Registers;
use std::fmt;
use wire::nvme::register::{CAP, CSTS, ControllerStatus, ShutdownNotice, ShutdownStatus, VS};

/// What is read of an NVMe controller before its driver uses it.
#[derive(Clone)]
pub struct Snapshot {
    /// Configuration space.
    pub config: Box<[u8; 4096]>,
    /// CAP.
    pub capabilities: u64,
    /// VS.
    pub version: u32,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot, CAP {:#x}, VS {:#x}", self.capabilities, self.version)
    }
}

/// Stands in for a controller.
#[derive(Debug)]
pub(super) struct StandIn {
    snapshot: Snapshot,
    /// The registers as the driver wrote them.
    registers: Registers,
    /// Whether the controller was enabled when the link went down, and was not disabled since.
    failed: bool,
    /// Whether the driver has enabled the controller while the link was down, and waits for CSTS.RDY.
    pub waits: bool,
}

/// What a read of the client is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// Offset and size in bytes in configuration space.
    Config(u16, u8),
    /// BAR, offset and number of bytes.
    Bar(u8, u64, usize),
}

impl StandIn {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self { snapshot, registers: Registers::default(), failed: false, waits: false }
    }

    /// Handles a write to BAR 0, while the link is `down` or up.
    pub(super) fn write(&mut self, offset: u64, data: &[u8], down: bool) {
        self.registers.write(offset, data);
        let enable = self.registers.configuration().enable;
        self.failed &= enable;
        self.waits = enable && (self.waits || down && !self.failed);
    }

    /// Handles a reset of the function.
    pub(super) fn reset(&mut self) {
        (self.registers, self.failed, self.waits) = (Registers::default(), false, false);
    }

    /// Handles the loss of the link.
    pub(super) fn link_down(&mut self) {
        self.failed = self.registers.configuration().enable && !self.waits;
    }

    /// The answer to a read. Doorbells and further BARs read 0.
    pub(super) fn answer(&self, wanted: Wanted) -> Vec<u8> {
        match wanted {
            Wanted::Config(offset, size) => {
                let from = usize::from(offset);
                self.snapshot.config[from..from + usize::from(size)].to_vec()
            }
            Wanted::Bar(0, offset, length) => self.registers(offset, length),
            Wanted::Bar(_, _, length) => vec![0; length],
        }
    }

    fn registers(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut registers = self.registers.bytes();
        let mut put = |at: u64, bytes: &[u8]| {
            registers[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        };
        put(CAP, &self.snapshot.capabilities.to_le_bytes());
        put(VS, &self.snapshot.version.to_le_bytes());
        put(CSTS, &self.status().bits().to_le_bytes());
        let at = |at: u64| registers.get(usize::try_from(at).ok()?).copied();
        (offset..offset + length as u64).map(|offset| at(offset).unwrap_or(0)).collect()
    }

    fn status(&self) -> ControllerStatus {
        let shuts_down = self.registers.configuration().shutdown != ShutdownNotice::None;
        ControllerStatus {
            ready: self.failed,
            fatal: self.failed,
            shutdown: if shuts_down { ShutdownStatus::Complete } else { ShutdownStatus::Normal },
        }
    }

    /// The registers of a driver that waits.
    pub(super) fn waiting(&self) -> Option<Registers> {
        self.waits.then_some(self.registers)
    }
}
