//! An NVMe drive: a controller, and the media of its namespaces.

use nvme::block::{Error, Request};

/// The media that execute a block request; `media` are those of namespaces 1, 2, ….
///
/// # Errors
/// [`Error::Internal`] if the namespace has no media.
pub fn media_of<'a, M>(media: &'a mut [M], request: &Request) -> Result<&'a mut M, Error> {
    let index = (request.nsid as usize).checked_sub(1);
    index.and_then(|index| media.get_mut(index)).ok_or(Error::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::block::Operation;

    #[test]
    fn each_namespace_has_its_media() {
        let mut media = ["first", "second"];
        let mut of = |nsid| {
            let request = Request { id: 7, command: None, nsid, operation: Operation::Flush };
            media_of(&mut media, &request).copied()
        };
        assert_eq!([of(1), of(2)], [Ok("first"), Ok("second")]);
        for nsid in [0, 3, u32::MAX] {
            assert_eq!(of(nsid), Err(Error::Internal));
        }
    }
}
