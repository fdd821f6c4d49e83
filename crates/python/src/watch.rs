//! Work in another thread, while this one shows its progress and receives signals.

use crate::errors::simulation_error;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Interval of signals and progress.
const INTERVAL: Duration = Duration::from_millis(100);

/// What the working thread shares with the watching one.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    state: Mutex<Option<String>>,
}

impl Control {
    /// Returns whether the work must end early.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Shows the state of the work.
    pub fn show(&self, state: &str) {
        *self.state.lock().expect("no thread panics with the state") = Some(state.to_owned());
    }
}

/// Does `work` without the GIL. After a signal whose handler raises, and after an error of
/// `progress`, the work must stop; the second result is then this exception.
///
/// # Errors
/// If the work panics, which is a mistake in farlane.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Control) -> T + Send,
) -> PyResult<(T, Option<PyErr>)> {
    let control = &Control::default();
    let (done, stopped) = py.detach(|| {
        std::thread::scope(|scope| {
            let (ended, end) = channel::<()>();
            let worker = scope.spawn(move || {
                // Dropped also by a panic.
                let _ended = ended;
                work(control)
            });
            let mut stopped = None;
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(INTERVAL) {
                let turned = Python::attach(|py| turn(py, control, progress.as_ref()));
                if let (Err(error), None) = (turned, &stopped) {
                    control.stop.store(true, Ordering::Relaxed);
                    stopped = Some(error);
                }
            }
            (worker.join(), stopped)
        })
    });
    match done {
        Ok(done) => Ok((done, stopped)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let why = format!("a mistake in farlane: {}", text.unwrap_or("it panicked"));
            Err(simulation_error(py, &why))
        }
    }
}

/// Like [`watched`], for work whose result is of no use after a stop.
///
/// # Errors
/// Those of [`watched`], and the exception that stopped the work.
pub fn whole<T: Send>(py: Python<'_>, work: impl FnOnce(&Control) -> T + Send) -> PyResult<T> {
    match watched(py, None, work)? {
        (_, Some(stopped)) => Err(stopped),
        (done, None) => Ok(done),
    }
}

fn turn(py: Python<'_>, control: &Control, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    py.check_signals()?;
    let state = control.state.lock().expect("no thread panics with the state").take();
    match (progress, state) {
        (Some(progress), Some(state)) if !control.is_stopped() => {
            progress.call1(py, (state,)).map(drop)
        }
        _ => Ok(()),
    }
}
