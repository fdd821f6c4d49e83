//! Addresses, and the rule that nothing leaves this machine by accident.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Turns `HOST:PORT` into an address.
fn resolve(text: &str) -> io::Result<SocketAddr> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let mut found = text
        .to_socket_addrs()
        .map_err(|error| invalid(format!("'{text}' is no HOST:PORT: {error}")))?;
    found.next().ok_or_else(|| invalid(format!("'{text}' has no address")))
}

/// Turns `HOST:PORT` into an address, refusing anything but loopback unless
/// `insecure` is set: links are neither authenticated nor encrypted.
///
/// # Errors
/// A sentence that names the address and the option.
pub fn resolve_local(text: &str, insecure: bool) -> io::Result<SocketAddr> {
    let address = resolve(text)?;
    if address.ip().is_loopback() || insecure {
        return Ok(address);
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{address} is not loopback, and links are neither authenticated nor encrypted: \
             add --insecure if the network between the nodes is trusted"
        ),
    ))
}
