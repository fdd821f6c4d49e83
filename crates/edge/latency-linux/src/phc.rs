//! Hardware clocks of NICs, and the host's clock in a virtual machine (ptp_kvm).

use linux::time::WallClock;
use rustix::time::{DynamicClockId, clock_gettime_dynamic};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// A hardware clock (Linux Documentation/driver-api/ptp.rst).
#[derive(Debug)]
pub(crate) struct HardwareClock(File);

impl HardwareClock {
    /// Opens the clock of a device such as `/dev/ptp0`, or of a network interface.
    ///
    /// # Errors
    /// A sentence: there is no clock, or this process may not open the clock.
    pub(crate) fn open(name: &str) -> Result<Self, String> {
        let path = if name.starts_with('/') { PathBuf::from(name) } else { of_interface(name)? };
        let named = |error: io::Error| format!("{}: {error}", path.display());
        let clock = Self(File::open(&path).map_err(named)?);
        match clock.now() {
            Ok(_) => Ok(clock),
            Err(_) => Err(format!("{} is not a hardware clock", path.display())),
        }
    }

    /// The time of the clock, in ns since 1970.
    ///
    /// # Errors
    /// As `clock_gettime(2)`.
    pub(crate) fn now(&self) -> io::Result<u64> {
        let time = clock_gettime_dynamic(DynamicClockId::Dynamic(self.0.as_fd()))?;
        Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// Reads the clock five times between two readings of CLOCK_TAI: before, hardware, after, in
    /// ns.
    ///
    /// # Errors
    /// As `clock_gettime(2)`.
    pub(crate) fn readings(&self) -> io::Result<[[u64; 3]; 5]> {
        let mut all = [[0; 3]; 5];
        for reading in &mut all {
            *reading = [WallClock::Tai.now(), self.now()?, WallClock::Tai.now()];
        }
        Ok(all)
    }
}

/// The path of the hardware clock of an interface (Linux Documentation/ABI/testing/sysfs-ptp).
fn of_interface(name: &str) -> Result<PathBuf, String> {
    let none = || format!("{name} has no hardware clock; give a device such as /dev/ptp0");
    let clocks = std::fs::read_dir(format!("/sys/class/net/{name}/device/ptp"));
    let first = clocks.map_err(|_| none())?.next().and_then(Result::ok).ok_or_else(none)?;
    Ok(PathBuf::from("/dev").join(first.file_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_invalid_hardware_clock_names_it() {
        for (name, says) in [
            ("/dev/null", "/dev/null is not a hardware clock"),
            ("/dev/ptp999", "/dev/ptp999: No such file"),
            ("lo", "lo has no hardware clock; give a device such as /dev/ptp0"),
        ] {
            let error = HardwareClock::open(name).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
