//! Bringing a drive up (NVMe 1.4, section 7.6.1).

use super::admin::{Admin, wait_status};
use super::driver::{Driver, IoQueue, NamespaceInfo};
use super::queue::{Host, QueuePair};
use super::{Error, Settings, prp_list};
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::rc::Rc;
use wire::nvme::register::{
    ACQ, AQA, ASQ, AdminQueueAttributes, CAP, CC, Capabilities, Configuration, ControllerStatus,
};
use wire::nvme::{Command, IdentifyController, IdentifyNamespace, cns, feature, opcode};
use wire::{Duration, Instant};

/// The largest transfer this driver makes, whatever MDTS allows: its PRP list
/// then fits in a page.
const LARGEST_TRANSFER: usize = 1 << 20;
/// Physically contiguous, in the Create commands.
const CONTIGUOUS: u32 = 1;
/// Interrupts enabled, in Create I/O Completion Queue.
const INTERRUPTS: u32 = 2;

/// Resets the controller behind `bar0`, starts it, and creates I/O queues in
/// `ram`. The function is enumerated, with memory space and bus master on.
pub async fn attach(
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    bar0: u64,
    settings: Settings,
) -> Result<Driver, Error> {
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
    let host = Host { bus, ram, bar0, stride: cap.doorbell_stride };
    let mut admin = Admin::new(&host, settings)?;
    reset(&host, settings, cap, &admin).await?;
    let identify = admin.identify(&host, cns::CONTROLLER, 0).await?;
    let identify = IdentifyController::decode(&identify);
    let max_transfer = match identify.max_transfer {
        0 => LARGEST_TRANSFER,
        shift => LARGEST_TRANSFER.min(4096usize.checked_shl(shift.into()).unwrap_or(usize::MAX)),
    };
    let namespaces = namespaces(&host, &mut admin).await?;
    let queues = create_queues(&host, &mut admin, settings, cap, max_transfer).await?;
    Ok(Driver { host, settings, cap, admin, namespaces, max_transfer, queues })
}

/// CAP.TO from now on, at least the 500 ms of one unit.
pub(super) fn deadline(host: &Host, cap: Capabilities) -> Instant {
    host.bus.now() + Duration::from_ms(500 * u64::from(cap.timeout.max(1)))
}

async fn reset(
    host: &Host,
    settings: Settings,
    cap: Capabilities,
    admin: &Admin,
) -> Result<(), Error> {
    let write = |register: u64, size, value| host.bus.write(host.bar0 + register, size, value);
    let old = host.bus.read(host.bar0 + CC, 4).await as u32;
    let disabled = Configuration { enable: false, ..Configuration::from_bits(old) };
    write(CC, 4, disabled.bits().into());
    let stopped = |status: ControllerStatus| !status.ready;
    wait_status(host, settings, deadline(host, cap), "CSTS.RDY to clear", stopped).await?;
    let size = admin.queue.size();
    write(AQA, 4, AdminQueueAttributes { sq_size: size, cq_size: size }.bits().into());
    write(ASQ, 8, admin.queue.sq_base);
    write(ACQ, 8, admin.queue.cq_base);
    let enabled = Configuration {
        enable: true,
        sq_entry_size: 6,
        cq_entry_size: 4,
        ..Configuration::default()
    };
    write(CC, 4, enabled.bits().into());
    let ready = |status: ControllerStatus| status.ready;
    wait_status(host, settings, deadline(host, cap), "CSTS.RDY", ready).await
}

async fn namespaces(host: &Host, admin: &mut Admin) -> Result<Vec<NamespaceInfo>, Error> {
    let list = admin.identify(host, cns::ACTIVE_NAMESPACES, 0).await?;
    let ids = list.as_chunks::<4>().0.iter().map(|id| u32::from_le_bytes(*id));
    let mut namespaces = Vec::new();
    for nsid in ids.take_while(|nsid| *nsid != 0) {
        let identify = admin.identify(host, cns::NAMESPACE, nsid).await?;
        let identify = IdentifyNamespace::decode(&identify);
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
    host: &Host,
    admin: &mut Admin,
    settings: Settings,
    cap: Capabilities,
    max_transfer: usize,
) -> Result<Vec<IoQueue>, Error> {
    let wanted = u32::from(settings.io_queues.max(1) - 1);
    let command = Command {
        opcode: opcode::admin::SET_FEATURES,
        cdw10: feature::NUMBER_OF_QUEUES.into(),
        cdw11: wanted | wanted << 16,
        ..Command::default()
    };
    let granted = admin.run(host, "Set Features (Number of Queues)", command).await?;
    let granted = (granted & 0xffff).min(granted >> 16).min(wanted) as u16 + 1;
    let entries = settings.entries.clamp(2, cap.max_queue_entries.saturating_add(1));
    let mut queues = Vec::new();
    for id in 1..=granted {
        let pair = QueuePair::new(host, id, entries)?;
        create_pair(host, admin, id, &pair, settings.interrupts).await?;
        // Up to one entry a page, and one more for a buffer between pages.
        let list = (max_transfer / prp_list::PAGE as usize + 1) * 8;
        let list = list.next_power_of_two();
        let lists = host.allocate(list * usize::from(pair.size()), 4096)?;
        queues.push(IoQueue { pair, lists, list: list as u64 });
    }
    Ok(queues)
}

async fn create_pair(
    host: &Host,
    admin: &mut Admin,
    id: u16,
    pair: &QueuePair,
    interrupts: bool,
) -> Result<(), Error> {
    let cdw10 = u32::from(id) | u32::from(pair.size()) << 16;
    let vector = if interrupts { INTERRUPTS | u32::from(id) << 16 } else { 0 };
    let cq = Command {
        opcode: opcode::admin::CREATE_CQ,
        prp1: pair.cq_base,
        cdw10,
        cdw11: CONTIGUOUS | vector,
        ..Command::default()
    };
    admin.run(host, "Create I/O Completion Queue", cq).await?;
    let sq = Command {
        opcode: opcode::admin::CREATE_SQ,
        prp1: pair.sq_base,
        cdw10,
        cdw11: CONTIGUOUS | u32::from(id) << 16,
        ..Command::default()
    };
    admin.run(host, "Create I/O Submission Queue", sq).await?;
    Ok(())
}
