//! An NVMe drive: a subsystem, and the media of its namespaces.

use nvme::block::{Error, Request};
use std::collections::BTreeMap;

/// The media that execute a block request; `media` by NSID.
///
/// # Errors
/// [`Error::Internal`] if the namespace has no media.
pub fn media_of<'a, M>(
    media: &'a mut BTreeMap<u32, M>,
    request: &Request,
) -> Result<&'a mut M, Error> {
    media.get_mut(&request.nsid).ok_or(Error::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::block::Operation;

    #[test]
    fn each_namespace_has_its_media() {
        let mut media = BTreeMap::from([(1, "first"), (7, "second")]);
        let mut of = |nsid| {
            let request = Request { id: 7, command: None, nsid, operation: Operation::Flush };
            media_of(&mut media, &request).copied()
        };
        assert_eq!([of(1), of(7)], [Ok("first"), Ok("second")]);
        for nsid in [0, 2, u32::MAX] {
            assert_eq!(of(nsid), Err(Error::Internal));
        }
    }
}
