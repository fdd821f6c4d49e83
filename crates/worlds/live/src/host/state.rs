//! The counters and the state of a host node.

use super::HostNode;
use super::endpoint::Endpoint;
use crate::attached::{Attached, Report};
use crate::status::{EndpointStatus, LinkStatus, PushStatus, Status, counts};

impl HostNode {
    /// The counters: errors of the root port, of the switch and of each endpoint's DMA, and the
    /// links' traffic.
    pub fn report(&self) -> Report {
        let root = format!("errors: {}", self.machine.root().errors());
        let mut lines = vec![("root port".to_owned(), root)];
        lines.extend(self.machine.attached().report());
        for (number, endpoint) in self.endpoints.iter().enumerate() {
            let faults = match endpoint.slot.faults {
                0 => "errors: none".to_owned(),
                n => format!("errors: {n} accesses to unmapped memory"),
            };
            lines.push((format!("endpoint {number} DMA"), faults));
        }
        lines.push(("push".to_owned(), self.machine.push_counters().to_string()));
        let gate = self.machine.attached().links().gate();
        lines.extend(gate.map(|gate| ("gate".to_owned(), gate.report())));
        lines
    }

    /// The state of the node.
    pub fn status(&self) -> Status {
        let pushed = self.machine.push_counters();
        let mut status = Status {
            endpoints: self.endpoints.iter().enumerate().map(endpoint).collect(),
            push: Some(PushStatus {
                counters: counts(pushed.list()),
                not_pushed: counts(pushed.not_pushed.iter()),
            }),
            ..Status::default()
        };
        // The root port is not shown: it has no far side.
        let (now, mut root_port) = (self.machine.clock().now(), LinkStatus::default());
        self.machine.attached().add_status(now, &mut root_port, &mut status);
        status
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
