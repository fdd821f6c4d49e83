//! The loop around the nodes of a thread.

use super::{DeviceEvent, DeviceNode};
use crate::attached::Attached;
use crate::poller::Poller;
use crate::{Control, Waiting};
use ::switch::congestion::Rate;
use node::faults::Condition;
use std::io;
use std::os::fd::BorrowedFd;
use wire::{Duration, Instant, earliest};

/// The longest time for which commands continue after a stop.
const DRAIN: Duration = Duration::from_ms(1_000);

/// Serves with `nodes`, whose functions may belong together, until `control` returns otherwise;
/// `wake` becomes readable then. Shuts down in order: finishes commands, sends Goodbye to the hosts,
/// makes data durable. `emit` receives events with the number of their node.
///
/// # Errors
/// If data could not be made durable, or the kernel refuses to wait.
pub fn serve<A: Attached>(
    nodes: &mut [DeviceNode<A>],
    wake: BorrowedFd<'_>,
    mut control: impl FnMut() -> Control,
    mut emit: impl FnMut(usize, DeviceEvent),
) -> io::Result<()> {
    let mut several = (nodes.len() > 1).then(|| watch_all(nodes)).transpose()?;
    for node in nodes.iter_mut() {
        node.poller.add_without_spin(wake)?;
        if !node.faults.is_empty() {
            let idle = Poller::new(Waiting::Block)?;
            idle.add_without_spin(wake)?;
            node.idle = Some(idle);
        }
    }
    let ran = loop {
        // One wake-up may stand for several requests.
        match control() {
            Control::Serve => {}
            Control::Report => {
                let reports = nodes.iter().map(DeviceNode::report).enumerate();
                reports.for_each(|(number, report)| emit(number, DeviceEvent::Report(report)));
                continue;
            }
            Control::Status(request) => {
                let all = nodes.iter().map(DeviceNode::status).map(Box::new).enumerate();
                all.for_each(|(number, status)| emit(number, DeviceEvent::Status(request, status)));
                continue;
            }
            Control::RateLimit(rate) => {
                nodes.iter_mut().for_each(|node| node.set_rate_limit(rate));
                continue;
            }
            Control::Stop => break drain(nodes, several.as_mut(), wake, &mut emit),
        }
        if let Err(error) = step(nodes, several.as_mut(), None, &mut emit) {
            break Err(error);
        }
    };
    for (number, node) in nodes.iter_mut().enumerate() {
        node.limits.events.flush(node.clock.now(), &mut |event| emit(number, event));
    }
    ran?;
    for node in nodes.iter_mut() {
        node.node.shut_down();
        let _ = node.perform(node.clock.now(), &mut |_| {});
    }
    let closed: Vec<_> = nodes.iter_mut().map(|node| node.attached_mut().close()).collect();
    for (number, node) in nodes.iter_mut().enumerate() {
        node.forward_notices(&mut |event| emit(number, event));
    }
    closed.into_iter().collect()
}

/// A poller that wakes when one of the nodes' pollers has something.
fn watch_all<A>(nodes: &[DeviceNode<A>]) -> io::Result<Poller> {
    let all = Poller::new(nodes[0].poller.waiting())?;
    nodes.iter().try_for_each(|node| all.add(&node.poller, false))?;
    Ok(all)
}

/// Serves until commands under way are finished.
fn drain<A: Attached>(
    nodes: &mut [DeviceNode<A>],
    mut several: Option<&mut Poller>,
    wake: BorrowedFd<'_>,
    emit: &mut impl FnMut(usize, DeviceEvent),
) -> io::Result<()> {
    for node in nodes.iter_mut() {
        node.poller.remove(wake);
        // Faults do not disturb the shutdown.
        (node.faults, node.condition, node.settled) = Default::default();
    }
    let until = nodes[0].clock.now() + DRAIN;
    while nodes.iter_mut().any(|node| !node.is_drained()) && nodes[0].clock.now() < until {
        step(nodes, several.as_deref_mut(), Some(until), emit)?;
    }
    Ok(())
}

/// One turn of each node, then a wait if nothing happened.
fn step<A: Attached>(
    nodes: &mut [DeviceNode<A>],
    several: Option<&mut Poller>,
    until: Option<Instant>,
    emit: &mut impl FnMut(usize, DeviceEvent),
) -> io::Result<()> {
    let (mut any, mut until) = (false, until);
    for (number, node) in nodes.iter_mut().enumerate() {
        let (moved, timer) = node.turn(&mut |event| emit(number, event))?;
        (any, until) = (any | moved, earliest([until, timer]));
    }
    let clock = nodes[0].clock;
    if any {
        for node in nodes {
            node.poller.busy(clock.now());
            if several.is_some() {
                // What one has done may be work for another.
                node.settled = None;
            }
        }
        return Ok(());
    }
    let first = &mut nodes[0];
    match (&mut first.idle, several) {
        (Some(idle), _) if first.condition.0 == Condition::Stopped => idle,
        (_, Some(several)) => several,
        (_, None) => &mut first.poller,
    }
    .wait(&clock, until)
}

impl<A: Attached> DeviceNode<A> {
    /// Serves as [`serve`], with this node alone.
    ///
    /// # Errors
    /// As [`serve`].
    pub fn run(
        &mut self,
        wake: BorrowedFd<'_>,
        control: impl FnMut() -> Control,
        mut emit: impl FnMut(DeviceEvent),
    ) -> io::Result<()> {
        serve(std::slice::from_mut(self), wake, control, |_, event| emit(event))
    }

    fn set_rate_limit(&mut self, rate: Option<Rate>) {
        self.node.set_rate_limit(rate);
        self.attached_mut().set_rate_limit(rate);
    }

    /// Whether all answers have been sent to the host.
    fn is_drained(&mut self) -> bool {
        self.node.link().is_none() || self.attached_mut().drain() && self.node.has_sent_all()
    }
}
