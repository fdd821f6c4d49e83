//! Enumeration and initialisation of drives, as an operating system does it.

use nvme::initiator::{self, Driver, FurtherQueues, QueueMemory};
use pcie::enumerate::{self, Hierarchy, Node};
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use thiserror::Error;

/// Class code of NVMe controllers (NVMe Base 1.4, section 2.1.5): base class, subclass, programming
/// interface.
pub const NVME: [u8; 3] = [0x01, 0x08, 0x02];
/// Device/Port Type of a switch's downstream port (PCI Express Base 4.0, section 7.5.3.2).
const DOWNSTREAM: u8 = 6;

/// Why a host cannot start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BootError {
    /// The enumeration failed, for example because there are too few bus numbers or the memory
    /// windows are too small.
    #[error("enumeration failed: {0}")]
    Enumeration(String),
    /// The drive with this number, from 0, cannot be initialised.
    #[error("drive {0}: {1}")]
    Drive(usize, initiator::Error),
    /// Fewer drives than configured were found.
    #[error("only {found} of {wanted} drives were found")]
    Missing {
        /// Number of drives found.
        found: usize,
        /// Number of drives configured.
        wanted: usize,
    },
    /// Host memory is too small for the workload's buffers.
    #[error("host memory is too small for the buffers: iodepth times numjobs times bs")]
    Memory,
    /// The drives cannot run the workload, for this reason.
    #[error("workload: {0}")]
    Workload(&'static str),
}

/// An initialised drive.
#[derive(Debug)]
pub struct NvmeDrive {
    /// The drive's function.
    pub node: Node,
    /// The host's port whose link the drive depends on; see [`nvme_functions`].
    pub port: Node,
    /// Bus address of the registers (BAR 0).
    pub bar0: u64,
    /// The driver of the drive.
    pub driver: Driver,
}

/// The parameters of enumeration and initialisation.
#[derive(Clone, Debug)]
pub struct BringUp {
    /// The bus that host software accesses.
    pub bus: Bus,
    /// Host memory, in which the drivers allocate queues.
    pub ram: Rc<RefCell<Ram>>,
    /// Settings of the enumeration.
    pub enumeration: enumerate::Settings,
    /// Settings of the drivers.
    pub driver: initiator::Settings,
}

impl BringUp {
    /// Initialises the drive of an enumerated function. Returns the address of BAR 0 and the
    /// driver. If the driver uses interrupts, MSI-X vector n has message data n, and the number of
    /// I/O queues is limited to the number of vectors minus 1.
    ///
    /// # Errors
    /// As [`initiator::attach`]; [`initiator::Error::Unsupported`] if the driver uses interrupts
    /// and the function has fewer than 2 MSI-X vectors; [`initiator::Error::Gone`] if the function
    /// has no BAR 0.
    pub async fn attach(&self, node: &Node) -> Result<(u64, Driver), initiator::Error> {
        self.attach_with(node, Vec::new()).await
    }

    /// As [`attach`](Self::attach), with [I/O queues of further connections](initiator::attach_with).
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub async fn attach_with(
        &self,
        node: &Node,
        further: Vec<QueueMemory>,
    ) -> Result<(u64, Driver), initiator::Error> {
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
        Ok((bar0, initiator::attach_with(bus, ram, bar0, driver, further).await?))
    }

    /// Prepares the function of a further connection, and allocates the I/O queues with these indices,
    /// from 0. Queue n interrupts with vector n + 1.
    ///
    /// # Errors
    /// As [`FurtherQueues::new`].
    pub async fn attach_further(
        &self,
        node: &Node,
        indices: Range<u16>,
    ) -> Result<FurtherQueues, initiator::Error> {
        enumerate::enable_bus_master(&self.bus, node.bdf, true).await;
        for vector in indices.clone().map(|index| index + 1) {
            enumerate::write_msix_entry(&self.bus, node, vector, u32::from(vector), false);
        }
        enumerate::set_msix(&self.bus, node, true).await;
        let bar0 = node.bar(0).ok_or(initiator::Error::Gone)?.address;
        let (bus, ram) = (self.bus.clone(), self.ram.clone());
        FurtherQueues::new(bus, ram, bar0, self.driver, indices).await
    }

    /// Enumerates, and initialises all drives, in the order of [`nvme_functions`].
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

/// All NVMe functions of a hierarchy, in the order of enumeration. Each function comes with the
/// host's port whose link the function depends on: the downstream port of the topmost switch above
/// the function, or the root port if there is no switch.
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
