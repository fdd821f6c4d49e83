//! The leases of a drive's controllers: what the media do for a host that may have given its link up
//! (`docs/protocol.md`, "Lease").

use wire::Instant;

/// The leases of the controllers; empty for a drive without leases.
#[derive(Debug, Default)]
pub(super) struct Leases(Vec<Lease>);

#[derive(Clone, Debug)]
struct Lease {
    until: Instant,
    /// Number of requests that the media carry out.
    in_media: usize,
}

impl Leases {
    /// Sets the end of a controller's lease.
    pub(super) fn set(&mut self, controller: u16, until: Instant) {
        let index = usize::from(controller) - 1;
        let none = Lease { until: Instant::ZERO, in_media: 0 };
        self.0.resize(self.0.len().max(index + 1), none);
        self.0[index].until = until;
    }

    /// Whether a controller has a lease that is over.
    pub(super) fn is_over(&self, now: Instant, controller: u16) -> bool {
        let lease = self.0.get(usize::from(controller).wrapping_sub(1));
        lease.is_some_and(|lease| now >= lease.until)
    }

    /// Whether a request of a controller may begin. It waits for the controller's lease, and for
    /// requests of other controllers whose lease is over: their hosts may have sent the same requests
    /// again over this controller.
    pub(super) fn allow(&self, now: Instant, controller: u16) -> bool {
        self.0
            .iter()
            .zip(1..)
            .all(|(lease, id)| now < lease.until || id != controller && lease.in_media == 0)
    }

    /// Notes that a request begins.
    pub(super) fn begin(&mut self, controller: u16) {
        if let Some(lease) = self.of(controller) {
            lease.in_media += 1;
        }
    }

    /// Notes that a request has ended.
    pub(super) fn end(&mut self, controller: u16) {
        if let Some(lease) = self.of(controller) {
            lease.in_media = lease.in_media.saturating_sub(1);
        }
    }

    fn of(&mut self, controller: u16) -> Option<&mut Lease> {
        self.0.get_mut(usize::from(controller).wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_for_their_lease_and_for_what_a_silent_host_has_in_the_media() {
        let at = Instant::from_ns;
        let mut leases = Leases::default();
        assert!(leases.allow(at(0), 1), "no leases");
        leases.set(2, at(10));
        assert!(leases.is_over(at(0), 1) && !leases.allow(at(0), 1), "none yet");
        leases.set(1, at(20));
        assert!(leases.allow(at(9), 1) && leases.allow(at(9), 2));
        leases.begin(2);
        assert!(leases.allow(at(9), 1));
        assert!(!leases.allow(at(10), 2) && !leases.allow(at(10), 1), "2 may be given up");
        leases.end(2);
        assert!(leases.allow(at(10), 1) && !leases.allow(at(10), 2));
        assert!(!leases.allow(at(20), 1));
        assert!(!leases.is_over(at(20), 0), "a sanitize operation has no lease");
    }
}
