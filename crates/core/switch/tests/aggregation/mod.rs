//! Compares the departure of TLPs from a tunnel with an independent model, for every policy: no TLP
//! waits that the network could take, and order and credits are correct.

use bytes::Bytes;
use pcie::{OrderedQueue, Ready};
use proptest::prelude::*;
use switch::aggregate::{Aggregation, Departure, Policy, Queued};
use switch::tunnel::{Input, Output, Settings, Tunnel};
use wire::frame::{Control, Grant, HEADER, Header, Kind, Role};
use wire::tlp::{Class, MemoryRequest, Packet, Status, Tlp};
use wire::{Bdf, Duration, Instant, Tag};

/// Size in bytes of the longest control frame after the greeting, a frame of credits.
const LONGEST_CONTROL: usize = HEADER + 24;

/// A custom policy: at most three TLPs per frame.
const THREES: Policy = Policy::Own(|| Box::new(Threes));

#[derive(Debug)]
struct Threes;

impl Aggregation for Threes {
    fn departure(&mut self, _: Instant, _: &Queued) -> Departure {
        Departure::Now
    }

    fn max_packets(&self) -> usize {
        3
    }
}

/// A model of the sender: queued TLPs, granted credits, and sent frames.
struct Model {
    policy: Policy,
    max_frame: usize,
    queue: OrderedQueue,
    /// When each TLP was queued, by tag.
    queued: Vec<Instant>,
    limits: [Grant; 3],
    used: [Grant; 3],
}

impl Model {
    fn allowed(&self) -> Ready {
        Ready::from_fn(|class| {
            let (used, limit) = (self.used[class.index()], self.limits[class.index()]);
            let need = self.queue.front(class).map_or(0, Tlp::data_credits);
            limit.headers > used.headers && limit.data - used.data >= need
        })
    }

    fn next(&self) -> Option<&Tlp> {
        self.queue.peek(self.allowed())
    }

    /// Whether the next TLP would fit into a frame if the path takes `room` bytes.
    fn next_fits(&self, room: usize) -> bool {
        let room = room.saturating_sub(HEADER).min(self.max_frame);
        self.next().is_some_and(|tlp| tlp.wire_length() <= room)
    }

    fn sent(&mut self, tlp: &Tlp) {
        let wanted = self.queue.pop(self.allowed());
        assert_eq!(wanted.as_ref(), Some(tlp), "in PCIe order, with credits");
        let used = &mut self.used[tlp.class().index()];
        used.headers += 1;
        used.data += tlp.data_credits();
    }

    /// Checks one frame of TLPs.
    fn frame(&mut self, now: Instant, mut payload: Bytes, room: usize) {
        let first = self.first_queued();
        let bytes = payload.len();
        let mut tlps = 0;
        while !payload.is_empty() {
            self.sent(&Tlp::decode(&mut payload).unwrap());
            tlps += 1;
        }
        match self.policy {
            Policy::PerTlp => assert_eq!(tlps, 1, "per-tlp"),
            Policy::Own(_) => assert!((1..=3).contains(&tlps), "{tlps} TLPs"),
            Policy::Adaptive => {
                let left = room - bytes;
                let more = self.next().is_some_and(|tlp| tlp.wire_length() <= left);
                assert!(!more, "left behind with {left} bytes of room");
            }
            Policy::Wait(time) => {
                let due = first.is_some_and(|first| now >= first + time);
                let full = bytes == room || !self.queue.is_empty();
                assert!(due || full, "{bytes} of {room} bytes before its time");
            }
        }
    }

    /// The time at which the oldest waiting TLP with credits was queued.
    fn first_queued(&self) -> Option<Instant> {
        let allowed = self.allowed();
        let fronts = Class::ALL.into_iter().filter(|class| allowed.has(*class));
        fronts.filter_map(|class| self.queue.front(class)).map(|tlp| self.queued[tag(tlp)]).min()
    }

    /// Checks that no TLP must leave now, if the network takes `room` bytes.
    fn rests(&self, now: Instant, room: usize, until: Option<Instant>) {
        if room < LONGEST_CONTROL || !self.next_fits(room) {
            return;
        }
        let Policy::Wait(time) = self.policy else {
            panic!(
                "{} waits for nothing, with {room} bytes of room",
                self.next().unwrap().mnemonic()
            );
        };
        let at = self.first_queued().unwrap() + time;
        assert!(now < at, "it should have left at {at}, now it is {now}");
        assert!(until.is_some_and(|until| until <= at), "woken at {until:?}, not at {at}");
    }
}

/// The number of a TLP, which its address contains.
fn tag(tlp: &Tlp) -> usize {
    match tlp.packet {
        Packet::MemoryRead(request) | Packet::MemoryWrite(request) => {
            request.address as usize / 4096
        }
        Packet::Completion(completion) => usize::from(completion.tag.get()),
        _ => unreachable!("none was made"),
    }
}

fn tlp(number: usize, class: Class, words: usize, relaxed: bool) -> Tlp {
    let data = Bytes::from(vec![number as u8; words * 4]);
    let id = Bdf::default();
    let address = number as u64 * 4096;
    let tag = Tag::truncate(number as u16);
    let request = |words| MemoryRequest::for_bytes(id, tag, address, words * 4).unwrap();
    let mut tlp = match class {
        Class::Posted => Tlp::memory_write(request(words), data),
        Class::NonPosted => Tlp::memory_read(request(words)),
        Class::Completion => {
            let completion = request(words).completion(id, Status::Success, words * 4);
            Tlp::new(Packet::Completion(completion), data)
        }
    };
    tlp.attributes.relaxed = relaxed;
    tlp
}

/// A random event at the sender.
#[derive(Clone, Debug)]
enum Step {
    Push {
        class: usize,
        words: usize,
        relaxed: bool,
    },
    Room(usize),
    Pass(u64),
    /// The far side consumes TLPs.
    Consume(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let push = (0usize..3, 1usize..=64, any::<bool>())
        .prop_map(|(class, words, relaxed)| Step::Push { class, words, relaxed });
    let room = prop_oneof![Just(0), 1usize..200, 200usize..3000].prop_map(Step::Room);
    let pass = (1u64..2_000).prop_map(Step::Pass);
    let consume = (1usize..8).prop_map(Step::Consume);
    prop::collection::vec(prop_oneof![4 => push, 3 => room, 1 => pass, 1 => consume], 1..150)
}

struct Testbed {
    now: Instant,
    near: Tunnel,
    far: Tunnel,
    model: Model,
    room: usize,
    frames: u64,
}

impl Testbed {
    fn new(policy: Policy, window: Grant) -> Self {
        let mut near = Settings::new(Role::Host, 1);
        near.aggregation = policy;
        near.max_frame = 1_400;
        let mut far = Settings::new(Role::Device, 2);
        far.window = [window; 3];
        far.max_payload = 256;
        let model = Model {
            policy,
            max_frame: near.max_frame,
            queue: OrderedQueue::default(),
            queued: Vec::new(),
            limits: far.window,
            used: [Grant::default(); 3],
        };
        let (near, far) = (Tunnel::new(near), Tunnel::new(far));
        let now = Instant::ZERO;
        let mut testbed = Self { now, near, far, model, room: 10_000, frames: 0 };
        testbed.near.handle(now, Input::Connected);
        testbed.far.handle(now, Input::Connected);
        testbed.run();
        assert!(testbed.near.is_up() && testbed.far.is_up());
        testbed
    }

    /// Runs until the sender is idle. The far side receives frames at once.
    fn run(&mut self) {
        loop {
            self.answers();
            self.near.handle(self.now, Input::CanTransmit { bytes: self.room });
            match self.near.poll(self.now) {
                Output::Transmit(_, bytes) => self.transmitted(bytes),
                Output::Timeout(until) => {
                    self.model.rests(self.now, self.room, until);
                    return;
                }
                output => assert!(matches!(output, Output::Up(_)), "{output:?}"),
            }
        }
    }

    fn transmitted(&mut self, bytes: Bytes) {
        assert!(bytes.len() <= self.room, "more than there was room for");
        let mut rest = bytes.clone();
        let mut frames = 0;
        while !rest.is_empty() {
            let header = Header::decode(*rest.first_chunk().unwrap()).unwrap();
            let _ = rest.split_to(HEADER);
            let payload = rest.split_to(usize::from(header.length));
            frames += 1;
            let room = self.room - (bytes.len() - rest.len() - payload.len());
            if header.kind == Kind::Tlps {
                self.frames += 1;
                self.model.frame(self.now, payload, room.min(self.model.max_frame));
            }
        }
        assert!(frames == 1 || self.model.policy != Policy::PerTlp, "{frames} frames at once");
        self.room -= bytes.len();
        self.far.handle(self.now, Input::Received(bytes));
    }

    /// Passes the answers of the far side to the sender without delay.
    fn answers(&mut self) {
        self.far.handle(self.now, Input::CanTransmit { bytes: 100_000 });
        loop {
            match self.far.poll(self.now) {
                Output::Timeout(_) => return,
                Output::Transmit(_, bytes) => {
                    let mut rest = bytes.clone();
                    while !rest.is_empty() {
                        let header = Header::decode(*rest.first_chunk().unwrap()).unwrap();
                        let _ = rest.split_to(HEADER);
                        let payload = rest.split_to(usize::from(header.length));
                        if let Ok(Control::Credits(limits)) = Control::decode(header.kind, &payload)
                        {
                            self.model.limits = limits;
                        }
                    }
                    self.near.handle(self.now, Input::Received(bytes));
                }
                output => assert!(matches!(output, Output::Up(_)), "{output:?}"),
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Push { class, words, relaxed } => {
                let tlp = tlp(self.model.queued.len(), Class::ALL[class], words, relaxed);
                self.model.queued.push(self.now);
                self.model.queue.push(tlp.clone());
                self.near.push(tlp);
            }
            Step::Room(bytes) => self.room = bytes,
            Step::Pass(ns) => self.now += Duration::from_ns(ns),
            Step::Consume(most) => (0..most).for_each(|_| drop(self.far.pop(Ready::ALL))),
        }
        self.run();
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    let wait = (1u64..3_000).prop_map(|ns| Policy::Wait(Duration::from_ns(ns)));
    prop_oneof![2 => Just(Policy::Adaptive), 1 => Just(Policy::PerTlp), 1 => Just(THREES), 1 => wait]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Fails if `Aggregate::departure` returns anything but `Now` for an adaptive queue whose next
    /// TLP has credits and room.
    #[test]
    fn no_tlp_waits_while_network_has_room(
        policy in policies(),
        headers in 1u32..12,
        data in 16u32..80,
        steps in steps(),
    ) {
        let mut testbed = Testbed::new(policy, Grant { headers, data });
        steps.iter().for_each(|step| testbed.step(step));
        // In the end all TLPs must arrive.
        for _ in 0..200 {
            testbed.room = 3_000;
            testbed.now += Duration::from_us(5);
            testbed.step(&Step::Consume(8));
        }
        prop_assert!(testbed.model.queue.is_empty(), "{} TLPs stay", testbed.near.queue().len());
        prop_assert_eq!(testbed.near.counters().frames_sent, testbed.frames);
    }
}

#[test]
fn tlps_that_came_together_leave_together_or_alone() {
    let wait = Policy::Wait(Duration::from_us(1));
    for (policy, frames) in [(Policy::Adaptive, 1), (wait, 1), (Policy::PerTlp, 8), (THREES, 3)] {
        let mut testbed = Testbed::new(policy, Grant { headers: 100, data: 1000 });
        testbed.room = 0;
        (0..8).for_each(|_| testbed.step(&Step::Push { class: 0, words: 16, relaxed: false }));
        testbed.room = 3_000;
        testbed.run();
        testbed.step(&Step::Pass(1_000));
        assert_eq!(testbed.frames, frames, "{policy}");
        assert!(testbed.model.queue.is_empty());
    }
}
