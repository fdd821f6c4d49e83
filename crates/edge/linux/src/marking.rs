//! Marks of sent packets: DSCP and priority (socket(7), ip(7)).

use crate::about;
use socket2::{Domain, SockRef, Socket, Type};
use std::io;

/// DSCP and priority of all packets that a node sends over links. `None` keeps the kernel's
/// default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marking {
    /// `SO_PRIORITY`, 0 to 7, which selects the queue or class of a queueing discipline. A VLAN
    /// interface maps it to the PCP of its tag (`egress-qos-map`, ip-link(8)).
    pub priority: Option<u8>,
    /// The Differentiated Services code point of IP packets, 0 to 63 (RFC 2474, section 3).
    pub dscp: Option<u8>,
}

impl Marking {
    /// Checks that this process may set the marks, on a socket that sends nothing.
    ///
    /// # Errors
    /// A sentence, for example that a priority above 6 needs CAP_NET_ADMIN (socket(7)).
    pub fn check(self) -> io::Result<()> {
        // A stream, as links have: a sandbox may deny datagrams.
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        self.mark(SockRef::from(&socket), Some(Domain::IPV4))
    }

    /// Marks a socket. `ip` is its IP version; `None` for a socket without IP, where the DSCP is
    /// ignored. SO_PRIORITY is set last, because the kernel derives a priority from IP_TOS
    /// (`rt_tos2priority` in Linux).
    ///
    /// # Errors
    /// A sentence, as [`check`](Self::check).
    pub fn mark(self, socket: SockRef<'_>, ip: Option<Domain>) -> io::Result<()> {
        if let (Some(dscp), Some(ip)) = (self.dscp, ip) {
            // The two low bits are ECN (RFC 3168, section 5).
            let octet = u32::from(dscp) << 2;
            let set = || {
                if ip == Domain::IPV6 {
                    socket.set_tclass_v6(octet)?;
                }
                // Also on an IPv6 socket, which may carry IPv4-mapped addresses.
                socket.set_tos_v4(octet)
            };
            set().map_err(|error| about(format!("DSCP {dscp}"), error))?;
        }
        let Some(priority) = self.priority else { return Ok(()) };
        socket.set_priority(priority.into()).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => io::Error::new(
                error.kind(),
                format!(
                    "priority {priority} needs CAP_NET_ADMIN: run as root, `setcap \
                     cap_net_admin+ep` the program, or use 0 to 6"
                ),
            ),
            _ => about(format!("priority {priority}"), error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    #[test]
    fn priority_7_without_the_capability_is_refused_in_a_sentence() {
        let refused = std::thread::spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW);
            set_capabilities(None, sets).unwrap();
            let check = |priority| Marking { priority: Some(priority), dscp: None }.check();
            (check(6), check(7))
        });
        let (six, seven) = refused.join().unwrap();
        six.unwrap();
        let error = seven.unwrap_err().to_string();
        assert!(error.contains("priority 7 needs CAP_NET_ADMIN"), "{error}");
    }
}
