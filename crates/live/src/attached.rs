//! What can be attached below a port of a live node: a function together with the I/O it needs.

use crate::links::Links;
use crate::media::Media;
use crate::poller::{Activity, Poller};
use crate::trace::Tracer;
use node::drive::media_of;
use node::{LinkEvent, SwitchNode};
use nvme::Controller;
use nvme::block::Completion;
use pcie::dma_test::DmaTest;
use pcie::{Function, Input, Output, Ready, Target};
use std::io;
use switch::Upstream;
use switch::upstream::Settings;
use wire::Instant;

/// A function and its I/O; by default it has none.
pub trait Attached: Function {
    /// Does the I/O that is due on the descriptors that `poller` reports ready. Returns whether
    /// anything happened, and when to call again at the latest.
    ///
    /// # Errors
    /// Only errors that end the node.
    fn service(&mut self, _now: Instant, _poller: &Poller) -> io::Result<Activity> {
        Ok(Activity::default())
    }

    /// Registers its descriptors.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    fn watch(&self, _poller: &Poller) -> io::Result<()> {
        Ok(())
    }

    /// The node starts to serve: its start can no longer fail.
    fn begin(&mut self) {}

    /// Stops taking new work; returns whether all work is done.
    fn drain(&mut self) -> bool {
        true
    }

    /// The next message for the user; each is returned once.
    fn take_notice(&mut self) -> Option<String> {
        None
    }

    /// The counters, by name.
    fn report(&self) -> Report {
        Report::new()
    }

    /// Shuts down in order: sends Goodbye, makes data durable.
    ///
    /// # Errors
    /// If data could not be made durable.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The tracer. The node it is attached to records with it too.
    fn tracer(&self) -> Tracer {
        Tracer::off()
    }
}

/// The test function has no I/O.
impl Attached for DmaTest {
    fn report(&self) -> Report {
        vec![("endpoint".into(), self.endpoint().errors().to_string())]
    }
}

/// Counters for the user: name and text.
pub type Report = Vec<(String, String)>;

/// An NVMe controller with the media of its namespaces.
pub struct NvmeDrive {
    controller: Controller,
    media: Vec<Box<dyn Media>>,
    tracer: Tracer,
}

impl NvmeDrive {
    /// A drive with a label; `media` are namespaces 1, 2, ….
    pub fn new(controller: Controller, media: Vec<Box<dyn Media>>) -> Self {
        Self { controller: controller.with_label(), media, tracer: Tracer::off() }
    }

    /// The same, recorded by `tracer`.
    #[must_use]
    pub fn traced(mut self, tracer: Tracer) -> Self {
        self.controller.set_events(tracer.is_on());
        self.tracer = tracer;
        self
    }

    /// Records the controller's events since the last call.
    fn record(&mut self) {
        self.tracer.events(None, || self.controller.poll_event());
    }

    /// Completes a block request.
    fn complete(&mut self, now: Instant, id: u64, outcome: Completion) {
        // The media finished before the controller continues.
        let ended = self.tracer.time();
        self.controller.complete_block(now, id, outcome);
        self.tracer.events(ended, || self.controller.poll_event());
    }

    /// Passes block requests to the media; returns whether any completed at once.
    fn start_blocks(&mut self, now: Instant) -> bool {
        let (mut ended, mut under_way) = (false, false);
        while let Some(request) = self.controller.poll_block() {
            self.record();
            let id = request.id;
            let outcome = match media_of(&mut self.media, &request) {
                Ok(media) => media.start(request),
                Err(error) => Some(Err(error)),
            };
            match outcome {
                Some(outcome) => {
                    self.complete(now, id, outcome);
                    ended = true;
                }
                None => under_way = true,
            }
        }
        if under_way {
            for index in 0..self.media.len() {
                if self.media[index].submit() {
                    ended |= self.end_blocks(now, index);
                }
            }
        }
        ended
    }

    /// Takes the completed requests of a medium; returns whether there were any.
    fn end_blocks(&mut self, now: Instant, index: usize) -> bool {
        let mut ended = false;
        while let Some((id, outcome)) = self.media[index].poll_completion() {
            self.complete(now, id, outcome);
            ended = true;
        }
        ended
    }
}

impl Function for NvmeDrive {
    fn handle(&mut self, now: Instant, input: Input) {
        self.controller.handle(now, input);
        self.record();
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let mut output = self.controller.poll(now, ready);
        // RAM and what is in the page cache complete at once: a command then needs one pass, not two.
        if matches!(output, Output::Wait(_)) && self.start_blocks(now) {
            output = self.controller.poll(now, ready);
        }
        self.record();
        output
    }

    fn ready(&self) -> Ready {
        self.controller.ready()
    }
}

impl Attached for NvmeDrive {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        let mut moved = self.start_blocks(now);
        for index in 0..self.media.len() {
            if self.media[index].signal().is_some_and(|fd| poller.take_ready(fd)) {
                self.media[index].clear_signal();
            }
            moved |= self.end_blocks(now, index);
        }
        Ok(Activity { moved, timer: None })
    }

    fn watch(&self, poller: &Poller) -> io::Result<()> {
        self.media
            .iter()
            .filter_map(|media| media.signal())
            .try_for_each(|fd| poller.add_without_spin(fd))
    }

    fn begin(&mut self) {
        self.media.iter_mut().for_each(|media| media.begin());
    }

    fn drain(&mut self) -> bool {
        self.controller.stop_fetching();
        self.controller.is_drained()
    }

    fn take_notice(&mut self) -> Option<String> {
        self.media.iter_mut().find_map(|media| media.take_notice())
    }

    fn report(&self) -> Report {
        vec![("endpoint".into(), format!("errors: {}", self.controller.errors()))]
    }

    fn close(&mut self) -> io::Result<()> {
        // Close all, also if one fails.
        let ended: Vec<_> = self.media.iter_mut().map(|media| media.close()).collect();
        ended.into_iter().collect()
    }

    fn tracer(&self) -> Tracer {
        self.tracer.clone()
    }
}

/// A switch with the connections of its links.
pub struct Switch {
    node: SwitchNode,
    links: Links,
}

impl Switch {
    /// A switch; `links` has one connection per downstream port.
    pub fn new(settings: Settings, links: Links) -> Self {
        Self { node: SwitchNode::new(settings, links.limit()), links }
    }

    /// The same, with its links recorded.
    #[must_use]
    pub fn traced(mut self, tracer: Tracer) -> Self {
        self.links = self.links.traced(tracer);
        self
    }

    /// The switch itself.
    pub fn upstream(&self) -> &Upstream {
        self.node.upstream()
    }

    /// The connections.
    pub fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }

    /// As [`Upstream::hold`].
    pub fn hold(&mut self, port: usize, held: bool) {
        self.node.hold(port, held);
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

    fn queue(&self, target: Target) -> usize {
        self.node.queue(target)
    }

    fn queue_ready(&self, queue: usize) -> Ready {
        self.node.queue_ready(queue)
    }
}

impl Attached for Switch {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        self.links.service(now, &mut self.node, poller)
    }

    fn take_notice(&mut self) -> Option<String> {
        while let Some(event) = self.links.event() {
            match event {
                LinkEvent::Up(port, _) => return Some(format!("port {port}: link up")),
                LinkEvent::Down { link: port, cause, .. } => {
                    return Some(format!("port {port}: link down: {cause}"));
                }
                LinkEvent::Failed { link: port, why, permanent: true, .. } => {
                    return Some(format!("port {port}: no link to {why}"));
                }
                // Another attempt follows by itself.
                LinkEvent::Failed { .. } | LinkEvent::Echo(..) => {}
            }
        }
        None
    }

    fn report(&self) -> Report {
        let errors = self.upstream().errors();
        let mut lines = vec![("upstream port".into(), format!("errors: {}", errors[0]))];
        lines.extend(errors[1..].iter().enumerate().map(|(port, errors)| {
            let counters = self.upstream().tunnel(port).counters();
            (format!("downstream port {port}"), format!("{counters}; errors: {errors}"))
        }));
        lines
    }

    fn close(&mut self) -> io::Result<()> {
        self.links.close(&mut self.node);
        Ok(())
    }

    fn tracer(&self) -> Tracer {
        self.links.tracer()
    }
}
