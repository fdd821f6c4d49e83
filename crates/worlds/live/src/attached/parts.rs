//! A drive whose queue pairs several threads serve: the controller and its parts.

use super::NvmeDrive;
use super::drive::Drive;
use super::made::{make, place_of};
use crate::poller::Poller;
use nvme::{PartMessage, PartRequest, Settings, Subsystem};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use storage::completions::{Completions, Finished, completions};
use storage::media::{Backing, Media, SharedRam, check_memory};
use wire::Instant;

/// The messages between a controller and its parts. Threads exchange them only for commands and
/// changes that concern several connections, never for I/O commands.
pub(super) enum Exchange {
    /// Of the controller: the parts from number 1 on.
    Controller { parts: Vec<Finished<PartRequest>>, messages: Completions<PartMessage> },
    /// Of a part.
    Part { requests: Completions<PartRequest>, controller: Finished<PartMessage> },
}

impl Exchange {
    /// A descriptor that is readable when a message may have arrived.
    pub fn signal(&self) -> BorrowedFd<'_> {
        match self {
            Self::Controller { messages, .. } => messages.signal(),
            Self::Part { requests, .. } => requests.signal(),
        }
    }

    /// Passes arrived messages to the subsystem, and sends the subsystem's messages. Returns whether
    /// there was any.
    pub fn service(&self, now: Instant, subsystem: &mut Subsystem, poller: &Poller) -> bool {
        let ready = poller.take_ready(self.signal());
        let mut moved = false;
        match self {
            Self::Controller { parts, messages } => {
                if ready {
                    messages.clear_signal();
                    while let Some(message) = messages.poll() {
                        subsystem.handle_part_message(now, message);
                    }
                }
                while let Some((part, request)) = subsystem.poll_part() {
                    parts[usize::from(part) - 1].send([request]);
                    moved = true;
                }
            }
            Self::Part { requests, controller } => {
                if ready {
                    requests.clear_signal();
                    while let Some(request) = requests.poll() {
                        subsystem.handle_part_request(now, request);
                    }
                }
                while let Some(message) = subsystem.poll_part_message() {
                    controller.send([message]);
                    moved = true;
                }
            }
        }
        moved | ready
    }
}

/// A part of a drive, on the way to its thread.
pub struct DrivePart {
    subsystem: Subsystem,
    media: BTreeMap<u32, Box<dyn Media>>,
    exchange: Exchange,
}

impl DrivePart {
    /// The part as a drive with one controller, in its thread.
    pub fn into_drive(self) -> NvmeDrive {
        let Self { subsystem, media, exchange } = self;
        NvmeDrive::of(Drive::new(subsystem, media).exchanging(exchange))
    }
}

impl NvmeDrive {
    /// As [`over`](Self::over) with one controller, for links of several connections with
    /// `queue_pairs` I/O queue pairs each. Returns the parts for the further connections, from 1 on,
    /// too.
    ///
    /// # Errors
    /// As [`over`](Self::over), or if a namespace is not in RAM.
    pub fn divided(
        namespaces: &[Backing],
        serial: Option<&str>,
        place: &str,
        settings: Settings,
        queue_pairs: u16,
    ) -> io::Result<(Self, Vec<DrivePart>)> {
        check_memory(namespaces.iter().map(Backing::memory).fold(0, u64::saturating_add))?;
        let count = settings.io_queues.div_ceil(queue_pairs) - 1;
        let opened = namespaces.iter().map(Backing::open_shared).collect::<io::Result<Vec<_>>>()?;
        let boxed = |one: &SharedRam| -> Box<dyn Media> { Box::new(one.clone()) };
        let of_controller = opened.iter().map(|(config, ram)| (config.clone(), boxed(ram)));
        let place = place_of(namespaces, place);
        let (subsystem, media) = make(of_controller.collect(), serial, &place, settings);
        let subsystem = subsystem.with_parts(count, queue_pairs);
        let (controller, messages) = completions()?;
        let (mut parts, mut senders) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (sender, requests) = completions()?;
            senders.push(sender);
            parts.push(DrivePart {
                subsystem: subsystem.part(Instant::ZERO),
                media: (1..).zip(opened.iter().map(|(_, ram)| boxed(ram))).collect(),
                exchange: Exchange::Part { requests, controller: controller.clone() },
            });
        }
        let exchange = Exchange::Controller { parts: senders, messages };
        let drive = Drive::new(subsystem.with_label(), media).exchanging(exchange);
        Ok((Self::of(drive), parts))
    }
}
