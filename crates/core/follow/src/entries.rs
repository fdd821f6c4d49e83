//! Completion queue entries in the writes of a controller.

use wire::nvme::{COMPLETION_ENTRY, Completion};
use wire::tlp::{MemoryRequest, Tlp};

/// The entries in a write to a completion queue; `None` unless the write consists of whole entries.
pub fn completion_entries(
    tlp: &Tlp,
    request: MemoryRequest,
) -> Option<impl Iterator<Item = Completion>> {
    let aligned = request.address.is_multiple_of(COMPLETION_ENTRY as u64);
    let (entries, rest) = tlp.data.as_chunks::<COMPLETION_ENTRY>();
    (request.is_whole() && aligned && rest.is_empty() && !tlp.poisoned)
        .then(|| entries.iter().map(Completion::decode))
}
