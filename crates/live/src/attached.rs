//! What can be attached below a port of a live node: a function together with the I/O it needs.

use crate::drive::Committer;
use crate::links::Links;
use crate::media::{Media, status_of};
use crate::poller::{Activity, Poller};
use crate::trace::Tracer;
use node::drive::media_of;
use node::{LinkEvent, SwitchNode};
use nvme::block::{Completion, Error};
use nvme::{Commit, Subsystem};
use pcie::dma_test::DmaTest;
use pcie::{Function, Input, Output, Ready, Target};
use std::collections::{BTreeMap, VecDeque};
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

/// CNTLID of the controller that the node's link leads to.
const CONTROLLER: u16 = 1;

/// An NVMe subsystem with the media of its namespaces.
pub struct NvmeDrive {
    subsystem: Subsystem,
    media: BTreeMap<u32, Box<dyn Media>>,
    store: Option<Committer>,
    notices: VecDeque<String>,
    /// When something happened last.
    now: Instant,
    tracer: Tracer,
}

impl NvmeDrive {
    /// A drive with a label; `media` by NSID.
    pub fn new(subsystem: Subsystem, media: BTreeMap<u32, Box<dyn Media>>) -> Self {
        Self {
            subsystem: subsystem.with_label(),
            media,
            store: None,
            notices: VecDeque::new(),
            now: Instant::ZERO,
            tracer: Tracer::off(),
        }
    }

    /// The same, with what stores its records.
    #[must_use]
    pub fn kept_by(self, store: Committer) -> Self {
        Self { store: Some(store), ..self }
    }

    /// The same, recorded by `tracer`.
    #[must_use]
    pub fn traced(mut self, tracer: Tracer) -> Self {
        self.subsystem.set_events(tracer.is_on());
        self.tracer = tracer;
        self
    }

    /// Records the controller's events since the last call.
    fn record(&mut self) {
        self.tracer.events(None, || self.subsystem.poll_event());
    }

    /// Passes changes of records to the store.
    fn start_commits(&mut self) {
        let Some(store) = &self.store else { return };
        while let Some(Commit { id, changes }) = self.subsystem.poll_store() {
            store.start(id, changes);
        }
    }

    /// Takes the changes that are stored; returns whether there was any.
    fn end_commits(&mut self, now: Instant, poller: &Poller) -> bool {
        let Some(store) = &self.store else { return false };
        if poller.take_ready(store.signal()) {
            store.clear_signal();
        }
        let mut moved = false;
        while let Some((id, outcome)) = store.poll_completion() {
            if let Err(error) = &outcome {
                self.notices.push_back(format!("cannot store a change of the drive: {error}"));
            }
            let outcome = outcome.map_err(|error| status_of(&error));
            self.subsystem.complete_store(now, id, outcome);
            moved = true;
        }
        moved
    }

    /// Stores all that is to be stored, and waits for it.
    fn store_all(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        loop {
            self.start_commits();
            let Some(store) = self.store.as_ref().filter(|_| !self.subsystem.is_stored()) else {
                return result;
            };
            let Some((id, outcome)) = store.wait() else { return result };
            let stored = outcome.as_ref().copied().map_err(status_of);
            result = result.and(outcome);
            self.subsystem.complete_store(self.now, id, stored);
        }
    }

    /// Passes block requests to the media; returns whether any completed at once.
    fn start_blocks(&mut self, now: Instant) -> bool {
        let (mut ended, mut under_way) = (false, false);
        while let Some(request) = self.subsystem.poll_block() {
            self.record();
            let (id, nsid) = (request.id, request.nsid);
            let outcome = match media_of(&mut self.media, &request) {
                Ok(media) => media.start(request),
                Err(error) => Some(Err(error)),
            };
            match outcome {
                Some(outcome) => {
                    complete(&mut self.subsystem, &self.tracer, now, (nsid, id), outcome);
                    ended = true;
                }
                None => under_way = true,
            }
        }
        if under_way {
            for (nsid, media) in &mut self.media {
                if media.submit() {
                    ended |=
                        end_blocks(&mut self.subsystem, &self.tracer, now, *nsid, &mut **media);
                }
            }
        }
        ended
    }
}

/// Completes what a medium has done; returns whether that was anything.
fn end_blocks(
    subsystem: &mut Subsystem,
    tracer: &Tracer,
    now: Instant,
    nsid: u32,
    media: &mut dyn Media,
) -> bool {
    let mut ended = false;
    while let Some((id, outcome)) = media.poll_completion() {
        complete(subsystem, tracer, now, (nsid, id), outcome);
        ended = true;
    }
    ended
}

/// Completes a block request, by its namespace and its ID.
fn complete(
    subsystem: &mut Subsystem,
    tracer: &Tracer,
    now: Instant,
    (nsid, id): (u32, u64),
    outcome: Completion,
) {
    if outcome == Err(Error::ReadOnly) {
        // The media have become so: every host hears of it (SMART, an event).
        subsystem.set_read_only(now, nsid, true);
    }
    // The media finished before the controller continues.
    let ended = tracer.time();
    subsystem.complete_block(now, id, outcome);
    tracer.events(ended, || subsystem.poll_event());
}

impl Function for NvmeDrive {
    fn handle(&mut self, now: Instant, input: Input) {
        self.now = now;
        self.subsystem.port(CONTROLLER).handle(now, input);
        self.record();
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let mut output = self.subsystem.port(CONTROLLER).poll(now, ready);
        // RAM and the page cache complete at once: a command then needs one pass, not two.
        if matches!(output, Output::Wait(_)) && self.start_blocks(now) {
            output = self.subsystem.port(CONTROLLER).poll(now, ready);
        }
        self.start_commits();
        self.record();
        output
    }

    fn ready(&self) -> Ready {
        self.subsystem.controller(CONTROLLER).ready()
    }
}

impl Attached for NvmeDrive {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        let mut moved = self.start_blocks(now) | self.end_commits(now, poller);
        self.start_commits();
        for (nsid, media) in &mut self.media {
            if media.signal().is_some_and(|fd| poller.take_ready(fd)) {
                media.clear_signal();
            }
            moved |= end_blocks(&mut self.subsystem, &self.tracer, now, *nsid, &mut **media);
        }
        Ok(Activity { moved, timer: None })
    }

    fn watch(&self, poller: &Poller) -> io::Result<()> {
        self.media
            .values()
            .filter_map(|media| media.signal())
            .chain(self.store.as_ref().map(Committer::signal))
            .try_for_each(|fd| poller.add_without_spin(fd))
    }

    fn begin(&mut self) {
        self.media.values_mut().for_each(|media| media.begin());
        // That it has power, before anybody uses it.
        if let Err(error) = self.store_all() {
            self.notices.push_back(format!("cannot store that the drive has power: {error}"));
        }
    }

    fn drain(&mut self) -> bool {
        self.subsystem.stop_fetching();
        self.start_commits();
        self.subsystem.is_drained()
    }

    fn take_notice(&mut self) -> Option<String> {
        let notice = self.notices.pop_front();
        notice.or_else(|| self.media.values_mut().find_map(|media| media.take_notice()))
    }

    fn report(&self) -> Report {
        vec![(
            "endpoint".into(),
            format!("errors: {}", self.subsystem.controller(CONTROLLER).errors()),
        )]
    }

    fn close(&mut self) -> io::Result<()> {
        // Close all, also if one fails.
        let mut ended: Vec<_> = self.media.values_mut().map(|media| media.close()).collect();
        self.subsystem.stop_fetching();
        ended.push(self.store_all());
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
