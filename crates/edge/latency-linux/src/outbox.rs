//! Sent frames: assigns the kernel's stamps to them, and keeps the frames whose departure stamps
//! must be sent to the other end.

use crate::control::{Control, Step};
use crate::settings::Shift;
use crate::{Port, Remote, Tag};
use latency::Departure;
use std::collections::VecDeque;
use std::io;

/// The number of a frame that does not belong to the run. Other numbers are below
/// [`latency::MOST_FRAMES`].
const NONE: u32 = u32::MAX;

/// The sent frames of a socket.
#[derive(Debug)]
pub(crate) struct Outbox {
    shift: Shift,
    /// The kernel's count (`SOF_TIMESTAMPING_OPT_ID`) of the first frame of this run.
    first: u32,
    /// Frame numbers by the kernel's count minus `first`.
    numbers: Vec<u32>,
    /// Frames whose departure stamps were not sent to the other end yet.
    untold: VecDeque<u64>,
}

impl Outbox {
    /// The outbox of a socket that has sent nothing.
    pub(crate) fn new(shift: Shift) -> Self {
        Self { shift, first: 0, numbers: Vec::new(), untold: VecDeque::new() }
    }

    /// The outbox for another run over the same socket. The kernel's count continues. It has 32
    /// bits and wraps (`sk_tskey`, linux/net/sock.h).
    pub(crate) fn next_run(&self) -> Self {
        let first = self.first.wrapping_add(self.numbers.len() as u32);
        Self { first, ..Self::new(self.shift) }
    }

    /// Sends a frame. `number` is its sequence number, if the frame belongs to the run. Fails as
    /// [`Port::send`].
    pub(crate) fn send(
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

    /// The number of the frame to which the stamps belong, and the stamps. `None` if the frame does
    /// not belong to the run.
    pub(crate) fn departure(&self, control: &Control) -> Option<(u64, Departure)> {
        let (step, id) = control.step?;
        // The counts of an earlier run wrap to indices far beyond the end.
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

    /// Records that the departure stamps of a frame must be sent to the other end.
    pub(crate) fn tell(&mut self, number: u64) {
        self.untold.push_back(number);
    }

    /// Removes and returns the next frame whose departure stamps must be sent.
    pub(crate) fn next_untold(&mut self) -> Option<u64> {
        self.untold.pop_front()
    }

    /// Number of frames whose departure stamps must be sent.
    pub(crate) fn untold(&self) -> usize {
        self.untold.len()
    }
}
