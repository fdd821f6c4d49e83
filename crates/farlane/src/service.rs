//! Messages of a node to the service manager that started it (sd_notify(3)). Without NOTIFY_SOCKET
//! nothing is sent.

use crate::output::warning;
use live::{Control, Stop};
use sd_notify::NotifyState;
use tracing::debug;

/// The node serves: units with `Type=notify` are active from here on. `systemctl status` shows
/// `status`.
pub fn ready(status: &str) {
    debug!("ready, status for the service manager: {status}");
    notify(&[NotifyState::Status(status), NotifyState::Ready]);
}

/// The pending request to the node; the service manager hears of a stop.
pub fn request(stop: &Stop) -> Control {
    let request = stop.request();
    if request == Control::Stop {
        notify(&[NotifyState::Stopping]);
    }
    request
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warning(format_args!("the service manager was not told (NOTIFY_SOCKET): {error}"));
    }
}
