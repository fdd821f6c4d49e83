//! Submission and completion queues in host memory (NVMe 1.4, section 4.1).

mod completion;
mod pending;
mod submission;

pub(crate) use completion::CompletionQueue;
use pending::Pending;
pub(crate) use submission::SubmissionQueue;

/// Entries from index `from` to index `to` of a ring of `size`.
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

/// All queues; the admin pair has ID 0 and exists while the controller is enabled.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    submission: Vec<Option<SubmissionQueue>>,
    completion: Vec<Option<CompletionQueue>>,
    /// The submission queues with entries to fetch.
    pub pending: Pending,
    /// Whose turn it is to be fetched from.
    pub turn: u16,
}

impl Queues {
    pub fn sq(&self, id: u16) -> Option<&SubmissionQueue> {
        self.submission.get(usize::from(id))?.as_ref()
    }

    pub fn sq_mut(&mut self, id: u16) -> Option<&mut SubmissionQueue> {
        self.submission.get_mut(usize::from(id))?.as_mut()
    }

    pub fn cq(&self, id: u16) -> Option<&CompletionQueue> {
        self.completion.get(usize::from(id))?.as_ref()
    }

    pub fn cq_mut(&mut self, id: u16) -> Option<&mut CompletionQueue> {
        self.completion.get_mut(usize::from(id))?.as_mut()
    }

    pub fn cqs(&self) -> impl Iterator<Item = &CompletionQueue> {
        self.completion.iter().flatten()
    }

    /// Adds a submission queue; its completion queue exists.
    pub fn add_sq(&mut self, queue: SubmissionQueue) {
        self.cq_mut(queue.cq).expect("checked by the caller").users += 1;
        add(&mut self.submission, queue.id, queue);
    }

    pub fn add_cq(&mut self, queue: CompletionQueue) {
        add(&mut self.completion, queue.id, queue);
    }

    pub fn remove_sq(&mut self, id: u16) {
        let queue = self.submission[usize::from(id)].take().expect("checked by the caller");
        self.cq_mut(queue.cq).expect("outlives its submission queues").users -= 1;
        self.pending.remove(id);
    }

    /// Takes a completion queue away that no submission queue uses.
    pub fn remove_cq(&mut self, id: u16) {
        let queue = self.completion[usize::from(id)].take().expect("checked by the caller");
        assert_eq!(queue.users, 0, "submission queues still use it");
    }

    /// Whether any I/O queue exists.
    pub fn any_io(&self) -> bool {
        self.submission.iter().skip(1).any(Option::is_some)
            || self.completion.iter().skip(1).any(Option::is_some)
    }
}
