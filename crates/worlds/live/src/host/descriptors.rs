//! The number of descriptors that the clients of endpoints may send.

use pcie::enumerate::Node;
use rustix::process::{Resource, getrlimit};
use std::io;

/// Descriptors for other purposes than interrupt vectors: sockets, links, the memory of guests.
const OTHERS: u64 = 256;

/// Refuses endpoints with more interrupt vectors than this process may have descriptors
/// (RLIMIT_NOFILE, getrlimit(2)), because a VMM sends one for each vector.
pub(super) fn check<'a>(endpoints: impl IntoIterator<Item = &'a Node>) -> io::Result<()> {
    check_limit(endpoints, getrlimit(Resource::Nofile).current)
}

fn check_limit<'a>(
    endpoints: impl IntoIterator<Item = &'a Node>,
    limit: Option<u64>,
) -> io::Result<()> {
    let vectors: u64 = endpoints.into_iter().map(vectors).sum();
    match limit {
        Some(limit) if vectors + OTHERS > limit => Err(io::Error::other(format!(
            "the endpoints need {vectors} descriptors for interrupt vectors, and this process \
             {OTHERS} others, above the limit of {limit}; raise the limit (ulimit -n), or start \
             drives with fewer --queues"
        ))),
        _ => Ok(()),
    }
}

/// Number of interrupt vectors of an endpoint; INTx is one.
fn vectors(node: &Node) -> u64 {
    let msix = node.device().and_then(|device| device.msix);
    msix.map_or(1, |msix| u64::from(msix.vectors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::{BARE, node};
    use pcie::enumerate::{Device, Kind, Msix};
    use wire::Bdf;

    #[test]
    fn descriptor_limit_includes_vectors_of_all_endpoints() {
        let endpoint = |vectors| {
            let at = (0, 0);
            let msix = Msix { capability: 0x48, vectors, table: at, pending: at };
            node(Bdf::new(1, 0, 0), Kind::Endpoint(Device { msix: Some(msix), ..BARE }))
        };
        let plain = node(Bdf::new(2, 0, 0), Kind::Endpoint(BARE));
        let endpoints = [endpoint(2048), endpoint(65), plain];
        assert!(check_limit(&endpoints, None).is_ok());
        assert!(check_limit(&endpoints, Some(2048 + 65 + 1 + 256)).is_ok());
        let refused = check_limit(&endpoints, Some(2369)).unwrap_err().to_string();
        assert!(refused.contains("2114 descriptors"), "{refused}");
        assert!(refused.contains("limit of 2369"), "{refused}");
    }
}
