//! Admin commands, one at a time, with polling for their completions.

use super::queue::{Host, QueuePair};
use super::{Error, Settings};
use wire::Duration;
use wire::nvme::register::{CSTS, Capabilities, Configuration, ControllerStatus};
use wire::nvme::{Command, IDENTIFY, opcode};

/// Entries of the admin queues.
const ENTRIES: u16 = 32;
/// The value that registers of an absent drive read as.
pub(super) const ALL_ONES: u32 = u32::MAX;

/// A controller with its admin queue pair, and a page for returned data.
#[derive(Debug)]
pub(super) struct Admin {
    pub host: Host,
    pub settings: Settings,
    pub cap: Capabilities,
    pub queue: QueuePair,
    page: u64,
}

impl Admin {
    pub(super) fn new(host: Host, settings: Settings, cap: Capabilities) -> Result<Self, Error> {
        let queue = QueuePair::new(&host, 0, ENTRIES)?;
        let page = host.allocate(IDENTIFY, IDENTIFY)?;
        Ok(Self { host, settings, cap, queue, page })
    }

    /// Writes a register.
    pub(super) fn write(&self, register: u64, size: u8, value: u64) {
        self.host.bus.write(self.host.bar0 + register, size, value);
    }

    /// Reads a register.
    pub(super) async fn read(&self, register: u64, size: u8) -> u64 {
        self.host.bus.read(self.host.bar0 + register, size).await
    }

    /// Sends a command and waits for its completion; returns dword 0.
    pub(super) async fn run(&mut self, name: &'static str, command: Command) -> Result<u32, Error> {
        self.queue.run(&self.host, &self.settings, name, command).await
    }

    /// As [`run`](Self::run), in a queue pair for I/O, with data for the drive of up to
    /// 4096 bytes.
    pub(super) async fn run_io(
        &self,
        queue: &mut QueuePair,
        (name, command): (&'static str, Command),
        data: &[u8],
    ) -> Result<u32, Error> {
        self.host.put(self.page, data);
        let command = Command { prp1: self.page, ..command };
        queue.run(&self.host, &self.settings, name, command).await
    }

    /// Runs Identify and returns its data structure.
    pub(super) async fn identify(&mut self, cns: u8, nsid: u32) -> Result<[u8; IDENTIFY], Error> {
        let (opcode, prp1) = (opcode::admin::IDENTIFY, self.page);
        let command = Command { opcode, nsid, prp1, cdw10: cns.into(), ..Command::default() };
        self.run("Identify", command).await?;
        Ok(self.host.get(self.page))
    }

    /// Waits until `wanted` accepts CSTS, and returns it. The time limit is CAP.TO, but at least 500 ms.
    pub(super) async fn wait_status(
        &self,
        name: &'static str,
        wanted: impl Fn(ControllerStatus) -> bool,
    ) -> Result<ControllerStatus, Error> {
        let bus = &self.host.bus;
        let deadline = bus.now() + Duration::from_ms(500 * u64::from(self.cap.timeout.max(1)));
        loop {
            let bits = self.read(CSTS, 4).await as u32;
            if bits == ALL_ONES {
                return Err(Error::Gone);
            }
            let status = ControllerStatus::from_bits(bits);
            if wanted(status) {
                return Ok(status);
            }
            if bus.now() >= deadline {
                return Err(Error::Timeout(name));
            }
            bus.sleep(self.settings.poll).await;
        }
    }
}

/// The value of CC with entry sizes of 64 and 16 bytes, and all other fields 0.
pub fn entry_sizes() -> Configuration {
    Configuration { sq_entry_size: 6, cq_entry_size: 4, ..Configuration::default() }
}
