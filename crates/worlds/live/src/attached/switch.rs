//! A switch with the connections of its links.

use super::{Attached, Notice};
use crate::links::Links;
use crate::poller::{Activity, Poller};
use crate::status::{LinkStatus, Status, counts};
use crate::trace::Tracer;
use ::switch::Upstream;
use ::switch::congestion::Rate;
use ::switch::tunnel::Cause;
use ::switch::upstream::Settings;
use node::{LinkEvent, SwitchNode};
use pcie::{Function, Input, Output, Ports, Ready};
use std::io;
use wire::Instant;

/// A switch with the connections of its links.
pub struct Switch {
    node: SwitchNode,
    links: Links,
}

impl Switch {
    /// A switch; `links` has one connection per downstream port.
    pub fn new(settings: Settings, links: Links) -> Self {
        Self { node: SwitchNode::with_lanes(settings, links.limit(), &links.lanes()), links }
    }

    /// Records the links with `tracer`.
    #[must_use]
    pub fn traced(mut self, tracer: Tracer) -> Self {
        self.links.trace(tracer);
        self
    }

    /// The switch itself.
    pub fn upstream(&self) -> &Upstream {
        self.node.upstream()
    }

    /// The connections.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The connections.
    pub fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }

    /// As [`SwitchNode::take_down`].
    pub fn take_down(&mut self, now: Instant, port: usize, cause: Cause) {
        self.node.take_down(now, port, cause);
    }

    /// As [`SwitchNode::give_up`].
    pub fn give_up(&mut self, now: Instant, port: usize) {
        self.node.give_up(now, port);
    }

    /// As [`Upstream::hold`].
    pub fn hold(&mut self, port: usize, held: bool) {
        self.node.hold(port, held);
    }
}

/// Tells the far sides that this node ends, also after an error: otherwise they wait for it.
impl Drop for Switch {
    fn drop(&mut self) {
        self.links.close(&mut self.node);
    }
}

impl Function for Switch {
    fn handle(&mut self, now: Instant, input: Input) {
        self.node.handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.node.poll(now, ready)
    }

    fn ready(&self) -> Ready {
        self.node.ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        self.node.ports()
    }
}

impl Attached for Switch {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        self.links.service(now, &mut self.node, poller)
    }

    fn take_notice(&mut self) -> Option<Notice> {
        while let Some(event) = self.links.event() {
            return Some(match event {
                LinkEvent::Up(port, _) => {
                    let identity = self.links.identity(port);
                    let identity = identity.map(|identity| format!(": {identity}"));
                    Notice::Info(format!("port {port}: link up{}", identity.unwrap_or_default()))
                }
                LinkEvent::Down { link: port, cause, .. } => {
                    Notice::Warning(format!("port {port}: link down: {cause}"))
                }
                LinkEvent::Failed { link: port, why, permanent: true, .. } => {
                    Notice::Warning(format!("port {port}: no link to {why}"))
                }
                LinkEvent::Interrupted(port, cause) => {
                    Notice::Warning(format!("port {port}: link interrupted: {cause}"))
                }
                LinkEvent::Resumed(port) => Notice::Info(format!("port {port}: link resumed")),
                LinkEvent::PathLost(port, path, cause) => {
                    Notice::Warning(format!("port {port}: path {path} lost: {cause}"))
                }
                LinkEvent::PathUp(port, path) => {
                    Notice::Info(format!("port {port}: path {path} up"))
                }
                // Another attempt follows automatically, and failovers are counted.
                LinkEvent::FailedOver(..) | LinkEvent::Failed { .. } | LinkEvent::Echo(..) => {
                    continue;
                }
            });
        }
        None
    }

    fn add_status(&self, now: Instant, link: &mut LinkStatus, node: &mut Status) {
        let upstream = self.upstream();
        let errors = upstream.errors();
        link.endpoint_errors = counts(errors[0].list());
        node.links.extend(errors[1..].iter().enumerate().map(|(port, errors)| {
            let tunnel = upstream.tunnel(port);
            let mut link = LinkStatus::new(now, format!("port {port}"), tunnel);
            link.errors = counts(errors.list());
            self.links.add_status(port, &mut link);
            link
        }));
    }

    fn set_rate_limit(&mut self, rate: Option<Rate>) {
        self.node.set_rate_limit(rate);
    }

    fn close(&mut self) -> io::Result<()> {
        self.links.close(&mut self.node);
        Ok(())
    }

    fn tracer(&self) -> Tracer {
        self.links.tracer()
    }
}
