//! Enumeration and initialisation of drives, as by an operating system.

use nvme::initiator::{self, Driver};
use pcie::enumerate::{self, Hierarchy, Node};
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::rc::Rc;
use thiserror::Error;

/// Class code of NVMe controllers.
pub const NVME: [u8; 3] = [0x01, 0x08, 0x02];
/// Port type of a switch's downstream port (PCIe Base 4.0, section 7.5.3.2).
const DOWNSTREAM: u8 = 6;

/// Why a host cannot start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BootError {
    /// Bus numbers or memory windows are exhausted.
    #[error("enumeration failed: {0}")]
    Enumeration(String),
    /// A drive cannot be initialised.
    #[error("drive {0}: {1}")]
    Drive(usize, initiator::Error),
    /// Fewer drives than configured were found.
    #[error("only {found} of {wanted} drives were found")]
    Missing {
        /// Found.
        found: usize,
        /// Configured.
        wanted: usize,
    },
    /// Host memory is too small for the workload's buffers.
    #[error("host memory is too small for the buffers: iodepth times numjobs times bs")]
    Memory,
    /// The drives cannot run the workload.
    #[error("workload: {0}")]
    Workload(&'static str),
}

/// An initialised drive.
#[derive(Debug)]
pub struct NvmeDrive {
    /// The function.
    pub node: Node,
    /// The port whose link the drive depends on, see [`nvme_functions`].
    pub port: Node,
    /// Address of the registers (BAR 0).
    pub bar0: u64,
    /// The driver.
    pub driver: Driver,
}

/// The parameters of enumeration and initialisation.
#[derive(Clone, Debug)]
pub struct BringUp {
    /// The bus of the host software.
    pub bus: Bus,
    /// Host memory, for queues.
    pub ram: Rc<RefCell<Ram>>,
    /// Settings of enumeration.
    pub enumeration: enumerate::Settings,
    /// Settings of the drivers.
    pub driver: initiator::Settings,
}

impl BringUp {
    /// Brings up the drive of an enumerated function; MSI-X vector n has data n, if the driver uses
    /// interrupts. The number of queues is limited to the available vectors.
    ///
    /// # Errors
    /// As [`initiator::attach`].
    pub async fn attach(&self, node: &Node) -> Result<(u64, Driver), initiator::Error> {
        enumerate::enable_bus_master(&self.bus, node.bdf, true).await;
        let mut driver = self.driver;
        if driver.interrupts {
            let vectors =
                node.device().and_then(|device| device.msix).map_or(0, |msix| msix.vectors);
            let queues = vectors.checked_sub(1).filter(|queues| *queues > 0);
            let queues = queues.ok_or(initiator::Error::Unsupported("two vectors of MSI-X"))?;
            driver.io_queues = driver.io_queues.min(queues);
            for vector in 0..=driver.io_queues {
                enumerate::write_msix_entry(&self.bus, node, vector, u32::from(vector), false);
            }
            enumerate::set_msix(&self.bus, node, true).await;
        }
        let bar0 = node.bar(0).ok_or(initiator::Error::Gone)?.address;
        let (bus, ram) = (self.bus.clone(), self.ram.clone());
        Ok((bar0, initiator::attach(bus, ram, bar0, driver).await?))
    }

    /// Enumerates, and brings up every drive.
    ///
    /// # Errors
    /// [`BootError::Enumeration`], [`BootError::Drive`].
    pub async fn boot(self) -> Result<Vec<NvmeDrive>, BootError> {
        let hierarchy = enumerate::enumerate(self.bus.clone(), self.enumeration.clone())
            .await
            .map_err(|error| BootError::Enumeration(error.to_string()))?;
        let mut drives = Vec::new();
        for (node, port) in nvme_functions(&hierarchy) {
            let number = drives.len();
            let (bar0, driver) =
                self.attach(&node).await.map_err(|error| BootError::Drive(number, error))?;
            drives.push(NvmeDrive { node, port, bar0, driver });
        }
        Ok(drives)
    }
}

/// Every NVMe function of a hierarchy, in order, with the host's port whose link it depends on: the
/// downstream port of the topmost switch above it, or the root port.
pub fn nvme_functions(hierarchy: &Hierarchy) -> Vec<(Node, Node)> {
    let nodes = hierarchy.nodes();
    let drives = hierarchy.endpoints().into_iter().filter(|node| node.class == NVME);
    let with_port = drives.map(|drive| {
        let above = nodes.iter().find(|node| {
            let port = node.port().filter(|port| port.port_type == DOWNSTREAM);
            port.is_some_and(|port| (port.secondary..=port.subordinate).contains(&drive.bdf.bus()))
        });
        (drive.clone(), above.map_or_else(|| hierarchy.root.clone(), |port| Node::clone(port)))
    });
    with_port.collect()
}
