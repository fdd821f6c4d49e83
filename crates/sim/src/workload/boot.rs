//! Enumeration and initialisation of drives, as by an operating system.

use super::SoftwareConfig;
use nvme::initiator::{self, Driver};
use pcie::enumerate::{self, Comparison, Node};
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
    /// The drives cannot run the workload.
    #[error("workload: {0}")]
    Workload(&'static str),
}

/// An initialised drive.
#[derive(Debug)]
pub(crate) struct NvmeDrive {
    pub node: Node,
    /// The port directly above it.
    pub port: Option<Node>,
    pub bar0: u64,
    pub driver: Driver,
    /// It is the same drive as before, with new contents.
    pub new_contents: bool,
}

impl NvmeDrive {
    /// Bytes of the first namespace.
    pub fn room(&self) -> u64 {
        let namespace = self.driver.namespaces()[0];
        namespace.blocks << namespace.block_shift
    }
}

/// The parameters of enumeration and initialisation.
#[derive(Clone, Debug)]
pub(crate) struct BringUp {
    pub bus: Bus,
    pub ram: Rc<RefCell<Ram>>,
    pub config: SoftwareConfig,
    /// Whether to read the identity of the drives' contents.
    pub contents: bool,
    /// Whether drives use ECRC.
    pub ecrc: bool,
    /// I/O queues of a drive, and entries of each.
    pub queues: u16,
    pub entries: u16,
}

impl BringUp {
    fn settings(&self) -> enumerate::Settings {
        enumerate::Settings {
            max_payload: self.config.max_payload,
            max_read_request: self.config.max_read_request,
            contents: self.contents,
            ecrc: self.ecrc,
            ..enumerate::Settings::default()
        }
    }

    async fn drive(&self, node: &Node) -> Result<(u64, Driver), initiator::Error> {
        enumerate::enable_bus_master(&self.bus, node.bdf, true).await;
        for vector in 0..=self.queues {
            enumerate::write_msix_entry(&self.bus, node, vector, u32::from(vector), false);
        }
        enumerate::set_msix(&self.bus, node, true).await;
        let bar0 = node.bar(0).ok_or(initiator::Error::Gone)?.address;
        let settings = initiator::Settings {
            io_queues: self.queues,
            entries: self.entries,
            ..initiator::Settings::default()
        };
        let driver = initiator::attach(self.bus.clone(), self.ram.clone(), bar0, settings).await?;
        Ok((bar0, driver))
    }

    /// Enumerates, and brings up every drive.
    pub async fn boot(self) -> Result<Vec<NvmeDrive>, BootError> {
        let hierarchy = enumerate::enumerate(self.bus.clone(), self.settings())
            .await
            .map_err(|error| BootError::Enumeration(error.to_string()))?;
        let nodes = hierarchy.nodes();
        let mut drives = Vec::new();
        for node in hierarchy.endpoints().into_iter().filter(|node| node.class == NVME) {
            let number = drives.len();
            let (bar0, driver) =
                self.drive(node).await.map_err(|error| BootError::Drive(number, error))?;
            let above = |port: &&&Node| port.children().iter().any(|child| child.bdf == node.bdf);
            let port = nodes.iter().find(above).map(|port| (*port).clone());
            drives.push(NvmeDrive { node: node.clone(), port, bar0, driver, new_contents: false });
        }
        Ok(drives)
    }

    /// Enumerates below a port whose link came up again, and initialises the drive
    /// there if it is the one of `before`. A drive with new contents is reset
    /// first, as an administrator would do who accepts the loss.
    pub async fn bring_up_again(
        self,
        drive: usize,
        port: Node,
        before: Node,
    ) -> Result<NvmeDrive, BootError> {
        let max_payload = port.max_payload;
        let look = enumerate::enumerate_below(
            self.bus.clone(),
            port.clone(),
            self.settings(),
            max_payload,
        );
        let found = look.await.map_err(|error| BootError::Enumeration(error.to_string()))?;
        let node = found.into_iter().find(|node| node.class == NVME);
        let node = node.ok_or(BootError::Drive(drive, initiator::Error::Gone))?;
        // Simulated hosts do not mark their drives: plans move drives.
        let new_contents = match before.compare(&node, 0) {
            Comparison::Same => false,
            Comparison::NewContents(_) => {
                enumerate::reset_function(&self.bus, &node, &self.settings()).await;
                true
            }
            Comparison::Another(_) => {
                return Err(BootError::Drive(drive, initiator::Error::Gone));
            }
        };
        let (bar0, driver) =
            self.drive(&node).await.map_err(|error| BootError::Drive(drive, error))?;
        Ok(NvmeDrive { node, port: Some(port), bar0, driver, new_contents })
    }
}
