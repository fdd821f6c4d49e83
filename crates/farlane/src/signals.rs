//! SIGINT (Ctrl-C) and SIGTERM end a node in order; a second one ends it at once. SIGUSR1 prints
//! counters, SIGUSR2 stops or restarts the trace, SIGHUP reads files again: the file of
//! the node, its key and its peers.

use live::{Stop, TraceSwitch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::io;

/// Exit status of a command that a signal ended: 128 + SIGINT, as in shells.
pub const INTERRUPTED: u8 = 130;

/// Registers handlers of SIGINT, SIGTERM, SIGUSR1, SIGUSR2 and SIGHUP, and returns the requests that
/// the signals make. Fails if the handlers cannot be registered.
pub fn stop_on_signals() -> io::Result<Stop> {
    let stop = Stop::new()?;
    for signal in [SIGINT, SIGTERM] {
        let status = INTERRUPTED.into();
        signal_hook::flag::register_conditional_shutdown(signal, status, stop.flag.clone())?;
        signal_hook::flag::register(signal, stop.flag.clone())?;
        signal_hook::low_level::pipe::register(signal, stop.waker()?)?;
    }
    signal_hook::flag::register(SIGUSR1, stop.report.clone())?;
    signal_hook::flag::register_usize(SIGUSR2, stop.trace.clone(), TraceSwitch::Toggle as usize)?;
    for signal in [SIGUSR1, SIGUSR2] {
        signal_hook::low_level::pipe::register(signal, stop.waker()?)?;
    }
    signal_hook::flag::register(SIGHUP, stop.reload.clone())?;
    Ok(stop)
}
