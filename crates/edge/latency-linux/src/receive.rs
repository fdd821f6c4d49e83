//! The receiving thread: returned frames, and stamps of sent frames.

use crate::control::Control;
use crate::realtime::prioritise;
use crate::{Port, Tag};
use latency::frame::{Frame, Kind};
use linux::time::now;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time;

/// An event of the receiving thread.
pub(crate) enum Event {
    Sent(Control),
    Back { frame: Frame, tag: Option<Tag>, wire: u64, kernel: u64, application: u64 },
    Stranger(String),
    Broken(std::io::Error),
}

/// Receives until `done` is set.
pub(crate) fn run(fifo: Option<u8>, port: &Port, done: &AtomicBool, tell: &SyncSender<Event>) {
    if let Some(priority) = fifo {
        // The talker reports a refusal of the same setting.
        let _ = prioritise(priority);
    }
    let mut buffer = [0; 2048];
    while !done.load(Ordering::Relaxed) {
        if let Err(error) = receive_all(port, &mut buffer, tell) {
            let _ = tell.send(Event::Broken(error));
            return;
        }
    }
}

fn receive_all(port: &Port, buffer: &mut [u8], tell: &SyncSender<Event>) -> std::io::Result<()> {
    // If the receiver of events is gone, the talker has ended.
    port.wait(time::Duration::from_millis(20))?;
    while let Some(received) = port.receive(buffer)? {
        let application = now();
        let at = port.payload_at();
        let event = match Frame::decode(&buffer[at..at + received.bytes]) {
            Ok(frame) if frame.kind == Kind::Reflected => {
                let [wire, kernel] =
                    [received.wire, received.kernel].map(|at| at.map_or(0, u64::from));
                Event::Back { frame, tag: received.tag, wire, kernel, application }
            }
            // On loopback the sender receives its own frames.
            Ok(_) => continue,
            Err(why) => Event::Stranger(format!("from {}: {why}", received.from)),
        };
        let _ = tell.send(event);
    }
    while let Some(sent) = port.sent()? {
        let _ = tell.send(Event::Sent(sent));
    }
    Ok(())
}
