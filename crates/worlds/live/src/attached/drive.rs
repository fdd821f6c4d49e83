//! An NVMe subsystem with its media and records.

use super::{Attached, Report};
use crate::poller::{Activity, Poller};
use crate::trace::Tracer;
use node::drive::media_of;
use nvme::block::{Completion, Error};
use nvme::{Commit, Contents, Subsystem};
use pcie::{Function, Input, Output, Ports, Ready};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use storage::drive::{Changes, Committed, Committer, NewContents};
use storage::media::{FileMedia, Media, status_of};
use wire::Instant;

/// CNTLID of the controller that the node's link leads to.
const CONTROLLER: u16 = 1;

/// An NVMe subsystem with the media of its namespaces.
pub struct NvmeDrive {
    subsystem: Subsystem,
    media: BTreeMap<u32, Box<dyn Media>>,
    store: Option<Committer>,
    /// Media of deleted namespaces that requests are under way for.
    leaving: Vec<(u32, Box<dyn Media>)>,
    /// Namespaces that the change being stored creates and deletes.
    changing: (Option<u32>, Vec<u32>),
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
            leaving: Vec::new(),
            changing: Default::default(),
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
        while let Some(Commit { id, create, changes, remove }) = self.subsystem.poll_store() {
            let created = create.as_ref().map(|one| one.nsid);
            self.changing = (created, remove.iter().map(|one| one.nsid).collect());
            // Sparse, as the space of an SSD is.
            let new = |one: Contents| NewContents { name: one.name, size: one.bytes, sparse: true };
            let remove = remove.into_iter().map(|one| one.name).collect();
            store.start(id, Changes { create: create.map(new), records: changes, remove });
        }
    }

    /// Takes the changes that are stored; returns whether there was any.
    fn end_commits(&mut self, now: Instant, poller: &Poller) -> io::Result<bool> {
        let Some(store) = &self.store else { return Ok(false) };
        if poller.take_ready(store.signal()) {
            store.clear_signal();
        }
        let Some((id, outcome)) = store.poll_completion() else { return Ok(false) };
        self.end_commit(now, id, outcome, Some(poller))?;
        Ok(true)
    }

    /// A change is stored, or could not be. Whether it is.
    fn end_commit(
        &mut self,
        now: Instant,
        id: u64,
        outcome: Committed,
        poller: Option<&Poller>,
    ) -> io::Result<bool> {
        let (created, removed) = std::mem::take(&mut self.changing);
        let stored = match outcome {
            Ok(media) => {
                let leaving = |nsid| Some((nsid, self.media.remove(&nsid)?));
                self.leaving.extend(removed.into_iter().filter_map(leaving));
                if let Some(nsid) = created {
                    self.add_media(nsid, media, poller)?;
                }
                Ok(())
            }
            Err(error) => {
                self.notices.push_back(format!("cannot store a change of the drive: {error}"));
                Err(status_of(&error))
            }
        };
        self.subsystem.complete_store(now, id, stored);
        Ok(stored.is_ok())
    }

    fn add_media(
        &mut self,
        nsid: u32,
        media: Option<FileMedia>,
        poller: Option<&Poller>,
    ) -> io::Result<()> {
        let Some(mut media) = media else {
            self.notices.push_back(format!("the contents of namespace {nsid} cannot be opened"));
            return Ok(());
        };
        media.begin();
        if let (Some(poller), Some(fd)) = (poller, media.signal()) {
            poller.add_without_spin(fd)?;
        }
        self.media.insert(nsid, Box::new(media));
        Ok(())
    }

    /// Completes what is under way for deleted namespaces; media without any are closed.
    fn end_leaving(&mut self, now: Instant, poller: &Poller) -> bool {
        let mut ended = false;
        for (nsid, media) in &mut self.leaving {
            clear_signal(&mut **media, poller);
            ended |= end_blocks(&mut self.subsystem, &self.tracer, now, *nsid, &mut **media);
        }
        for (_, media) in self.leaving.extract_if(.., |(_, media)| media.is_idle()) {
            if let Some(fd) = media.signal() {
                poller.remove(fd);
            }
            if let Some(store) = &self.store {
                store.close_media(media);
            }
        }
        ended
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
            let stored = self.end_commit(self.now, id, outcome, None)?;
            if !stored {
                result = Err(io::Error::other("a change of the drive could not be stored"));
            }
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

/// Before its completions are taken, so that none in between is missed.
fn clear_signal(media: &mut dyn Media, poller: &Poller) {
    if media.signal().is_some_and(|fd| poller.take_ready(fd)) {
        media.clear_signal();
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

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

impl Attached for NvmeDrive {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        let mut moved = self.start_blocks(now) | self.end_commits(now, poller)?;
        self.start_commits();
        for (nsid, media) in &mut self.media {
            clear_signal(&mut **media, poller);
            moved |= end_blocks(&mut self.subsystem, &self.tracer, now, *nsid, &mut **media);
        }
        moved |= self.end_leaving(now, poller);
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
            self.notices.push_back(format!(
                "cannot store that the drive has power: {error}; it is read-only until that can be \
                 stored"
            ));
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
