//! The upper end of a modelled PCIe link, as the function below a root complex
//! or a downstream port.

use crate::measure::Journeys;
use crate::pcie::Link;
use pcie::{Function, Input, OrderedQueue, Output, Ports, PushRoom, Ready, Target};
use wire::tlp::{Class, TraceId};
use wire::{Bdf, Instant};

/// TLPs of each class that wait here on their way up. Further TLPs stay in the link's receiver,
/// which returns no credits for them.
pub(super) const DEPTH: usize = 8;

/// The rooms for pushed bytes of the functions directly below a switch's ports, by bus.
#[derive(Debug, Default)]
pub(crate) struct PushRooms(pub Vec<(u8, PushRoom)>);

/// Queues between a node and a modelled link.
#[derive(Debug)]
pub(super) struct Port {
    depth: usize,
    /// The classes that the link below accepts now.
    pub link: Ready,
    pub down: OrderedQueue,
    /// TLPs from the link below, of classes in [`room_up`](Self::room_up).
    pub up: OrderedQueue,
    reset: bool,
    /// Trace IDs of discarded TLPs.
    discarded: Vec<TraceId>,
    push_rooms: PushRooms,
    /// Posted TLPs and their data credits that the switch had not received when it reported its
    /// rooms.
    unseen: [u32; 2],
}

impl Port {
    /// A port in which up to `depth` TLPs of each class wait on their way down, plus one that the
    /// link accepts at once.
    pub(super) fn new(depth: usize) -> Self {
        let (down, up) = Default::default();
        Self {
            depth,
            link: Ready::NONE,
            down,
            up,
            reset: false,
            discarded: Vec::new(),
            push_rooms: PushRooms::default(),
            unseen: [0; 2],
        }
    }

    /// Sets the rooms for pushed bytes of the switch below, with the posted TLPs and data credits
    /// on their way to it.
    pub(super) fn set_push_rooms(&mut self, rooms: PushRooms, [headers, data]: [u32; 2]) {
        let waiting = self.down.len(Class::Posted);
        // Each TLP needs at most one data credit more than its share of the payload.
        let payload = self.down.payload(Class::Posted) / 16 + waiting;
        self.unseen = [headers + waiting as u32, data + payload as u32];
        self.push_rooms = rooms;
    }

    /// The classes that the port accepts from the link below.
    pub(super) fn room_up(&self) -> Ready {
        Ready::from_fn(|class| self.up.len(class) < DEPTH)
    }

    /// Resets the link below after a hot reset from above; returns whether there was one.
    pub(super) fn pass_reset(
        &mut self,
        now: Instant,
        link: &mut Link,
        journeys: &mut Journeys,
    ) -> bool {
        let reset = std::mem::take(&mut self.reset);
        if reset {
            link.reset(now, |trace_id| journeys.end(trace_id));
            self.discarded.drain(..).for_each(|trace_id| journeys.end(trace_id));
        }
        reset
    }
}

impl Function for Port {
    fn handle(&mut self, _: Instant, input: Input) {
        match input {
            Input::Tlp(tlp) => {
                if tlp.class() == Class::Posted {
                    self.unseen[0] += 1;
                    self.unseen[1] += tlp.data_credits();
                }
                self.down.push(tlp);
            }
            Input::HotReset => {
                self.discarded.extend(self.down.trace_ids().chain(self.up.trace_ids()));
                self.down.clear();
                self.up.clear();
                self.reset = true;
            }
        }
    }

    fn poll(&mut self, _: Instant, ready: Ready) -> Output {
        self.up.poll(ready)
    }

    fn ready(&self) -> Ready {
        let passes = |class| self.down.is_empty() && self.link.has(class);
        Ready::from_fn(|class| self.down.len(class) < self.depth || passes(class))
    }

    fn ports(&self) -> Option<&dyn Ports> {
        Some(self)
    }
}

/// One queue for all ports, because the link has only one.
impl Ports for Port {
    fn queue(&self, _: Target) -> usize {
        0
    }

    fn queue_ready(&self, _: usize) -> Ready {
        self.ready()
    }

    /// The room of the switch below. TLPs that wait here for the link's credits have reserved room
    /// in the switch.
    fn push_room(&self, target: Bdf) -> Option<PushRoom> {
        let (_, room) = self.push_rooms.0.iter().find(|(bus, _)| *bus == target.bus())?;
        let [headers, data] = self.unseen;
        Some(PushRoom {
            headers: room.headers.saturating_sub(headers),
            data: room.data.saturating_sub(data),
            ..*room
        })
    }
}
