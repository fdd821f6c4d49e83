//! The device node of a drive of the plan.

use crate::cpus::Cpus;
use crate::settings::LinkParts;
use live::attached::{QUEUES, drive_settings};
use live::net::Address;
use live::{Clock, DeviceNode, NvmeDrive, Stop, random_number};
use load::TraceTarget;
use load::local::{Node, NodeParts};
use node::drive::FIRST;
use node::faults::Faults;
use report::Failure;
use sim::drive::DriveConfig;
use storage::media::Backing;
use wire::frame::Role;
use wire::trace::NodeRole;

/// Returns the namespaces of a drive of a plan, in RAM.
pub fn in_ram(drive: &DriveConfig) -> Vec<Backing> {
    drive.sizes().map(|size| Backing::Ram { size, block: 512, read_only: false }).collect()
}

/// A drive of a plan, ready to start.
#[derive(Clone, Debug)]
pub struct DrivePlan {
    /// Serial number.
    pub serial: String,
    /// The namespaces.
    pub backing: Vec<Backing>,
    /// Settings of the link.
    pub link: LinkParts,
    /// Max_Payload_Size supported, in bytes.
    pub max_payload: usize,
    /// Faults of the drive, and of its node.
    pub faults: [Faults; 2],
}

impl DrivePlan {
    /// Creates the drive, which records into `trace`.
    ///
    /// # Errors
    /// If the media cannot be opened, or the trace cannot be created.
    pub fn open(&self, clock: Clock, trace: &TraceTarget) -> Result<NvmeDrive, Failure> {
        let settings = drive_settings(self.max_payload, QUEUES);
        let made = NvmeDrive::over(&self.backing, Some(&self.serial), "", settings, FIRST)?;
        let tracer = trace.open(NodeRole::Device, random_number(), clock)?;
        Ok(made.traced(tracer).with_faults(self.faults[0].clone()))
    }

    /// Starts a device node in a thread, in the namespace of the caller, on the CPU of a station or
    /// on any.
    ///
    /// # Errors
    /// As [`open`](Self::open), or if the node cannot listen at `at`.
    pub fn start(
        self,
        at: &Address,
        clock: Clock,
        trace: TraceTarget,
        cpu: Option<(Cpus, usize)>,
    ) -> Result<Node, Failure> {
        let parts = NodeParts {
            clock,
            waiting: self.link.node.waiting,
            tunnel: self.link.tunnel(Role::Device),
            links: self.link.links()?,
            limit: self.link.node.limit(),
            faults: self.faults[1].clone(),
        };
        // The threads of the trace, which exist by now, run anywhere.
        let ready = move |_: &mut DeviceNode<NvmeDrive>, _: &Stop| match cpu {
            Some((cpus, station)) => cpus.keep(station),
            None => Ok(()),
        };
        Node::serve(at, parts, move || self.open(clock, &trace), ready)
    }
}
