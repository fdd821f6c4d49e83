//! Submission and completion queues in host memory (NVMe 1.4, section 4.1).

mod arbiter;
mod completion;
mod pending;
mod submission;

use arbiter::Arbiter;
pub(crate) use arbiter::Priority;
pub(crate) use completion::CompletionQueue;
use pending::Pending;
pub(crate) use submission::SubmissionQueue;
use wire::nvme::register::Doorbell;

/// Number of entries from index `from` to index `to` in a ring of `size` entries.
fn distance(size: u32, from: u32, to: u32) -> u32 {
    if to >= from { to - from } else { size - from + to }
}

fn add<Q>(queues: &mut Vec<Option<Q>>, id: u16, queue: Q) {
    let index = usize::from(id);
    if queues.len() <= index {
        queues.resize_with(index + 1, || None);
    }
    queues[index] = Some(queue);
}

/// All queues. The admin pair has ID 0 and exists while the controller is enabled.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    submission: Vec<Option<SubmissionQueue>>,
    completion: Vec<Option<CompletionQueue>>,
    /// The submission queues with entries to fetch.
    pub arbiter: Arbiter,
}

impl Queues {
    /// No queues yet. The arbitration is weighted round robin with urgent priority class if
    /// `weighted`, otherwise round robin.
    pub(crate) fn new(weighted: bool) -> Self {
        Self { arbiter: Arbiter::new(weighted), ..Self::default() }
    }

    pub(crate) fn sq(&self, id: u16) -> Option<&SubmissionQueue> {
        self.submission.get(usize::from(id))?.as_ref()
    }

    pub(crate) fn sq_mut(&mut self, id: u16) -> Option<&mut SubmissionQueue> {
        self.submission.get_mut(usize::from(id))?.as_mut()
    }

    pub(crate) fn cq(&self, id: u16) -> Option<&CompletionQueue> {
        self.completion.get(usize::from(id))?.as_ref()
    }

    pub(crate) fn cq_mut(&mut self, id: u16) -> Option<&mut CompletionQueue> {
        self.completion.get_mut(usize::from(id))?.as_mut()
    }

    pub(crate) fn cqs(&self) -> impl Iterator<Item = &CompletionQueue> {
        self.completion.iter().flatten()
    }

    pub(crate) fn sqs(&self) -> impl Iterator<Item = &SubmissionQueue> {
        self.submission.iter().flatten()
    }

    /// Lets entries be fetched that the host has filled in before this process.
    pub(crate) fn wake(&mut self) {
        let ready = |queue: &&SubmissionQueue| queue.pending() > 0 && queue.deleting.is_none();
        let ready = self.submission.iter().flatten().filter(ready);
        ready.for_each(|queue| self.arbiter.insert(queue.priority, queue.id));
    }

    /// The last value of a doorbell; `None` if the queue does not exist or is being deleted.
    pub(crate) fn doorbell(&self, doorbell: Doorbell) -> Option<u32> {
        match doorbell {
            Doorbell::SubmissionTail(id) => {
                self.sq(id).filter(|queue| queue.deleting.is_none()).map(SubmissionQueue::tail)
            }
            Doorbell::CompletionHead(id) => self.cq(id).map(CompletionQueue::head),
        }
    }

    /// The doorbells of all I/O queues.
    pub(crate) fn io_doorbells(&self) -> Vec<Doorbell> {
        let sqs = self.submission.iter().flatten().map(|one| Doorbell::SubmissionTail(one.id));
        let cqs = self.completion.iter().flatten().map(|one| Doorbell::CompletionHead(one.id));
        let is_io = |doorbell: &Doorbell| {
            !matches!(doorbell, Doorbell::SubmissionTail(0) | Doorbell::CompletionHead(0))
        };
        sqs.chain(cqs).filter(is_io).collect()
    }

    /// Adds a submission queue, whose completion queue must exist.
    pub(crate) fn add_sq(&mut self, queue: SubmissionQueue) {
        self.cq_mut(queue.cq).expect("checked by the caller").users += 1;
        add(&mut self.submission, queue.id, queue);
    }

    /// Handles the tail doorbell of a submission queue, as `SubmissionQueue::ring`; `None` if the
    /// queue does not exist or is being deleted.
    pub(crate) fn ring_sq(&mut self, id: u16, tail: u32) -> Option<bool> {
        let queue = self.sq_mut(id).filter(|queue| queue.deleting.is_none())?;
        let valid = queue.ring(tail);
        if valid {
            let priority = queue.priority;
            self.arbiter.insert(priority, id);
        }
        Some(valid)
    }

    /// Stops fetching from an existing submission queue.
    pub(crate) fn stop_sq(&mut self, id: u16) {
        let queue = self.sq(id).expect("checked by the caller");
        let priority = queue.priority;
        self.arbiter.remove(priority, id);
    }

    pub(crate) fn add_cq(&mut self, queue: CompletionQueue) {
        add(&mut self.completion, queue.id, queue);
    }

    pub(crate) fn remove_sq(&mut self, id: u16) {
        let queue = self.submission[usize::from(id)].take().expect("checked by the caller");
        self.cq_mut(queue.cq).expect("outlives its submission queues").users -= 1;
        self.arbiter.remove(queue.priority, id);
    }

    /// Removes a completion queue without submission queues.
    pub(crate) fn remove_cq(&mut self, id: u16) {
        let queue = self.completion[usize::from(id)].take().expect("checked by the caller");
        assert_eq!(queue.users, 0, "submission queues still use it");
    }

    /// Whether any I/O queue exists.
    pub(crate) fn any_io(&self) -> bool {
        self.submission.iter().skip(1).any(Option::is_some)
            || self.completion.iter().skip(1).any(Option::is_some)
    }
}
