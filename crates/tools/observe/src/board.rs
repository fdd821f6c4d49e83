//! Where the threads of a node show its state when it is requested.

use crate::document::{NodeDocument, NodeState};
use credentials::Credentials;
use live::status::Status;
use live::{Clock, Requester, TraceSwitch};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use switch::congestion::Rate;

/// How long a request waits for the threads of the node.
const PATIENCE: Duration = Duration::from_secs(2);

/// The state of a node, shown by its threads on request.
pub struct Board {
    node: NodeDocument,
    keys: Option<Arc<Credentials>>,
    clock: Clock,
    inner: Mutex<Inner>,
    /// A part has arrived.
    arrived: Condvar,
    /// One request at a time.
    turn: Mutex<()>,
}

#[derive(Default)]
struct Inner {
    /// The threads; none before the node serves.
    threads: Vec<Requester>,
    /// The rate limit since it was changed.
    limit: Option<Option<Rate>>,
    /// Number of parts that the threads show together.
    expected: usize,
    /// Number of the present request, from 1.
    request: u64,
    /// The parts of the present request, by their order.
    parts: BTreeMap<usize, Status>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    /// The board of a node that starts.
    /// Shows the present key of `keys`.
    pub fn new(node: NodeDocument, keys: Option<Arc<Credentials>>) -> Self {
        let (inner, arrived, turn) = Default::default();
        Self { node, keys, clock: Clock::start(), inner, arrived, turn }
    }

    /// From here on, `threads` show `expected` parts on request.
    pub fn serve(&self, threads: Vec<Requester>, expected: usize) {
        let mut inner = lock(&self.inner);
        (inner.threads, inner.expected) = (threads, expected);
    }

    /// Changes the rate limit of all threads together; `each` is that of one.
    pub fn set_rate_limit(&self, all: Option<Rate>, each: Option<Rate>) {
        let mut inner = lock(&self.inner);
        inner.limit = Some(all);
        inner.threads.iter().for_each(|thread| thread.set_rate_limit(each));
    }

    /// Changes the trace, which the first thread records.
    pub fn switch_trace(&self, switch: TraceSwitch) {
        lock(&self.inner).threads.iter().take(1).for_each(|thread| thread.switch_trace(switch));
    }

    /// Shows part number `order` of the state for a request. A part that is too late is dropped.
    pub fn show(&self, request: u64, order: usize, part: Status) {
        let mut inner = lock(&self.inner);
        if request == inner.request {
            inner.parts.insert(order, part);
            self.arrived.notify_all();
        }
    }

    /// The present state. Parts of threads that do not answer in time are missing.
    pub fn request(&self) -> NodeDocument {
        let _turn = lock(&self.turn);
        let mut inner = lock(&self.inner);
        inner.parts.clear();
        inner.request += 1;
        inner.threads.iter().for_each(|thread| thread.request(inner.request));
        let missing = |inner: &mut Inner| inner.parts.len() < inner.expected;
        let waited = self.arrived.wait_timeout_while(inner, PATIENCE, missing);
        let (mut inner, late) = waited.unwrap_or_else(PoisonError::into_inner);
        let state = match (inner.threads.is_empty(), late.timed_out()) {
            (true, _) => NodeState::Starting,
            (false, true) => NodeState::Silent,
            (false, false) => NodeState::Serving,
        };
        let key = self.keys.as_ref().map(|keys| keys.key().fingerprint().to_string());
        let mut node = NodeDocument { key, ..self.node.clone() };
        if let Some(limit) = inner.limit {
            node.limits.rate_limit_bits_per_s = limit.map(|rate| rate.bits_per_second);
        }
        for part in std::mem::take(&mut inner.parts).into_values() {
            let Status { drive, endpoints, links, push } = part;
            node.status.drive = node.status.drive.or(drive);
            node.status.endpoints.extend(endpoints);
            node.status.links.extend(links);
            node.status.push = node.status.push.or(push);
        }
        NodeDocument { state, uptime_ns: self.clock.now().as_ns(), ..node }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::status::LinkStatus;
    use live::{Control, Stop};

    fn part(name: &str) -> Status {
        let link = LinkStatus { name: name.to_owned(), ..LinkStatus::default() };
        Status { links: vec![link], ..Status::default() }
    }

    /// The answer to a request, for which `show` shows the parts.
    fn answer(board: &Board, stop: &Stop, show: impl FnOnce(u64)) -> (NodeState, Vec<String>) {
        std::thread::scope(|scope| {
            let request = scope.spawn(|| board.request());
            loop {
                match stop.request() {
                    Control::Status(number) => break show(number),
                    _ => std::thread::yield_now(),
                }
            }
            let node = request.join().expect("an answer");
            (node.state, node.status.links.into_iter().map(|link| link.name).collect())
        })
    }

    #[test]
    fn parts_are_joined_in_order_without_late_ones() {
        let board = Board::new(NodeDocument::default(), None);
        assert_eq!(board.request().state, NodeState::Starting);
        let stop = Stop::new().expect("sockets");
        board.serve(vec![stop.requester().expect("a socket")], 2);
        let both = |number| {
            board.show(number, 2, part("second"));
            board.show(number, 0, part("first"));
        };
        let serving = (NodeState::Serving, ["first", "second"].map(str::to_owned).to_vec());
        assert_eq!(answer(&board, &stop, both), serving);
        let mut silent = 0;
        let (state, links) = answer(&board, &stop, |number| {
            board.show(number, 0, part("first"));
            silent = number;
        });
        assert_eq!((state, links.len()), (NodeState::Silent, 1));
        let late = answer(&board, &stop, |number| {
            board.show(silent, 1, part("late"));
            both(number);
        });
        assert_eq!(late, serving);
    }
}
