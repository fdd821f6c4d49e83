//! Bringing a drive up (NVMe 1.4, section 7.6.1).

use super::admin::{Admin, entry_sizes};
use super::driver::{Driver, IoQueue, NamespaceInfo, QueueMemory};
use super::queue::{Host, QueuePair};
use super::{Error, Settings, prp_list};
use crate::config::MAX_QUEUES;
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::rc::Rc;
use wire::nvme::register::{
    ACQ, AQA, ASQ, AdminQueueAttributes, CAP, CC, Capabilities, Configuration,
};
use wire::nvme::{Command, IdentifyController, IdentifyNamespace, cns, feature, opcode};

/// The largest transfer of this driver in bytes, even if MDTS is larger. The PRP list of such a
/// transfer fits in a page.
pub(super) const MAX_TRANSFER: usize = 1 << 20;
/// PC in the Create commands: the queue is physically contiguous.
const CONTIGUOUS: u32 = 1;
/// IEN in Create I/O Completion Queue: interrupts are enabled.
const INTERRUPTS: u32 = 2;

/// Resets and starts the controller whose BAR 0 is at `bar0`, and creates I/O queues in `ram`. The
/// function must be enumerated, with memory space and bus mastering enabled. A host with a
/// [registration](Settings::registration) then registers, and acquires its reservation unless another
/// host holds one.
pub async fn attach(
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    bar0: u64,
    settings: Settings,
) -> Result<Driver, Error> {
    attach_with(bus, ram, bar0, settings, Vec::new()).await
}

/// As [`attach`], and creates I/O queues behind its own, whose memory further connections of the link
/// have ([`FurtherQueues`](super::FurtherQueues)). The driver deletes them too.
pub async fn attach_with(
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    bar0: u64,
    settings: Settings,
    further: Vec<QueueMemory>,
) -> Result<Driver, Error> {
    let (host, cap) = controller(bus, ram, bar0).await?;
    let mut admin = Admin::new(host, settings, cap)?;
    admin.reset().await?;
    let identify = IdentifyController::decode(&admin.identify(cns::CONTROLLER, 0).await?);
    let max_transfer = match identify.max_transfer {
        0 => MAX_TRANSFER,
        shift => MAX_TRANSFER.min(4096usize.checked_shl(shift.into()).unwrap_or(usize::MAX)),
    };
    let namespaces = admin.namespaces().await?;
    let queues = admin.create_queues(max_transfer, further).await?;
    let serial = String::from_utf8_lossy(&identify.serial).trim().to_owned();
    let mut driver = Driver { admin, serial, namespaces, max_transfer, queues };
    if let Some(registration) = settings.registration {
        driver.register(registration).await?;
    }
    Ok(driver)
}

/// The registers of a controller that this driver can use, and CAP.
pub(super) async fn controller(
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    bar0: u64,
) -> Result<(Host, Capabilities), Error> {
    let bits = bus.read(bar0 + CAP, 8).await;
    if bits == u64::MAX {
        return Err(Error::Gone);
    }
    let cap = Capabilities::from_bits(bits);
    if cap.command_sets & 1 == 0 {
        return Err(Error::Unsupported("the NVM command set"));
    }
    if cap.min_page > 0 {
        return Err(Error::Unsupported("memory pages of 4 KiB"));
    }
    Ok((Host { bus, ram, bar0, stride: cap.doorbell_stride }, cap))
}

/// Allocates the queue pair `id`, with a list for each command of up to `max_transfer` bytes.
pub(super) fn io_queue(admin: &Admin, id: u16, max_transfer: usize) -> Result<IoQueue, Error> {
    let most = admin.cap.max_queue_entries.saturating_add(1);
    let pair = QueuePair::new(&admin.host, id, admin.settings.entries.clamp(2, most))?;
    // Up to one entry per page, and one more for an unaligned buffer.
    let list = (max_transfer / prp_list::PAGE as usize + 1) * 8;
    let list = list.next_power_of_two();
    let lists = admin.host.allocate(list * usize::from(pair.size()), 4096)?;
    Ok(IoQueue { pair, lists, list: list as u64 })
}

impl Admin {
    async fn reset(&self) -> Result<(), Error> {
        let old = self.read(CC, 4).await as u32;
        let disabled = Configuration { enable: false, ..Configuration::from_bits(old) };
        self.write(CC, 4, disabled.bits().into());
        self.wait_status("CSTS.RDY to clear", |status| !status.ready).await?;
        let size = self.queue.size();
        self.write(AQA, 4, AdminQueueAttributes { sq_size: size, cq_size: size }.bits().into());
        self.write(ASQ, 8, self.queue.sq_base);
        self.write(ACQ, 8, self.queue.cq_base);
        self.write(CC, 4, Configuration { enable: true, ..entry_sizes() }.bits().into());
        // Until then CFS concerned the time before this reset, which clears it.
        match self.wait_status("CSTS.RDY", |status| status.ready || status.fatal).await?.fatal {
            true => Err(Error::Fatal),
            false => Ok(()),
        }
    }

    async fn namespaces(&mut self) -> Result<Vec<NamespaceInfo>, Error> {
        let list = self.identify(cns::ACTIVE_NAMESPACES, 0).await?;
        let ids = list.as_chunks::<4>().0.iter().map(|id| u32::from_le_bytes(*id));
        let mut namespaces = Vec::new();
        for nsid in ids.take_while(|nsid| *nsid != 0) {
            let identify = IdentifyNamespace::decode(&self.identify(cns::NAMESPACE, nsid).await?);
            // The driver has no buffers for metadata.
            if identify.lba_format.metadata != 0 {
                continue;
            }
            namespaces.push(NamespaceInfo {
                nsid,
                blocks: identify.size,
                block_shift: identify.lba_format.data_shift,
                read_only: identify.attributes & IdentifyNamespace::WRITE_PROTECTED != 0,
            });
        }
        Ok(namespaces)
    }

    async fn create_queues(
        &mut self,
        max_transfer: usize,
        further: Vec<QueueMemory>,
    ) -> Result<Vec<IoQueue>, Error> {
        let settings = self.settings;
        let own = settings.io_queues.max(1);
        let wanted = u32::from(own) + further.len() as u32 - 1;
        let command = Command {
            opcode: opcode::admin::SET_FEATURES,
            cdw10: feature::NUMBER_OF_QUEUES.into(),
            cdw11: wanted | wanted << 16,
            ..Command::default()
        };
        let granted = self.run("Set Features (Number of Queues)", command).await?;
        let granted = (granted & 0xffff).min(granted >> 16).min(wanted);
        if granted < wanted && !further.is_empty() {
            return Err(Error::Unsupported("the I/O queue pairs of all connections"));
        }
        let own = (granted as u16 + 1).min(own);
        let mut queues = Vec::new();
        for id in 1..=own {
            queues.push(io_queue(self, id, max_transfer)?);
            self.create_queue(id, queues[queues.len() - 1].memory()).await?;
        }
        for (id, memory) in (own + 1..).zip(further) {
            self.create_queue(id, memory).await?;
            queues.push(IoQueue::elsewhere(id, memory));
        }
        Ok(queues)
    }

    async fn create_queue(&mut self, id: u16, memory: QueueMemory) -> Result<(), Error> {
        let QueueMemory { submission, completion, entries } = memory;
        let [cq, sq] = create_commands(id, entries, submission, completion);
        let cdw11 = if self.settings.interrupts { cq.cdw11 } else { CONTIGUOUS };
        self.run("Create I/O Completion Queue", Command { cdw11, ..cq }).await?;
        self.run("Create I/O Submission Queue", sq).await.map(drop)
    }
}

/// The commands that create the queue pair `id` with `entries` entries each, at the addresses `sq`
/// and `cq`. The interrupt vector has the number of the queue.
pub fn create_commands(id: u16, entries: u16, sq: u64, cq: u64) -> [Command; 2] {
    // Queue 2048 shares the last vector.
    let vector = u32::from(id.min(MAX_QUEUES - 1));
    let id = u32::from(id);
    let cq = Command {
        opcode: opcode::admin::CREATE_CQ,
        prp1: cq,
        cdw10: id | u32::from(entries - 1) << 16,
        cdw11: CONTIGUOUS | INTERRUPTS | vector << 16,
        ..Command::default()
    };
    let (opcode, cdw11) = (opcode::admin::CREATE_SQ, CONTIGUOUS | id << 16);
    [cq, Command { opcode, prp1: sq, cdw11, ..cq }]
}
