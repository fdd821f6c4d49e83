//! Sent frames: the kernel's stamps of each, and the frames whose departure is still to be reported
//! to the far side.

use crate::control::{Control, Step};
use crate::settings::Shift;
use crate::{Port, Remote, Tag};
use latency::Departure;
use std::collections::VecDeque;
use std::io;

/// Marks a frame that does not belong to the run. Numbers of frames are below
/// [`latency::MOST_FRAMES`].
const NONE: u32 = u32::MAX;

/// The sent frames of a socket.
#[derive(Debug)]
pub(crate) struct Outbox {
    shift: Shift,
    /// The kernel's count of the socket's frames (`SOF_TIMESTAMPING_OPT_ID`) before the first one.
    first: u32,
    /// Frame numbers by the kernel's count minus `first`.
    numbers: Vec<u32>,
    /// Frames whose departure was not yet reported to the far side.
    untold: VecDeque<u64>,
}

impl Outbox {
    /// The outbox of a socket that has sent nothing.
    pub(crate) fn new(shift: Shift) -> Self {
        Self { shift, first: 0, numbers: Vec::new(), untold: VecDeque::new() }
    }

    /// The outbox for another run over the same socket. The kernel's count continues; it is a `u32`
    /// that wraps (`sk_tskey`, linux/net/sock.h).
    pub(crate) fn next_run(&self) -> Self {
        let first = self.first.wrapping_add(self.numbers.len() as u32);
        Self { first, ..Self::new(self.shift) }
    }

    /// Sends a frame, with its number if it belongs to the run. Fails as [`Port::send`].
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

    /// The number of the frame of these stamps, if it belongs to the run, and the stamps.
    pub(crate) fn departure(&self, control: &Control) -> Option<(u64, Departure)> {
        let (step, id) = control.step?;
        // The indices of an earlier run are far beyond the end.
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

    /// Notes that the departure of this frame is to be reported to the far side.
    pub(crate) fn tell(&mut self, number: u64) {
        self.untold.push_back(number);
    }

    /// The next frame whose departure is to be reported.
    pub(crate) fn next_untold(&mut self) -> Option<u64> {
        self.untold.pop_front()
    }

    /// Number of frames whose departure is to be reported.
    pub(crate) fn untold(&self) -> usize {
        self.untold.len()
    }
}
