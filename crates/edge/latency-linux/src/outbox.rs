//! Frames that were sent: the kernel's stamps of each, and which of them the far side must be told.

use crate::control::{Control, Step};
use crate::settings::Shift;
use crate::{Port, Remote, Tag};
use latency::Departure;
use std::collections::VecDeque;
use std::io;

/// In the place of a number: the frame is none of the run. Numbers are below
/// [`latency::MOST_FRAMES`].
const NONE: u32 = u32::MAX;

/// The frames that a socket sent.
#[derive(Debug)]
pub struct Outbox {
    shift: Shift,
    /// The kernel's count of the socket's frames (`SOF_TIMESTAMPING_OPT_ID`) before the first one.
    first: u32,
    /// By that count from `first` on: the number of the frame.
    numbers: Vec<u32>,
    /// Frames whose departure the far side does not know.
    untold: VecDeque<u64>,
}

impl Outbox {
    /// Of a socket that has sent nothing.
    pub fn new(shift: Shift) -> Self {
        Self { shift, first: 0, numbers: Vec::new(), untold: VecDeque::new() }
    }

    /// For another run over the same socket, whose count goes on. The kernel's is an `u32` that wraps
    /// (`sk_tskey`, linux/net/sock.h).
    pub fn next_run(&self) -> Self {
        let first = self.first.wrapping_add(self.numbers.len() as u32);
        Self { first, ..Self::new(self.shift) }
    }

    /// Sends a frame of this number, if it is one of the run. Fails as [`Port::send`].
    pub fn send(
        &mut self,
        port: &Port,
        (bytes, to, tag): (&[u8], Remote, Option<Tag>),
        launch: Option<u64>,
        number: Option<u64>,
    ) -> io::Result<()> {
        let sent = port.send(bytes, to, tag, launch);
        if Port::is_counted(&sent) {
            self.numbers.push(number.map_or(NONE, |number| number as u32));
        }
        sent
    }

    /// The number of the frame of these stamps, if it is one of the run, and when it left.
    pub fn departure(&self, control: &Control) -> Option<(u64, Departure)> {
        let (step, id) = control.step?;
        // Those of a run before are far behind the end.
        let at = id.wrapping_sub(self.first) as usize;
        let number = self.numbers.get(at).filter(|number| **number != NONE)?;
        let software = self.shift.stamp(control.software);
        let departure = match step {
            Step::Queued => Departure { queued: software, ..Departure::default() },
            Step::Sent => Departure {
                queued: None,
                driver: software,
                wire: self.shift.stamp(control.hardware),
            },
        };
        Some((u64::from(*number), departure))
    }

    /// The far side is to be told when this frame left.
    pub fn tell(&mut self, number: u64) {
        self.untold.push_back(number);
    }

    /// The next frame of which the far side is told.
    pub fn next_untold(&mut self) -> Option<u64> {
        self.untold.pop_front()
    }

    /// How many there are.
    pub fn untold(&self) -> usize {
        self.untold.len()
    }
}
