//! The I/O of a drive: its media and the store of its records.

use super::parts::Exchange;
use crate::poller::Poller;
use crate::trace::Tracer;
use credentials::host_identifier;
use node::DriveNode;
use node::drive::{ContentsId, DriveOutput};
use nvme::block::{Completion, Error};
use nvme::{Commit, Subsystem};
use pcie::{Function, Input, Output, Ready};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use storage::drive::{Committed, Committer};
use storage::media::{Media, status_of};
use wire::trace::Tap;
use wire::{Instant, earliest};

/// A drive with the media of its namespaces.
pub(super) struct Drive {
    pub node: DriveNode,
    media: BTreeMap<ContentsId, Box<dyn Media>>,
    /// Media of deleted namespaces without requests under way.
    closing: Vec<Box<dyn Media>>,
    store: Option<Committer>,
    /// Messages between controller and parts, if the drive is divided.
    exchange: Option<Exchange>,
    notices: VecDeque<String>,
    /// Time of the last event.
    now: Instant,
    tracer: Tracer,
    /// Whether there is more than one controller. Then `stirred` is kept.
    shared: bool,
    /// Whether something happened that may concern another controller.
    stirred: bool,
}

impl Drive {
    /// A drive with a label; `media` by NSID.
    pub fn new(subsystem: Subsystem, mut media: BTreeMap<u32, Box<dyn Media>>) -> Self {
        let shared = subsystem.controllers() > 1;
        let node = DriveNode::new(subsystem);
        let media = node.contents().filter_map(|(nsid, id)| Some((id, media.remove(&nsid)?)));
        Self {
            media: media.collect(),
            node,
            closing: Vec::new(),
            store: None,
            exchange: None,
            notices: VecDeque::new(),
            now: Instant::ZERO,
            tracer: Tracer::off(),
            shared,
            stirred: false,
        }
    }

    /// Stores records with `store`.
    pub fn keep_by(&mut self, store: Committer) {
        self.store = Some(store);
    }

    /// Exchanges messages between controller and parts.
    pub fn exchanging(self, exchange: Exchange) -> Self {
        Self { exchange: Some(exchange), ..self }
    }

    /// Records the drive's events with `tracer`.
    pub fn trace(&mut self, tracer: Tracer) {
        self.node.subsystem_mut().set_events(tracer.is_on());
        self.tracer = tracer;
    }

    /// Records the controller's events and the begin of faults since the last call.
    fn record(&mut self) {
        self.tracer.events(None, || self.node.subsystem_mut().poll_event());
        while let Some((_, fault)) = self.node.poll_fault() {
            self.tracer.fault(Tap::FUNCTION, &fault);
            self.notices.push_back(format!("fault begins: {fault}"));
        }
    }

    /// Executes the drive's actions; returns whether any block request completed at once.
    fn carry_out(&mut self, now: Instant) -> bool {
        let (mut ended, mut under_way) = (false, false);
        while let Some(output) = self.node.poll_drive() {
            match output {
                DriveOutput::Block(contents, request) => {
                    self.record();
                    let id = request.id;
                    let outcome = match self.media.get_mut(&contents) {
                        Some(media) => media.start(request),
                        None => Some(Err(Error::Internal)),
                    };
                    ended |= outcome.is_some();
                    match outcome {
                        Some(outcome) => self.complete(now, contents, id, outcome),
                        None => under_way = true,
                    }
                }
                DriveOutput::Fail(contents, id, error) => {
                    self.record();
                    self.complete(now, contents, id, Err(error));
                    ended = true;
                }
                DriveOutput::Store(commit) => self.start_commit(commit),
                DriveOutput::Close(contents) => self.closing.extend(self.media.remove(&contents)),
            }
        }
        if under_way && self.media.values_mut().fold(false, |any, media| any | media.submit()) {
            ended |= self.end_blocks(now);
        }
        ended
    }

    /// Passes completions of the media to the drive; returns whether there was any.
    fn end_blocks(&mut self, now: Instant) -> bool {
        let done = |(contents, media): (&ContentsId, &mut Box<dyn Media>)| {
            let (id, outcome) = media.poll_completion()?;
            Some((*contents, id, outcome))
        };
        let mut any = false;
        while let Some((contents, id, outcome)) = self.media.iter_mut().find_map(done) {
            self.complete(now, contents, id, outcome);
            any = true;
        }
        any
    }

    fn complete(&mut self, now: Instant, contents: ContentsId, id: u64, outcome: Completion) {
        self.stirred = self.shared;
        // Recorded before the controller continues.
        let ended = self.tracer.time();
        self.node.complete_block(now, contents, id, outcome);
        self.tracer.events(ended, || self.node.subsystem_mut().poll_event());
    }

    fn start_commits(&mut self) {
        while let Some(commit) = self.node.poll_store() {
            self.start_commit(commit);
        }
    }

    fn start_commit(&mut self, commit: Commit) {
        let store = self.store.as_ref();
        store.expect("a drive with records has what stores them").start(commit);
    }

    /// Passes the outcome of the stored change to the drive; returns whether there was one.
    fn end_commits(&mut self, now: Instant, poller: &Poller) -> io::Result<bool> {
        let Some(store) = &self.store else { return Ok(false) };
        if poller.take_ready(store.signal()) {
            store.clear_signal();
        }
        let Some((_, outcome)) = store.poll_completion() else { return Ok(false) };
        self.end_commit(now, outcome, Some(poller))?;
        Ok(true)
    }

    /// Handles the outcome of a change; returns whether it is stored.
    fn end_commit(
        &mut self,
        now: Instant,
        outcome: Committed,
        poller: Option<&Poller>,
    ) -> io::Result<bool> {
        let (stored, media) = match outcome {
            Ok(media) => (Ok(()), media),
            Err(error) => {
                self.notices.push_back(format!("cannot store a change of the drive: {error}"));
                (Err(status_of(&error)), None)
            }
        };
        self.stirred = self.shared;
        let created = self.node.complete_store(now, stored);
        match (created, media) {
            (Some(contents), Some(mut media)) => {
                media.begin();
                if let (Some(poller), Some(fd)) = (poller, media.signal()) {
                    poller.add_without_spin(fd)?;
                }
                self.media.insert(contents, Box::new(media));
            }
            (Some(contents), None) => {
                let nsid = contents.nsid();
                self.notices
                    .push_back(format!("the contents of namespace {nsid} cannot be opened"));
            }
            (None, _) => {}
        }
        Ok(stored.is_ok())
    }

    /// Stores all pending changes, and waits for them.
    fn store_all(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        loop {
            self.start_commits();
            let stored = self.node.subsystem().is_stored();
            let Some(store) = self.store.as_ref().filter(|_| !stored) else { return result };
            let Some((_, outcome)) = store.wait() else { return result };
            if !self.end_commit(self.now, outcome, None)? {
                result = Err(io::Error::other("a change of the drive could not be stored"));
            }
        }
    }

    /// Binds a controller to the host of this name: its Host Identifier cannot be claimed.
    pub fn bind_host(&mut self, controller: u16, name: Option<&str>) {
        self.node.subsystem_mut().port(controller).bind_host(name.map(host_identifier));
    }

    /// As [`DriveNode::set_lease`].
    pub fn set_lease(&mut self, controller: u16, until: Instant) {
        self.stirred = true;
        self.node.set_lease(controller, until);
    }

    /// Passes an input to a controller.
    pub fn handle(&mut self, now: Instant, controller: u16, input: Input) {
        self.now = now;
        self.stirred = self.shared;
        self.node.port(controller).handle(now, input);
        self.record();
    }

    /// The next output of a controller, after the drive's actions.
    pub fn poll(&mut self, now: Instant, controller: u16, ready: Ready) -> Output {
        let output = loop {
            let mut wait = match self.node.port(controller).poll(now, ready) {
                Output::Wait(wait) => wait,
                output => break output,
            };
            // RAM and the page cache complete at once, so a command needs one pass instead of two.
            if !self.carry_out(now) {
                wait.until = earliest([wait.until, self.node.next_late()]);
                break Output::Wait(wait);
            }
        };
        self.record();
        output
    }

    /// Executes what is due. With the poller that [watches](Self::watch) the drive, also handles its
    /// ready descriptors. Returns whether anything happened.
    pub fn service(&mut self, now: Instant, poller: Option<&Poller>) -> io::Result<bool> {
        let mut moved = self.carry_out(now);
        if let Some(poller) = poller {
            moved |= self.end_commits(now, poller)?;
            if let Some(exchange) = &self.exchange {
                moved |= exchange.service(now, self.node.subsystem_mut(), poller);
            }
            for media in self.media.values_mut() {
                // Cleared before completions are taken, so that no completion in between is missed.
                if media.signal().is_some_and(|fd| poller.take_ready(fd)) {
                    media.clear_signal();
                }
            }
            moved |= self.end_blocks(now);
            for media in self.closing.drain(..) {
                if let Some(fd) = media.signal() {
                    poller.remove(fd);
                }
                if let Some(store) = &self.store {
                    store.close_media(media);
                }
            }
        }
        Ok(moved | std::mem::take(&mut self.stirred))
    }

    /// Registers the descriptors of media and store.
    pub fn watch(&self, poller: &Poller) -> io::Result<()> {
        self.media
            .values()
            .filter_map(|media| media.signal())
            .chain(self.store.as_ref().map(Committer::signal))
            .chain(self.exchange.as_ref().map(Exchange::signal))
            .try_for_each(|fd| poller.add_without_spin(fd))
    }

    /// Opens the media, and stores the power-on before a host uses the drive.
    pub fn begin(&mut self) {
        self.media.values_mut().for_each(|media| media.begin());
        if let Err(error) = self.store_all() {
            self.notices.push_back(format!(
                "cannot store that the drive has power: {error}; it is read-only until that can be \
                 stored"
            ));
        }
    }

    /// Takes no new commands; returns whether all are done.
    pub fn drain(&mut self) -> bool {
        self.node.subsystem_mut().stop_fetching();
        self.start_commits();
        self.node.subsystem().is_drained()
    }

    /// The next message for the user.
    pub fn take_notice(&mut self) -> Option<String> {
        let notice = self.notices.pop_front();
        notice.or_else(|| self.media.values_mut().find_map(|media| media.take_notice()))
    }

    /// Makes data and records durable.
    pub fn close(&mut self) -> io::Result<()> {
        // Closes all media, even if one fails.
        let mut ended: Vec<_> = self.media.values_mut().map(|media| media.close()).collect();
        self.node.subsystem_mut().stop_fetching();
        ended.push(self.store_all());
        ended.into_iter().collect()
    }

    pub fn tracer(&self) -> Tracer {
        self.tracer.clone()
    }
}
