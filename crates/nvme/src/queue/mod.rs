//! Submission and completion queues in host memory (NVMe 1.4, section 4.1).

mod completion;
mod submission;

pub(crate) use completion::CompletionQueue;
pub(crate) use submission::SubmissionQueue;

/// A doorbell was written with a value its queue does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidValue;

/// All queues; the admin pair has ID 0 and exists while the controller is
/// enabled.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    submission: Vec<Option<SubmissionQueue>>,
    completion: Vec<Option<CompletionQueue>>,
    /// A bit for each submission queue with entries to fetch.
    pub pending: u128,
    /// Whose turn it is to be fetched from.
    pub turn: u16,
}

impl Queues {
    /// The submission queue `id`.
    pub fn sq(&self, id: u16) -> Option<&SubmissionQueue> {
        self.submission.get(usize::from(id))?.as_ref()
    }

    /// The same, to change.
    pub fn sq_mut(&mut self, id: u16) -> Option<&mut SubmissionQueue> {
        self.submission.get_mut(usize::from(id))?.as_mut()
    }

    /// The completion queue `id`.
    pub fn cq(&self, id: u16) -> Option<&CompletionQueue> {
        self.completion.get(usize::from(id))?.as_ref()
    }

    /// The same, to change.
    pub fn cq_mut(&mut self, id: u16) -> Option<&mut CompletionQueue> {
        self.completion.get_mut(usize::from(id))?.as_mut()
    }

    /// All completion queues.
    pub fn cqs(&self) -> impl Iterator<Item = &CompletionQueue> {
        self.completion.iter().flatten()
    }

    /// Adds a submission queue; its completion queue exists.
    pub fn add_sq(&mut self, queue: SubmissionQueue) {
        self.cq_mut(queue.cq).expect("checked by the caller").users += 1;
        let index = usize::from(queue.id);
        if self.submission.len() <= index {
            self.submission.resize_with(index + 1, || None);
        }
        self.submission[index] = Some(queue);
    }

    /// Adds a completion queue.
    pub fn add_cq(&mut self, queue: CompletionQueue) {
        let index = usize::from(queue.id);
        if self.completion.len() <= index {
            self.completion.resize_with(index + 1, || None);
        }
        self.completion[index] = Some(queue);
    }

    /// Takes a submission queue away.
    pub fn remove_sq(&mut self, id: u16) {
        let queue = self.submission[usize::from(id)].take().expect("checked by the caller");
        self.cq_mut(queue.cq).expect("outlives its submission queues").users -= 1;
        self.pending &= !(1 << id);
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
