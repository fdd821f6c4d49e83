//! Host software as coroutines: drivers and enumeration are sequential code without I/O and without
//! a clock.
//!
//! A driver is an `async fn` over a [`Bus`]. The host node polls its
//! [`Task`], takes requests off the bus, passes them to the root complex and
//! answers them. There is no executor and no waker: the host node polls the task
//! again after each answer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use wire::{Bdf, Duration, Instant};

/// A request of host software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads 1, 2 or 4 naturally aligned bytes of configuration space.
    ConfigRead {
        /// The function.
        target: Bdf,
        /// Byte offset.
        offset: u16,
        /// Number of bytes.
        size: u8,
    },
    /// Writes 1, 2 or 4 naturally aligned bytes of configuration space.
    ConfigWrite {
        /// The function.
        target: Bdf,
        /// Byte offset.
        offset: u16,
        /// Number of bytes.
        size: u8,
        /// The value.
        value: u32,
    },
    /// Reads 1, 2, 4 or 8 naturally aligned bytes of a memory window.
    MemoryRead {
        /// Bus address.
        address: u64,
        /// Number of bytes.
        size: u8,
    },
    /// Writes 1, 2, 4 or 8 naturally aligned bytes of a memory window. The write is posted and has
    /// no answer.
    MemoryWrite {
        /// Bus address.
        address: u64,
        /// Number of bytes.
        size: u8,
        /// The value.
        value: u64,
    },
    /// Requests an answer after this time.
    Sleep(Duration),
}

/// Identifies a request until it is answered.
pub type RequestId = u64;

#[derive(Debug, Default)]
struct Mailbox {
    next: RequestId,
    requests: VecDeque<(RequestId, Request)>,
    answers: Vec<(RequestId, u64)>,
    now: Instant,
}

/// The bus through which software accesses functions; clones are the same bus.
#[derive(Clone, Debug, Default)]
pub struct Bus(Rc<RefCell<Mailbox>>);

impl Bus {
    /// A bus without requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `size` bytes (1, 2 or 4) of configuration space; all ones if no function answers.
    pub async fn config_read(&self, target: Bdf, offset: u16, size: u8) -> u32 {
        low_bytes(self.ask(Request::ConfigRead { target, offset, size }).await, size) as u32
    }

    /// Writes `size` bytes (1, 2 or 4) of configuration space and waits for the completion.
    pub async fn config_write(&self, target: Bdf, offset: u16, size: u8, value: u32) {
        self.ask(Request::ConfigWrite { target, offset, size, value }).await;
    }

    /// Reads `size` bytes (1, 2, 4 or 8) of a memory window; all ones if no function answers.
    pub async fn read(&self, address: u64, size: u8) -> u64 {
        low_bytes(self.ask(Request::MemoryRead { address, size }).await, size)
    }

    /// Writes `size` bytes (1, 2, 4 or 8) of a memory window. The write is posted.
    pub fn write(&self, address: u64, size: u8, value: u64) {
        self.post(Request::MemoryWrite { address, size, value });
    }

    /// Waits for `span`.
    pub async fn sleep(&self, span: Duration) {
        self.ask(Request::Sleep(span)).await;
    }

    /// The time at which the task was last polled.
    pub fn now(&self) -> Instant {
        self.0.borrow().now
    }

    /// For the host node: the next request. Every request except a memory write needs an
    /// [`answer`](Self::answer).
    pub fn next_request(&self) -> Option<(RequestId, Request)> {
        self.0.borrow_mut().requests.pop_front()
    }

    /// For the host node: the next request that `takes` accepts. A denied request blocks later
    /// requests, except that a posted write passes denied reads (PCIe Base 4.0, section 2.4.1).
    pub fn next_request_if(
        &self,
        takes: impl Fn(&Request) -> bool,
    ) -> Option<(RequestId, Request)> {
        let requests = &mut self.0.borrow_mut().requests;
        if takes(&requests.front()?.1) {
            return requests.pop_front();
        }
        let read = |request: &Request| {
            matches!(request, Request::MemoryRead { .. } | Request::ConfigRead { .. })
        };
        let at = requests.iter().position(|(_, request)| !read(request))?;
        let posted = matches!(requests[at].1, Request::MemoryWrite { .. });
        if at > 0 && posted && takes(&requests[at].1) { requests.remove(at) } else { None }
    }

    /// Number of queued requests.
    pub fn queued(&self) -> usize {
        self.0.borrow().requests.len()
    }

    /// For the host node: answers a request with the read value, all ones for a failed read, or any
    /// value for a write.
    pub fn answer(&self, id: RequestId, value: u64) {
        self.0.borrow_mut().answers.push((id, value));
    }

    fn post(&self, request: Request) -> RequestId {
        let mut mailbox = self.0.borrow_mut();
        let id = mailbox.next;
        mailbox.next += 1;
        mailbox.requests.push_back((id, request));
        id
    }

    fn ask(&self, request: Request) -> impl Future<Output = u64> + use<> {
        let (bus, id) = (self.clone(), self.post(request));
        std::future::poll_fn(move |_| {
            let mut mailbox = bus.0.borrow_mut();
            match mailbox.answers.iter().position(|(answered, _)| *answered == id) {
                Some(at) => Poll::Ready(mailbox.answers.swap_remove(at).1),
                None => Poll::Pending,
            }
        })
    }
}

/// The low `size` bytes of an answer.
pub(crate) fn low_bytes(value: u64, size: u8) -> u64 {
    if size >= 8 { value } else { value & ((1 << (u32::from(size) * 8)) - 1) }
}

/// A running piece of host software.
pub struct Task<T> {
    bus: Bus,
    future: Pin<Box<dyn Future<Output = T>>>,
}

impl<T> Task<T> {
    /// Prepares `software` over `bus`; nothing runs before the first poll.
    pub fn new(bus: &Bus, software: impl Future<Output = T> + 'static) -> Self {
        Self { bus: bus.clone(), future: Box::pin(software) }
    }

    /// Runs the software until it waits (`None`) or ends (its result). Do not poll again after the
    /// end.
    pub fn poll(&mut self, now: Instant) -> Option<T> {
        self.bus.0.borrow_mut().now = now;
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_line_software_is_driven_from_outside() {
        let bus = Bus::new();
        let mut task = Task::new(&bus, {
            let bus = bus.clone();
            async move {
                let id = bus.config_read(Bdf::new(1, 0, 0), 0, 4).await;
                bus.write(0x1000, 4, 7);
                let both = (bus.read(0x1004, 4), bus.read(0x1008, 8));
                u64::from(id) + both.1.await + both.0.await
            }
        });
        assert_eq!(task.poll(Instant::ZERO), None);
        let (id, request) = bus.next_request().unwrap();
        let target = Bdf::new(1, 0, 0);
        assert_eq!(request, Request::ConfigRead { target, offset: 0, size: 4 });
        bus.answer(id, 100);
        assert_eq!(task.poll(Instant::ZERO), None);
        let write = bus.next_request().unwrap().1;
        assert_eq!(write, Request::MemoryWrite { address: 0x1000, size: 4, value: 7 });
        let eight = bus.next_request().unwrap();
        assert_eq!(eight.1, Request::MemoryRead { address: 0x1008, size: 8 });
        bus.answer(eight.0, 20);
        assert_eq!(task.poll(Instant::ZERO), None);
        let four = bus.next_request().unwrap();
        bus.answer(four.0, 3);
        assert_eq!(task.poll(Instant::ZERO), Some(123));
    }

    #[test]
    fn on_a_full_bus_posted_writes_pass_reads_and_nothing_else() {
        let target = Bdf::new(1, 0, 0);
        let read = Request::MemoryRead { address: 0, size: 4 };
        let config_read = Request::ConfigRead { target, offset: 0, size: 4 };
        let set = Request::ConfigWrite { target, offset: 4, size: 2, value: 6 };
        let [one, two] = [1, 2].map(|value| Request::MemoryWrite { address: 0, size: 4, value });
        let posted = |request: &Request| matches!(request, Request::MemoryWrite { .. });
        let taken = |requests: &[Request], takes: &dyn Fn(&Request) -> bool| -> Vec<Request> {
            let bus = Bus::new();
            for request in requests {
                bus.post(*request);
            }
            std::iter::from_fn(|| bus.next_request_if(takes)).map(|(_, request)| request).collect()
        };
        assert_eq!(taken(&[read, config_read, one, two], &posted), [one, two]);
        assert_eq!(taken(&[read, set, one], &posted), []);
        assert_eq!(taken(&[one, set, two], &posted), [one]);
        assert_eq!(taken(&[one, read, two, set], &|_| true), [one, read, two, set]);
        assert_eq!(taken(&[one, config_read, two], &|request| !posted(request)), []);
    }
}
