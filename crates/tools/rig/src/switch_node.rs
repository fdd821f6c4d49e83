//! A switch node of the plan.

use crate::cpus::Cpus;
use crate::settings::LinkParts;
use live::net::{Address, Peer};
use live::{Clock, Stop, random_number, wait_for_links};
use load::TraceTarget;
use load::local::{Node, NodeParts};
use node::faults::Faults;
use report::Failure;
use switch::tunnel::Settings;
use wire::frame::Role;
use wire::trace::NodeRole;

/// A switch node, ready to start.
#[derive(Clone, Debug)]
pub struct SwitchPlan {
    /// Settings of its links, in both directions.
    pub link: LinkParts,
    /// The nodes below, by port.
    pub peers: Vec<Peer>,
    /// Faults of the node.
    pub faults: Faults,
}

impl SwitchPlan {
    /// Starts the node in a thread, in the namespace of the caller, on the CPU of a station or on
    /// any. Returns when all its links are up.
    ///
    /// # Errors
    /// If the node cannot listen at `at`, a link does not come up, or the trace cannot be created.
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
            tunnel: Settings { push: 0, ..self.link.tunnel(Role::Device) },
            links: self.link.links()?,
            limit: self.link.node.limit(),
            faults: self.faults.clone(),
        };
        let make = move || {
            let tracer = trace.open(NodeRole::Switch, random_number(), clock)?;
            Ok(self.link.switch(&self.peers)?.traced(tracer))
        };
        Node::serve(at, parts, make, move |node, stop: &Stop| {
            wait_for_links(node, stop)?;
            match cpu {
                Some((cpus, station)) => cpus.keep(station),
                None => Ok(()),
            }
        })
    }
}
