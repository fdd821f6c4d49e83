//! The further connections of a link, each with its queue pairs and jobs in a thread of its own.
//! Threads share nothing; they exchange messages between groups of sections.

use super::Settings;
use super::group::JobShare;
use super::machine::{Event, InitiatorMachine};
use super::record::Recorder;
use super::run::{End, Runner};
use super::section::Section;
use super::session::{Session, connect, prepare};
use super::target::LoadTarget;
use crate::Console;
use live::net::Peer;
use live::trace::Tracer;
use live::{Clock, NodeSettings, Stop, random_number};
use node::push::{self, Mode};
use nvme::initiator::{self, DriveInfo, QueueMemory};
use report::{Failure, Outcome};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};
use storage::completions::{Completions, Finished, completions};
use wire::frame::LinkConnection;
use wire::{Duration, Instant};

/// Time between two looks for an answer of a thread. Nothing is measured meanwhile.
const LOOK: Duration = Duration::from_ms(1);

/// A message to the thread of a further connection.
enum ToThread {
    /// The queues were created.
    Drive(DriveInfo),
    /// Run the thread's jobs of these sections.
    Run { sections: Vec<Section>, epoch: Instant, seed: u64 },
    /// End.
    Close,
}

/// A message of the thread of a further connection.
enum FromThread {
    /// The memory of the thread's queues.
    Queues(Vec<QueueMemory>),
    /// The sections have ended.
    Ran(Result<End, Failure>, Vec<Recorder>),
}

/// A further connection of a session's link.
pub struct Further {
    first_queue: usize,
    requests: Finished<ToThread>,
    answers: Receiver<FromThread>,
    thread: Option<JoinHandle<Outcome>>,
}

/// What the thread of a further connection needs.
pub struct FurtherSettings {
    /// The settings, with the place of the connection in its link.
    pub options: Settings,
    /// The node.
    pub peer: Peer,
    /// Name of the target.
    pub target: LoadTarget,
    /// Indices of the queue pairs, from 0.
    pub queues: Range<u16>,
    /// Settings of the driver.
    pub driver: initiator::Settings,
    /// The clock, and bytes of host memory. Each connection has an address space of its own.
    pub machine: (Clock, usize),
}

/// Divides the queue pairs of `driver` into the connections of a link. Returns the settings of the
/// first connection and of each further one.
pub fn divide(
    options: &Settings,
    target: &LoadTarget,
    driver: initiator::Settings,
    machine: (Clock, usize),
) -> (Settings, Vec<FurtherSettings>) {
    let queues = driver.io_queues;
    let queue_pairs = options.queues_per_link.unwrap_or(queues);
    let LoadTarget::Node { peer, .. } = target else { return (options.clone(), Vec::new()) };
    if queue_pairs >= queues {
        return (options.clone(), Vec::new());
    }
    let link = u128::from(random_number()) << 64 | u128::from(random_number());
    let at = |number| {
        let connection = Some(LinkConnection { link, number, queue_pairs });
        let node = NodeSettings { connection, ..options.node.clone() };
        Settings { node, ..options.clone() }
    };
    let bound = |number: u16| number.saturating_mul(queue_pairs).min(queues);
    let further = (1..queues.div_ceil(queue_pairs)).map(|number| FurtherSettings {
        // Push needs to see the admin commands, which pass over the first connection.
        options: Settings {
            push: push::Settings { mode: Mode::Off, ..options.push },
            ..at(number)
        },
        peer: peer.clone(),
        target: target.clone(),
        queues: bound(number)..bound(number + 1),
        driver,
        machine,
    });
    (at(0), further.collect())
}

impl Further {
    /// Starts the thread. The first connection of the link must be up.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(settings: FurtherSettings, stop: &Stop) -> Result<Self, Failure> {
        let (requests, inbox) = completions()?;
        let (results, answers) = channel();
        let (first_queue, stop) = (settings.queues.start.into(), stop.sharing()?);
        let number = settings.options.node.connection.map_or(0, |place| place.number);
        let run = move || run(settings, &stop, &inbox, &results);
        let thread = Builder::new().name(format!("link {number}")).spawn(run)?;
        Ok(Self { first_queue, requests, answers, thread: Some(thread) })
    }

    /// Index of the connection's first queue.
    pub fn first_queue(&self) -> usize {
        self.first_queue
    }

    /// Waits for the memory of the queues.
    ///
    /// # Errors
    /// The failure of the thread, or of the machine of the first connection.
    pub fn queues(&mut self, machine: &mut InitiatorMachine) -> Result<Vec<QueueMemory>, Failure> {
        match self.answer(machine)? {
            FromThread::Queues(queues) => Ok(queues),
            FromThread::Ran(..) => unreachable!("nothing was to be run"),
        }
    }

    /// Passes the drive to the thread.
    pub fn attach(&self, drive: DriveInfo) {
        self.requests.send([ToThread::Drive(drive)]);
    }

    /// Starts the thread's jobs of a group.
    pub fn begin(&self, sections: &[Section], epoch: Instant, seed: u64) {
        self.requests.send([ToThread::Run { sections: sections.to_vec(), epoch, seed }]);
    }

    /// Waits for the end of the group, and adds its results.
    ///
    /// # Errors
    /// As [`queues`](Self::queues).
    pub fn end(
        &mut self,
        machine: &mut InitiatorMachine,
        recorders: &mut [Recorder],
    ) -> Result<End, Failure> {
        let FromThread::Ran(end, results) = self.answer(machine)? else {
            unreachable!("the queues were sent before")
        };
        recorders.iter_mut().zip(&results).for_each(|(all, one)| all.merge(one));
        end
    }

    /// Waits for a message; serves the first connection meanwhile.
    fn answer(&mut self, machine: &mut InitiatorMachine) -> Result<FromThread, Failure> {
        loop {
            match self.answers.try_recv() {
                Ok(answer) => return Ok(answer),
                Err(TryRecvError::Disconnected) => {
                    self.close()?;
                    return Err(Failure("a further connection has ended".into()));
                }
                Err(TryRecvError::Empty) => {}
            }
            let (moved, timer) = machine.pump()?;
            let soon = machine.clock().now() + LOOK;
            machine.wait(moved, timer.into_iter().chain([soon]).min())?;
        }
    }

    /// Lets the thread end. Call this before the first connection ends.
    pub fn begin_close(&self) {
        self.requests.send([ToThread::Close]);
    }

    /// Ends the thread.
    ///
    /// # Errors
    /// The failure of the thread.
    pub fn close(&mut self) -> Outcome {
        self.begin_close();
        let thread = self.thread.take();
        thread.map_or(Ok(()), |thread| thread.join().expect("a thread does not panic"))
    }
}

impl Drop for Further {
    /// Ends the thread after an error, which was reported.
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// The console of a thread. The first connection reports progress and results.
struct Quiet;

impl Console for Quiet {}

/// Serves a further connection until [`ToThread::Close`].
fn run(
    settings: FurtherSettings,
    stop: &Stop,
    inbox: &Completions<ToThread>,
    results: &Sender<FromThread>,
) -> Outcome {
    let FurtherSettings { options, peer, target, queues, driver, machine } = settings;
    let meanwhile = || if stop.is_set() { Err(Failure("interrupted".into())) } else { Ok(()) };
    let (mut machine, ..) = connect(&options, &peer, machine, &mut Quiet, meanwhile)?;
    let slot = prepare(&mut machine, &options, &target, driver)?;
    let (bring_up, function) = (machine.bring_up_with(driver), slot.node().clone());
    let indices = queues.clone();
    let attached = machine.run(async move { bring_up.attach_further(&function, indices).await })?;
    let further = attached.map_err(|error| Failure(format!("{target}: {error}")))?;
    // Without a receiver the session has failed, and ends this thread.
    let _ = results.send(FromThread::Queues(further.memory()));
    machine.watch(inbox.signal())?;
    let ToThread::Drive(drive) = next(&mut machine, inbox)? else { return machine.close() };
    let mut session = Session {
        name: target.to_string(),
        machine,
        slot,
        driver: Some(further.into_driver(drive)),
        settings: driver,
        written: Vec::new(),
        ways: None,
        peer: None,
        share: JobShare(usize::from(queues.start)..usize::from(queues.end)),
        further: Vec::new(),
        tracer: Tracer::off(),
    };
    while let ToThread::Run { sections, epoch, seed } = next(&mut session.machine, inbox)? {
        let recorder = |section: &Section| Recorder::new(epoch, &section.name, None);
        let mut recorders: Vec<_> = sections.iter().map(recorder).collect();
        let sessions = std::slice::from_mut(&mut session);
        let console = &mut Quiet;
        let mut runner = Runner::new(&options, sessions, seed, (stop, console));
        let end = runner.run_own_jobs(&sections, &mut recorders);
        let _ = results.send(FromThread::Ran(end, recorders));
    }
    session.machine.close()
}

/// Waits for the next message; serves the connection meanwhile.
fn next(
    machine: &mut InitiatorMachine,
    inbox: &Completions<ToThread>,
) -> Result<ToThread, Failure> {
    loop {
        inbox.clear_signal();
        if let Some(message) = inbox.poll() {
            return Ok(message);
        }
        let (moved, timer) = machine.pump()?;
        while let Some(event) = machine.event()? {
            if let Event::Down(cause) = event {
                // The first connection may have ended the link behind its last message.
                if let Some(message) = inbox.poll() {
                    return Ok(message);
                }
                return Err(Failure(format!("a further connection is lost: {cause}")));
            }
        }
        machine.wait(moved, timer)?;
    }
}
