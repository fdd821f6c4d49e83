//! The counters and the state of a host node.

use super::HostNode;
use super::endpoint::Endpoint;
use crate::attached::Attached;
use crate::status::{EndpointStatus, LinkStatus, PushStatus, Report, Status, counts};

impl HostNode {
    /// The counters: those of the [`status`](Self::status), and errors of the root port and of the
    /// switch.
    pub fn report(&self) -> Report {
        let (root_port, mut status) = self.whole();
        status.links.insert(0, root_port);
        status.report(self.machine.attached().links().gate())
    }

    /// The state of the node, without the root port, which has no far side.
    pub fn status(&self) -> Status {
        self.whole().1
    }

    /// The root port with the function behind it, the switch, and the state of the node.
    fn whole(&self) -> (LinkStatus, Status) {
        let pushed = self.machine.push_counters();
        let mut status = Status {
            endpoints: self.endpoints.iter().enumerate().map(endpoint).collect(),
            push: Some(PushStatus {
                counters: counts(pushed.list()),
                not_pushed: counts(pushed.not_pushed.iter()),
            }),
            ..Status::default()
        };
        let mut root_port = LinkStatus {
            errors: counts(self.machine.root().errors().list()),
            name: "root port".to_owned(),
            ..LinkStatus::default()
        };
        self.machine.attached().add_status(self.machine.clock().now(), &mut root_port, &mut status);
        (root_port, status)
    }
}

fn endpoint((number, endpoint): (usize, &Endpoint)) -> EndpointStatus {
    EndpointStatus {
        description: endpoint.summary().to_string(),
        dma_faults: endpoint.slot.faults,
        number,
        port: endpoint.port,
        socket: endpoint.guest.server.path().display().to_string(),
        used: endpoint.connected,
    }
}
