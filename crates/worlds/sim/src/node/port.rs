//! The upper end of a modelled PCIe link. For the root complex or the downstream port above, it is
//! the function below.

use crate::measure::Journeys;
use crate::pcie::Link;
use pcie::{Function, Input, OrderedQueue, Output, Ports, PushRoom, Ready, Target};
use wire::tlp::{Class, TraceId};
use wire::{Bdf, Instant};

/// The most TLPs of each class that wait in a [`Port`] on their way up. Further TLPs stay in the
/// link's receiver, which returns no credits for them.
pub(super) const DEPTH: usize = 8;

/// The room for pushed bytes of each function directly below a port of a switch, by bus.
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
    /// Whether a link of the switch below is interrupted.
    pub interrupted: bool,
    /// Header and data credits of the posted TLPs that the switch had not received when it reported
    /// its rooms.
    unseen: [u32; 2],
}

impl Port {
    /// A port in which up to `depth` TLPs of each class wait on their way down, and one more TLP if
    /// the link accepts it at once.
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
            interrupted: false,
            unseen: [0; 2],
        }
    }

    /// Sets the rooms for pushed bytes of the switch below. `[headers, data]` are the credits of
    /// the posted TLPs on the link to the switch.
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

    /// Resets the link below after a hot reset from above. Returns whether there was a hot reset.
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

    /// Holds requests to other ports too, which are answered in time.
    fn is_interrupted(&self, _: usize) -> bool {
        self.interrupted
    }

    /// The room that the switch below has reported, minus the credits of posted TLPs that it had
    /// not received then.
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
