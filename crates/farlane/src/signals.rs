//! Ctrl-C and SIGTERM end a node in order; a second signal ends it at once.
//! SIGUSR1 prints counters, SIGUSR2 stops or restarts the trace, SIGHUP reads the file of peers again.

use live::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::io;

/// Exit status of a command that a signal ended: 128 and SIGINT, as of shells.
pub const INTERRUPTED: u8 = 130;

/// Requests that SIGINT, SIGTERM, SIGUSR1, SIGUSR2 and SIGHUP make. Fails if the signals cannot be handled.
pub fn stop_on_signals() -> io::Result<Stop> {
    let stop = Stop::new()?;
    for signal in [SIGINT, SIGTERM] {
        let status = INTERRUPTED.into();
        signal_hook::flag::register_conditional_shutdown(signal, status, stop.flag.clone())?;
        signal_hook::flag::register(signal, stop.flag.clone())?;
        signal_hook::low_level::pipe::register(signal, stop.waker()?)?;
    }
    for (signal, flag) in [(SIGUSR1, &stop.report), (SIGUSR2, &stop.trace)] {
        signal_hook::flag::register(signal, flag.clone())?;
        signal_hook::low_level::pipe::register(signal, stop.waker()?)?;
    }
    signal_hook::flag::register(SIGHUP, stop.reload.clone())?;
    Ok(stop)
}
