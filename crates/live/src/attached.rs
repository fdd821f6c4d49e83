//! What can hang below a port in the live world: a function together with
//! the I/O it needs.

use crate::links::Links;
use crate::media::Media;
use crate::poller::Poller;
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
    /// Does the I/O that is due, with the descriptors that `poller` says are
    /// ready. Yields whether anything happened, and when to look again at the
    /// latest.
    ///
    /// # Errors
    /// Only what this node cannot go on with.
    fn service(&mut self, _now: Instant, _poller: &Poller) -> io::Result<Activity> {
        Ok(Activity::default())
    }

    /// Registers what is to be watched.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    fn watch(&self, _poller: &Poller) -> io::Result<()> {
        Ok(())
    }

    /// The node starts to serve: nothing before it in the start can fail any
    /// more.
    fn begin(&mut self) {}

    /// Takes no new work from now on; whether all that was taken is done.
    fn drain(&mut self) -> bool {
        true
    }

    /// What its user should know and has not been told.
    fn news(&mut self) -> Option<String> {
        None
    }

    /// What was counted: of what, and how much.
    fn report(&self) -> Report {
        Report::new()
    }

    /// Ends in order: says goodbye, makes data durable.
    ///
    /// # Errors
    /// If data could not be made durable.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// What records here; whoever it is attached to records with it too.
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

/// Counters for a user: what they are of, and what they say.
pub type Report = Vec<(String, String)>;

/// What [`Attached::service`] found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activity {
    /// Something happened: look again before waiting.
    pub moved: bool,
    /// The next timer.
    pub timer: Option<Instant>,
}

/// An NVMe controller with the media of its namespaces.
pub struct NvmeDrive {
    controller: Controller,
    media: Vec<Box<dyn Media>>,
    tracer: Tracer,
}

impl NvmeDrive {
    /// A drive that tells its label; `media` are namespaces 1, 2, ….
    pub fn new(controller: Controller, media: Vec<Box<dyn Media>>) -> Self {
        Self { controller: controller.with_label(), media, tracer: Tracer::off() }
    }

    /// The same, with what passes it recorded.
    #[must_use]
    pub fn traced(mut self, tracer: Tracer) -> Self {
        self.controller.set_events(tracer.is_on());
        self.tracer = tracer;
        self
    }

    /// Records what has happened in the controller since it was last asked.
    fn record(&mut self) {
        self.tracer.events(None, || self.controller.poll_event());
    }

    /// Ends a block request.
    fn complete(&mut self, now: Instant, id: u64, outcome: Completion) {
        // The media had ended before the controller went on with it.
        let ended = self.tracer.time();
        self.controller.complete_block(now, id, outcome);
        self.tracer.events(ended, || self.controller.poll_event());
    }
}

impl Function for NvmeDrive {
    fn handle(&mut self, now: Instant, input: Input) {
        self.controller.handle(now, input);
        self.record();
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let mut output = self.controller.poll(now, ready);
        // RAM answers at once, so that a command needs one pass, not two.
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

impl NvmeDrive {
    /// Hands block requests to the media; whether any ended at once.
    fn start_blocks(&mut self, now: Instant) -> bool {
        let mut ended = false;
        while let Some(request) = self.controller.poll_block() {
            self.record();
            let id = request.id;
            let outcome = match media_of(&mut self.media, &request) {
                Ok(media) => media.start(request),
                Err(error) => Some(Err(error)),
            };
            if let Some(outcome) = outcome {
                self.complete(now, id, outcome);
                ended = true;
            }
        }
        ended
    }
}

impl Attached for NvmeDrive {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        let mut moved = self.start_blocks(now);
        for index in 0..self.media.len() {
            if self.media[index].signal().is_some_and(|fd| poller.take(fd)) {
                self.media[index].heard();
            }
            while let Some((id, outcome)) = self.media[index].finished() {
                self.complete(now, id, outcome);
                moved = true;
            }
        }
        Ok(Activity { moved, timer: None })
    }

    fn watch(&self, poller: &Poller) -> io::Result<()> {
        self.media
            .iter()
            .filter_map(|media| media.signal())
            .try_for_each(|fd| poller.add_seldom(fd))
    }

    fn begin(&mut self) {
        self.media.iter_mut().for_each(|media| media.begin());
    }

    fn drain(&mut self) -> bool {
        self.controller.stop_fetching();
        self.controller.is_drained()
    }

    fn news(&mut self) -> Option<String> {
        self.media.iter_mut().find_map(|media| media.news())
    }

    fn report(&self) -> Report {
        vec![("endpoint".into(), format!("errors: {}", self.controller.errors()))]
    }

    fn close(&mut self) -> io::Result<()> {
        // One that fails keeps no other from its end.
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
    /// A switch; `links` has one connection a downstream port.
    pub fn new(settings: Settings, links: Links) -> Self {
        Self { node: SwitchNode::new(settings, links.limit()), links }
    }

    /// The same, with what passes its links recorded.
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

    fn news(&mut self) -> Option<String> {
        while let Some(event) = self.links.event() {
            match event {
                LinkEvent::Up(port, _) => return Some(format!("port {port}: link up")),
                LinkEvent::Down { link: port, cause, .. } => {
                    return Some(format!("port {port}: link down: {cause}"));
                }
                LinkEvent::Failed { link: port, why, again: true, .. } => {
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
        for (port, errors) in errors[1..].iter().enumerate() {
            let counters = self.upstream().tunnel(port).counters();
            lines
                .push((format!("downstream port {port}"), format!("{counters}; errors: {errors}")));
        }
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
