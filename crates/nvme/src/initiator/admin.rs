//! Admin commands: one at a time, their completions polled for.

use super::queue::{Host, QueuePair};
use super::{Error, Settings};
use wire::Instant;
use wire::nvme::register::{CSTS, ControllerStatus};
use wire::nvme::{Command, IDENTIFY, opcode};

/// Entries of the admin queues.
const ENTRIES: u16 = 32;
/// What registers of a drive that is gone read as.
const ALL_ONES: u32 = u32::MAX;

/// The admin queue pair and a page for what commands return.
#[derive(Debug)]
pub(super) struct Admin {
    pub queue: QueuePair,
    page: u64,
    settings: Settings,
}

impl Admin {
    pub fn new(host: &Host, settings: Settings) -> Result<Self, Error> {
        let queue = QueuePair::new(host, 0, ENTRIES)?;
        Ok(Self { queue, page: host.allocate(IDENTIFY, IDENTIFY)?, settings })
    }

    /// Sends a command and waits for its completion; yields dword 0.
    pub async fn run(
        &mut self,
        host: &Host,
        what: &'static str,
        command: Command,
    ) -> Result<u32, Error> {
        let deadline = host.bus.now() + self.settings.timeout;
        let id = self.queue.put(host, command, deadline).map_err(|_| Error::Timeout(what))?;
        self.queue.ring(host);
        loop {
            if let Some(done) = self.queue.reap(host).into_iter().find(|done| done.id == id) {
                let success = done.status.is_success();
                return success.then_some(done.result).ok_or(Error::Command(what, done.status));
            }
            if host.bus.now() >= deadline {
                return Err(Error::Timeout(what));
            }
            host.bus.sleep(self.settings.poll).await;
        }
    }

    /// Runs Identify and yields its data structure.
    pub async fn identify(
        &mut self,
        host: &Host,
        cns: u8,
        nsid: u32,
    ) -> Result<[u8; IDENTIFY], Error> {
        let command = Command {
            opcode: opcode::admin::IDENTIFY,
            nsid,
            prp1: self.page,
            cdw10: cns.into(),
            ..Command::default()
        };
        self.run(host, "Identify", command).await?;
        Ok(host.get(self.page))
    }
}

/// Waits until CSTS is as wanted.
pub(super) async fn wait_status(
    host: &Host,
    settings: Settings,
    deadline: Instant,
    what: &'static str,
    wanted: impl Fn(ControllerStatus) -> bool,
) -> Result<(), Error> {
    loop {
        let bits = host.bus.read(host.bar0 + CSTS, 4).await as u32;
        if bits == ALL_ONES {
            return Err(Error::Gone);
        }
        let status = ControllerStatus::from_bits(bits);
        if wanted(status) {
            return Ok(());
        }
        if status.fatal {
            return Err(Error::Fatal);
        }
        if host.bus.now() >= deadline {
            return Err(Error::Timeout(what));
        }
        host.bus.sleep(settings.poll).await;
    }
}
