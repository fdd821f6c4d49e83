//! Runs sections on the drive, one after the other.

use super::machine::Event;
use super::options::{Section, Verify};
use super::record::{CONFIG_READ, Recorder};
use super::session::Session;
use super::{Args, OnError};
use crate::cpu::CpuTime;
use crate::progress::Progress;
use crate::signals::Stop;
use report::{Failure, Outcome};
use sim::workload::Workload;
use stats::random::Random;
use wire::{Duration, Instant};
use workload::{Costs, Fio, Jobs, Settings, Verification, Work, Written};

/// How often progress is shown and slow things are looked at.
const LOOK: Duration = Duration::from_ms(100);

/// How a section ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All is done.
    Done,
    /// Ctrl-C.
    Interrupted,
    /// After an error, as asked.
    Stopped(String),
}

/// What sections of a run share.
pub struct Runner<'a> {
    /// The options.
    pub args: &'a Args,
    /// Ctrl-C.
    pub stop: &'a Stop,
    /// The targets.
    pub sessions: &'a mut [Session],
    /// The one whose turn it is.
    pub at: usize,
    /// The seed of data and order.
    pub seed: u64,
    /// The line on the terminal.
    pub progress: Progress,
}

impl Runner<'_> {
    /// Runs a section. Fails if it cannot begin, or if the machine breaks down.
    pub fn run(&mut self, section: &Section, recorder: &mut Recorder) -> Result<End, Failure> {
        if let Workload::ConfigReads { count, gap } = section.workload {
            return self.config_reads(count, gap, recorder);
        }
        let namespace = self.session().namespace(section)?;
        let fio = section.fio(namespace.blocks << namespace.block_shift).expect("blocks");
        let range = (fio.offset, fio.part() * fio.numjobs as u64);
        let mut jobs = self.jobs(section, fio).ok_or_else(|| {
            let what = "host memory is too small for the buffers: iodepth × bs × numjobs";
            Failure(section.origin.fail(what).to_string())
        })?;
        let (mut start, mut cpu) = (self.now(), CpuTime::now());
        recorder.start = start;
        jobs.start(start);
        let mut end = End::Done;
        if section.ramp > Duration::ZERO {
            recorder.ramping = true;
            jobs.ramp();
            end = self.drive(&mut jobs, recorder, Some(start + section.ramp))?;
            recorder.ramping = false;
            (start, cpu) = (self.now(), CpuTime::now());
            recorder.start = start;
            jobs.measure_from(start);
        }
        if end == End::Done {
            end = self.drive(&mut jobs, recorder, None)?;
        }
        recorder.worked = self.now() - start;
        recorder.cpu = Duration::from_ns(CpuTime::now().since(cpu).0);
        let read_back = section.verify == Verify::Written && section.writes();
        if end == End::Done && read_back && jobs.read_back() {
            let start = self.now();
            jobs.start(start);
            end = self.drive(&mut jobs, recorder, None)?;
            recorder.read_back = self.now() - start;
        }
        let written = match section.verify {
            Verify::Written => jobs.written(0),
            // Nobody knows what others left in these blocks.
            _ if section.writes() => {
                let (offset, length) = range;
                vec![Written { offset, length, version: None }]
            }
            _ => Vec::new(),
        };
        let session = self.session();
        session.written.push((namespace.nsid, written));
        // A drive whose link is down cannot be shut down either.
        session.driver = jobs.into_drives().pop().filter(|_| session.machine.is_up());
        Ok(end)
    }

    fn session(&mut self) -> &mut Session {
        &mut self.sessions[self.at]
    }

    fn now(&self) -> Instant {
        self.sessions[self.at].machine.clock().now()
    }

    /// Serves the targets whose turn it is not, so that their links stay up. Fails if one breaks
    /// down.
    fn serve_others(&mut self) -> Outcome {
        let at = self.at;
        let others = self.sessions.iter_mut().enumerate().filter(|(other, _)| *other != at);
        for (_, other) in others {
            other.machine.pump()?;
        }
        Ok(())
    }

    fn jobs(&mut self, section: &Section, fio: Fio) -> Option<Jobs> {
        let initial = (section.verify == Verify::Only).then_some(1);
        let verification = Verification { patterns: vec![self.seed], initial };
        let settings = Settings {
            costs: Costs::NONE,
            batch: true,
            verification: (section.verify != Verify::No).then_some(verification),
            random: Random::new(self.seed),
        };
        let (now, nsid) = (self.now(), fio.nsid);
        let session = self.session();
        let driver = session.driver.take().expect("no job has it");
        let mut jobs = Jobs::new(now, fio, settings, vec![driver], session.machine.ram())?;
        if section.verify == Verify::Written {
            let before = session.written.iter().filter(|(of, _)| *of == nsid);
            before.for_each(|(_, written)| jobs.add_known_writes(0, written));
        }
        Some(jobs)
    }

    /// Runs jobs to their end, or to this time.
    fn drive(
        &mut self,
        jobs: &mut Jobs,
        recorder: &mut Recorder,
        until: Option<Instant>,
    ) -> Result<End, Failure> {
        let clock = self.session().machine.clock();
        let (mut end, mut look) = (End::Done, clock.now());
        let mut lost: Option<(Instant, String)> = None;
        loop {
            let now = clock.now();
            jobs.run(now, recorder);
            if self.args.on_error == OnError::Stop && recorder.failed > 0 && end == End::Done {
                end = End::Stopped(first_error(recorder));
                jobs.stop();
            }
            if jobs.is_done() || until.is_some_and(|until| now >= until) && end == End::Done {
                return Ok(end);
            }
            let session = self.session();
            let (moved, timer) = session.machine.pump()?;
            let signalled = session.signal(jobs);
            while let Some(event) = self.session().machine.event() {
                self.link_event(event, jobs, recorder, &mut lost)?;
            }
            if let Some((since, why)) = &lost {
                let patience = clock.now() - *since < self.args.reconnect;
                if self.args.on_error == OnError::Stop || !patience {
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
                    jobs.stop();
                    continue;
                }
                if lost.is_none()
                    && let Err(error) = jobs.check_timeouts(clock.now())
                {
                    return Ok(End::Stopped(error.to_string()));
                }
                self.progress.show(&recorder.progress(clock.now()));
                self.serve_others()?;
            }
            let next = [timer, jobs.next(), Some(look), until].into_iter().flatten().min();
            self.session().machine.wait(moved || signalled, next)?;
        }
    }

    fn link_event(
        &mut self,
        event: Event,
        jobs: &mut Jobs,
        recorder: &mut Recorder,
        lost: &mut Option<(Instant, String)>,
    ) -> Outcome {
        let now = self.now();
        match event {
            Event::Down(cause) => {
                self.progress.done();
                eprintln!("link down: {cause}");
                jobs.drive_lost(now, 0, recorder);
                jobs.run(now, recorder);
                let since = lost.as_ref().map_or(now, |(since, _)| *since);
                *lost = Some((since, format!("the drive vanished: {cause}")));
            }
            Event::Up if lost.is_some() => match self.session().attach_again(jobs)? {
                Ok(what) => {
                    eprintln!("link up: {what}");
                    *lost = None;
                }
                Err(why) => *lost = lost.take().map(|(since, _)| (since, why)),
            },
            Event::Refused(why) => eprintln!("no link to {why}"),
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
        let (begun, function) = (self.now(), self.session().node.bdf);
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
            if value == u32::MAX && self.args.on_error == OnError::Stop {
                end = End::Stopped("a configuration read was not answered".to_owned());
                break;
            }
            if self.stop.is_set() {
                end = End::Interrupted;
                break;
            }
            if self.now() >= look {
                look = self.now() + LOOK;
                self.progress.show(&recorder.progress(look));
                self.serve_others()?;
            }
            let machine = &mut self.session().machine;
            let bus = machine.bus();
            machine.run(async move { bus.sleep(gap).await })?;
        }
        recorder.worked = self.now() - begun;
        Ok(end)
    }
}

/// The first of the recorded errors, for a sentence.
fn first_error(recorder: &Recorder) -> String {
    let first = recorder.errors.keys().next().map_or("an error", String::as_str);
    format!("a transfer failed: {first}")
}
