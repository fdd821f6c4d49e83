//! The Persistent Event log page (NVMe 1.4, section 5.14.1.13).

use crate::state::{EventLog, LoggedEvent};
use wire::nvme::{PersistentEventHeader, PersistentEventLog, log_page};

/// The log page with all events, newest first, padded to a double word. `header` has the identity
/// and the counters of the drive, and the time.
pub(crate) fn persistent_page(header: PersistentEventLog, events: &EventLog) -> Vec<u8> {
    let mut page = vec![0; PersistentEventLog::LENGTH];
    for event in events.0.iter().rev() {
        let LoggedEvent { kind, controller, timestamp, data } = event;
        let header = PersistentEventHeader {
            kind: *kind,
            revision: PersistentEventHeader::REVISION,
            header_length: PersistentEventHeader::HEADER_LENGTH,
            controller: *controller,
            timestamp: *timestamp,
            vendor_length: 0,
            length: data.len() as u16,
        };
        page.extend_from_slice(&header.encode());
        page.extend_from_slice(data);
    }
    page.resize(page.len().next_multiple_of(4), 0);
    let header = PersistentEventLog {
        id: log_page::PERSISTENT_EVENT,
        events: events.0.len() as u32,
        length: page.len() as u64,
        revision: PersistentEventLog::REVISION,
        header_length: PersistentEventLog::HEADER_LENGTH,
        supported: PersistentEventLog::all_types(),
        ..header
    };
    page[..PersistentEventLog::LENGTH].copy_from_slice(&header.encode());
    page
}
