//! Runs groups of sections on the drive, one after the other.

use super::group::Group;
use super::machine::Event;
use super::peer::Process;
use super::record::{CONFIG_READ, Recorder};
use super::samples::SharedSamples;
use super::section::{Request, Section};
use super::session::Session;
use super::{OnError, Settings};
use crate::Console;
use live::Stop;
use report::{Failure, Outcome};
use wire::{Duration, Instant};
use workload::JobSpec;

/// Time between two updates of the progress.
const LOOK: Duration = Duration::from_ms(100);

/// The way in which a section ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All work is done.
    Done,
    /// Ctrl-C.
    Interrupted,
    /// Stopped after an error, with the reason.
    Stopped(String),
}

/// Results of a group on one target.
pub struct GroupResult<'a> {
    /// Number of the group's first section.
    pub first: usize,
    /// The sections.
    pub sections: &'a [Section],
    /// Number of the target.
    pub target: usize,
    /// The results of each section.
    pub recorders: &'a [Recorder],
    /// CPU time of the other end, if it is visible.
    pub peer_cpu: Option<Duration>,
}

/// Runs the sections of a request.
pub struct Runner<'a> {
    /// The settings.
    settings: &'a Settings,
    /// Request to stop, by Ctrl-C.
    stop: &'a Stop,
    /// The targets.
    sessions: &'a mut [Session],
    /// Index of the current target.
    at: usize,
    /// Seed of data and order.
    seed: u64,
    /// Receiver of progress and messages.
    console: &'a mut dyn Console,
}

impl<'a> Runner<'a> {
    /// Creates a runner for at least one target, with this seed of data and order; it runs until
    /// `stop`.
    pub fn new(
        settings: &'a Settings,
        sessions: &'a mut [Session],
        seed: u64,
        (stop, console): (&'a Stop, &'a mut dyn Console),
    ) -> Self {
        Self { settings, stop, sessions, at: 0, seed, console }
    }

    /// Runs all groups of sections, one after the other, each on every target in turn. `done`
    /// receives the results of each group, also of one that failed.
    ///
    /// # Errors
    /// If a section cannot begin, or if the machine fails.
    pub fn run(
        &mut self,
        request: &Request,
        samples: Option<&SharedSamples>,
        mut done: impl FnMut(GroupResult<'_>),
    ) -> Result<End, Failure> {
        let (epoch, mut first) = (self.now(), 0);
        for sections in request.groups() {
            for target in 0..self.sessions.len() {
                self.at = target;
                if let Some(samples) = samples {
                    let mut samples = samples.lock().expect("no thread panics");
                    samples.target.clone_from(&self.sessions[target].name);
                }
                let recorder =
                    |section: &Section| Recorder::new(epoch, &section.name, samples.cloned());
                let mut recorders: Vec<_> = sections.iter().map(recorder).collect();
                let peer = self.sessions[target].peer;
                let before = peer.and_then(Process::cpu);
                let end = self.run_group(sections, &mut recorders);
                let after = peer.and_then(Process::cpu);
                let peer_cpu = before.zip(after).map(|(before, after)| after - before);
                done(GroupResult { first, sections, target, recorders: &recorders, peer_cpu });
                match end {
                    Ok(End::Done) => {}
                    ended => return ended,
                }
            }
            first += sections.len();
        }
        Ok(End::Done)
    }

    /// Runs the sections of a group at the same time, each with its recorder. Fails if a section
    /// cannot begin, or if the machine fails.
    fn run_group(&mut self, group: &[Section], recorders: &mut [Recorder]) -> Result<End, Failure> {
        if let [Section { workload: JobSpec::ConfigReads { count, gap }, .. }] = group {
            return self.config_reads(*count, *gap, &mut recorders[0]);
        }
        let (epoch, seed) = (recorders[0].epoch, self.seed);
        let mut further = std::mem::take(&mut self.session().further);
        further.iter().for_each(|one| one.begin(group, epoch, seed));
        let mut ends = vec![self.run_own_jobs(group, recorders)];
        for one in &mut further {
            ends.push(one.end(&mut self.session().machine, recorders));
        }
        self.session().further = further;
        let ends = ends.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(ends.into_iter().find(|end| *end != End::Done).unwrap_or(End::Done))
    }

    /// As [`run_group`](Self::run_group), without the jobs on further connections.
    pub(super) fn run_own_jobs(
        &mut self,
        group: &[Section],
        recorders: &mut [Recorder],
    ) -> Result<End, Failure> {
        let seed = self.seed;
        let mut group = Group::new(self.session(), group, recorders, seed)?;
        group.start(self.now());
        let end = self.drive(&mut group)?;
        group.close(self.now(), self.session());
        Ok(end)
    }

    fn session(&mut self) -> &mut Session {
        &mut self.sessions[self.at]
    }

    fn now(&self) -> Instant {
        self.sessions[self.at].machine.clock().now()
    }

    /// Processes the other targets, so that their links stay up. Fails if a target fails.
    fn serve_others(&mut self) -> Outcome {
        let at = self.at;
        let others = self.sessions.iter_mut().enumerate().filter(|(other, _)| *other != at);
        for (_, other) in others {
            other.machine.pump()?;
        }
        Ok(())
    }

    fn switch_trace(&mut self) {
        let switched = self.sessions[self.at].switch_trace(self.settings, self.stop);
        switched.into_iter().for_each(|line| self.console.line(&line));
    }

    fn drive(&mut self, group: &mut Group) -> Result<End, Failure> {
        let clock = self.session().machine.clock();
        let (mut end, mut look, mut seen) = (End::Done, clock.now(), 0);
        let mut lost: Option<(Instant, String)> = None;
        loop {
            let now = clock.now();
            group.run(now);
            if self.settings.on_error == OnError::Stop
                && end == End::Done
                && let Some(error) = group.first_error()
            {
                end = End::Stopped(error);
                group.stop();
            }
            group.advance(now, end == End::Done);
            // The next sections need the drive.
            if group.is_over() && (lost.is_none() || end != End::Done) {
                return Ok(end);
            }
            let session = self.session();
            let (moved, timer) = session.machine.pump()?;
            let signalled = session.signal(group);
            while let Some(event) = self.session().machine.event()? {
                self.link_event(event, group, &mut lost)?;
            }
            if let Some((since, why)) = &lost {
                let patience = clock.now() - *since < self.settings.reconnect;
                if self.settings.on_error == OnError::Stop || !patience {
                    return Ok(End::Stopped(why.clone()));
                }
                if self.stop.is_set() {
                    return Ok(End::Interrupted);
                }
            }
            if clock.now() >= look {
                look = clock.now() + LOOK;
                if self.stop.is_set() && end == End::Done {
                    end = End::Interrupted;
                    group.stop();
                    continue;
                }
                let stalls = group.stalls(std::mem::replace(&mut seen, group.transfers()));
                if lost.is_none()
                    && let Err(error) = self.check_drive(group, stalls)?
                {
                    group.lose(clock.now());
                    return Ok(End::Stopped(error));
                }
                self.console.progress(&group.progress(clock.now()));
                self.serve_others()?;
                self.switch_trace();
            }
            let next = [timer, group.next(), Some(look)].into_iter().flatten().min();
            self.session().machine.wait(moved || signalled, next)?;
        }
    }

    /// Returns the reason why the drive cannot be used, unless an event reports the loss. An idle
    /// drive is probed, so that the run does not wait for a drive that is gone.
    fn check_drive(
        &mut self,
        group: &mut Group,
        stalls: bool,
    ) -> Result<Result<(), String>, Failure> {
        let now = self.now();
        let machine = &mut self.session().machine;
        if stalls && machine.is_up() {
            let status = group.driver.borrow().check_status();
            if let Err(error) = machine.run(status)?
                && machine.is_up()
                && !machine.lose(error)
            {
                return Ok(Err(format!("the drive vanished: {error}")));
            }
        }
        Ok(group.driver.borrow_mut().check_timeouts(now).map_err(|error| error.to_string()))
    }

    fn link_event(
        &mut self,
        event: Event,
        group: &mut Group,
        lost: &mut Option<(Instant, String)>,
    ) -> Outcome {
        let now = self.now();
        match event {
            Event::Down(cause) => {
                self.console.done();
                self.console.warning(&format!("link down: {cause}"));
                self.session().slot.link_down();
                group.lose(now);
                let since = lost.as_ref().map_or(now, |(since, _)| *since);
                *lost = Some((since, format!("the drive vanished: {cause}")));
            }
            Event::Up if lost.is_some() => match self.session().attach_again(group)? {
                Ok(message) => {
                    self.console.note(&format!("link up: {message}"));
                    *lost = None;
                }
                Err(why) => *lost = lost.take().map(|(since, _)| (since, why)),
            },
            Event::Refused(why) => self.console.warning(&format!("no link to {why}")),
            Event::Up => {}
        }
        Ok(())
    }

    fn config_reads(
        &mut self,
        count: u64,
        gap: Duration,
        recorder: &mut Recorder,
    ) -> Result<End, Failure> {
        let (begun, function) = (self.now(), self.session().slot.node().bdf);
        recorder.start = begun;
        let mut end = End::Done;
        let mut look = begun;
        for _ in 0..count {
            let start = self.now();
            let machine = &mut self.session().machine;
            let bus = machine.bus();
            let value = machine.run(async move { bus.config_read(function, 0, 4).await })?;
            if value == u32::MAX {
                recorder.fail("no answer".to_owned());
            } else {
                recorder.succeed(0, CONFIG_READ, self.now() - start, 0);
            }
            if value == u32::MAX && self.settings.on_error == OnError::Stop {
                end = End::Stopped("a configuration read was not answered".to_owned());
                break;
            }
            if self.stop.is_set() {
                end = End::Interrupted;
                break;
            }
            if self.now() >= look {
                look = self.now() + LOOK;
                self.console.progress(&recorder.progress(look));
                self.serve_others()?;
                self.switch_trace();
            }
            let machine = &mut self.session().machine;
            let bus = machine.bus();
            machine.run(async move { bus.sleep(gap).await })?;
        }
        recorder.worked = self.now() - begun;
        Ok(end)
    }
}
