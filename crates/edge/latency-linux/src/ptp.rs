//! Requests from ptp4l the offset of its clock from the master.

use latency::{ClockPoint, ptp};
use linux::time::now;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Sockets of ptp4l (ptp4l(8), `uds_address` and `uds_ro_address`). Only root can use the first.
const PATHS: [&str; 2] = ["/var/run/ptp4l", "/var/run/ptp4lro"];
/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// A connection to ptp4l.
pub(crate) struct Ptp4l {
    socket: UnixDatagram,
    domain: u8,
    asked: u16,
}

impl Ptp4l {
    /// Connects to ptp4l. Fails if ptp4l does not answer or has no master.
    pub(crate) fn find(path: Option<&Path>, domain: u8) -> io::Result<Self> {
        let paths = path.map_or(PATHS.map(PathBuf::from).to_vec(), |path| vec![path.into()]);
        let mut why = String::new();
        for path in &paths {
            let socket = match connect(path) {
                Ok(socket) => socket,
                Err(error) => {
                    why += &format!("; {}: {error}", path.display());
                    continue;
                }
            };
            let mut found = Self { socket, domain, asked: 0 };
            match found.status() {
                Some(status) if status.has_master => return Ok(found),
                Some(_) => {
                    return Err(io::Error::other(format!(
                        "ptp4l at {} has no master, so its offset is not the clock error; give \
                         --clock at the far end",
                        path.display()
                    )));
                }
                None => why += &format!("; {}: no answer in domain {domain}", path.display()),
            }
        }
        Err(io::Error::other(format!("ptp4l does not answer{why}")))
    }

    /// The clock of ptp4l minus the clock of its master. `None` without an answer or a master. The
    /// offset that the servo measured last also serves as the error bound.
    pub(crate) fn ask(&mut self) -> Option<ClockPoint> {
        let status = self.status().filter(|status| status.has_master)?;
        let offset_ns = status.master_offset_ns;
        Some(ClockPoint { at_ns: now(), offset_ns, bound_ns: offset_ns.unsigned_abs() })
    }

    fn status(&mut self) -> Option<ptp::Status> {
        self.asked = self.asked.wrapping_add(1);
        // 0 for the default profile, 1 for gPTP (802.1AS-2020, 10.6.2.2.1).
        for transport_specific in [0, 1] {
            self.socket.send(&ptp::request(self.asked, self.domain, transport_specific)).ok()?;
        }
        let mut buffer = [0; 512];
        loop {
            let bytes = self.socket.recv(&mut buffer).ok()?;
            if let Some(status) = ptp::answer(&buffer[..bytes]) {
                return Some(status);
            }
        }
    }
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    // An abstract address, which needs no file, for the answers.
    let name = format!("farlane-latency-{:016x}", linux::random_number());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    socket.connect(path)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}
