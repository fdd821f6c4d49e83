//! What an operating system does before it can use its drives.

use super::SoftwareConfig;
use nvme::initiator::{self, Driver};
use pcie::enumerate::{self, Node};
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::rc::Rc;
use thiserror::Error;

/// Class code of NVMe controllers.
const NVME: [u8; 3] = [0x01, 0x08, 0x02];

/// Why a host does not come up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BootError {
    /// Buses or windows run out.
    #[error("enumeration failed: {0}")]
    Enumeration(String),
    /// A drive does not come up.
    #[error("drive {0}: {1}")]
    Drive(usize, initiator::Error),
    /// Fewer drives than configured were found.
    #[error("{found} of {wanted} drives were found")]
    Missing {
        /// Found.
        found: usize,
        /// Configured.
        wanted: usize,
    },
    /// Host memory is too small for the workload's buffers.
    #[error("host memory is too small for the workload's buffers: iodepth x numjobs x bs")]
    Memory,
    /// The workload does not fit the drives.
    #[error("workload: {0}")]
    Workload(&'static str),
}

/// A drive that is up.
#[derive(Debug)]
pub(super) struct Attached {
    pub node: Node,
    pub bar0: u64,
    pub driver: Driver,
}

/// Enumerates, and brings up every drive with `queues` I/O queues.
pub(super) async fn boot(
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    config: SoftwareConfig,
    queues: u16,
    entries: u16,
) -> Result<Vec<Attached>, BootError> {
    let settings = enumerate::Settings {
        max_payload: config.max_payload,
        max_read_request: config.max_read_request,
        ..enumerate::Settings::default()
    };
    let hierarchy = enumerate::enumerate(bus.clone(), settings)
        .await
        .map_err(|error| BootError::Enumeration(error.to_string()))?;
    let mut drives = Vec::new();
    for node in hierarchy.endpoints().into_iter().filter(|node| node.class == NVME) {
        let number = drives.len();
        enumerate::enable_bus_master(&bus, node.bdf, true).await;
        for vector in 0..=queues {
            enumerate::write_msix_entry(&bus, node, vector, u32::from(vector), false);
        }
        enumerate::set_msix(&bus, node, true).await;
        let bar0 = node.bar(0).ok_or(BootError::Drive(number, initiator::Error::Gone))?.address;
        let settings =
            initiator::Settings { io_queues: queues, entries, ..initiator::Settings::default() };
        let driver = initiator::attach(bus.clone(), ram.clone(), bar0, settings)
            .await
            .map_err(|error| BootError::Drive(number, error))?;
        drives.push(Attached { node: node.clone(), bar0, driver });
    }
    Ok(drives)
}
