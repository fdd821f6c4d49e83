//! Hardware time stamps of a NIC (Linux Documentation/networking/timestamping.rst, section 3),
//! enabled for the time of a run.

use crate::Port;
use crate::kernel::{StampConfig, hardware_stamps, set_hardware_stamps};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// `HWTSTAMP_TX_OFF` and `HWTSTAMP_TX_ON`, `HWTSTAMP_FILTER_ALL` of linux/net_tstamp.h: stamp
/// nothing, stamp the frames that a socket selects, stamp all received frames.
const TX_OFF: i32 = 0;
const TX_ON: i32 = 1;
const FILTER_ALL: i32 = 1;

/// A NIC with hardware stamps enabled. Drop restores the previous setting, unless another program
/// has changed the setting since.
#[derive(Debug)]
pub(crate) struct HardwareStamps {
    /// A socket in the interface's network namespace.
    socket: OwnedFd,
    interface: String,
    /// The previous setting, if the driver reports it.
    before: Option<StampConfig>,
    /// The present setting.
    now: StampConfig,
}

impl HardwareStamps {
    /// Enables hardware stamps of an interface for frames that `port` sends and, if possible, for
    /// all received frames.
    ///
    /// # Errors
    /// A sentence, for example that the interface has no hardware stamps.
    pub(crate) fn on(port: &Port, interface: &str) -> Result<Self, String> {
        let socket = port.as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
        let before = hardware_stamps(&socket, interface).ok();
        let set = |config| set_hardware_stamps(&socket, interface, config);
        let now = switch_on(before, set).map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => {
                format!("{interface} has no hardware time stamps (SIOCSHWTSTAMP: {error})")
            }
            io::ErrorKind::PermissionDenied => format!("{interface}: needs CAP_NET_ADMIN"),
            _ => format!("{interface}: {error}"),
        })?;
        Ok(Self { socket, interface: interface.to_owned(), before, now })
    }

    /// A remark about the setting, for the document.
    pub(crate) fn note(&self) -> String {
        let received = match self.now[2] {
            FILTER_ALL => "",
            _ => "; the hardware stamps only some received frames, such as PTP frames",
        };
        let after = match self.before {
            None => "the former setting cannot be read and is not restored",
            Some(before) if before == self.now => "was set already",
            Some(_) => "restored at the end",
        };
        format!("{after}{received}")
    }
}

impl Drop for HardwareStamps {
    fn drop(&mut self) {
        let found = hardware_stamps(&self.socket, &self.interface).ok();
        if let Some(before) = to_restore(self.before, self.now, found) {
            // The interface may have been removed.
            let _ = set_hardware_stamps(&self.socket, &self.interface, before);
        }
    }
}

/// Enables time stamps. Returns the configuration that the driver chose. Keeps a transmit mode
/// other than off, because ptp4l may need its one-step mode. Keeps the receive filter if the NIC
/// cannot stamp all received frames.
fn switch_on(
    before: Option<StampConfig>,
    mut set: impl FnMut(StampConfig) -> io::Result<StampConfig>,
) -> io::Result<StampConfig> {
    let [flags, transmit, receive] = before.unwrap_or_default();
    let transmit = if transmit == TX_OFF { TX_ON } else { transmit };
    let wanted = [flags, transmit, FILTER_ALL];
    if before == Some(wanted) {
        return Ok(wanted);
    }
    match set(wanted) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::RANGE) => {
            set([flags, transmit, receive])
        }
        done => done,
    }
}

/// The setting to restore: the previous one, if the present setting (`found`) is the one that this
/// program has set (`set`). `None`: restore nothing.
fn to_restore(
    before: Option<StampConfig>,
    set: StampConfig,
    found: Option<StampConfig>,
) -> Option<StampConfig> {
    before.filter(|before| *before != set && found == Some(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `HWTSTAMP_TX_ONESTEP_SYNC` and `HWTSTAMP_FILTER_PTP_V2_EVENT` of linux/net_tstamp.h.
    const ONE_STEP: i32 = 2;
    const PTP_EVENTS: i32 = 12;

    /// The settings requested of a NIC that supports these receive filters, and the result.
    fn ask(
        before: Option<StampConfig>,
        filters: &[i32],
    ) -> (Vec<StampConfig>, Option<StampConfig>) {
        let mut asked = Vec::new();
        let set = |config: StampConfig| {
            asked.push(config);
            if filters.contains(&config[2]) { Ok(config) } else { Err(Errno::RANGE.into()) }
        };
        let made = switch_on(before, set).ok();
        (asked, made)
    }

    #[test]
    fn enabled_timestamping_stays_enabled() {
        let all = [0, TX_ON, FILTER_ALL];
        assert_eq!(ask(Some(all), &[]), (vec![], Some(all)), "nothing to do");
        assert_eq!(ask(Some([0; 3]), &[FILTER_ALL]), (vec![all], Some(all)));
        assert_eq!(ask(None, &[FILTER_ALL]), (vec![all], Some(all)), "an old driver");
        let ptp4l = [0, ONE_STEP, PTP_EVENTS];
        let both = [0, ONE_STEP, FILTER_ALL];
        assert_eq!(ask(Some(ptp4l), &[FILTER_ALL]), (vec![both], Some(both)));
        // The NIC stamps only the received frames of PTP.
        assert_eq!(ask(Some(ptp4l), &[PTP_EVENTS]), (vec![both, ptp4l], Some(ptp4l)));
        assert_eq!(ask(Some([0; 3]), &[]).1, None);
    }

    #[test]
    fn only_own_changes_are_restored() {
        let (off, set, other) = ([0; 3], [0, TX_ON, FILTER_ALL], [0, TX_ON, PTP_EVENTS]);
        assert_eq!(to_restore(Some(off), set, Some(set)), Some(off));
        assert_eq!(to_restore(Some(set), set, Some(set)), None, "it was so before");
        assert_eq!(to_restore(Some(off), set, Some(other)), None, "somebody else has set it");
        assert_eq!(to_restore(Some(off), set, None), None, "the interface is gone");
        assert_eq!(to_restore(None, set, Some(set)), None, "nobody knows how it was");
    }
}
