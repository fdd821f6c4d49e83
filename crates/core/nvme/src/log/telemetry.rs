//! The telemetry log pages (NVMe 1.4, sections 5.14.1.7, 5.14.1.8 and 8.14): a snapshot of the
//! SMART and Error Information pages. The controller never takes a snapshot by itself.

use wire::nvme::{TELEMETRY_BLOCK, TelemetryHeader, log_page};

/// The Telemetry Host-Initiated page: the header, then the snapshot as data area 1. `pages` is
/// empty without a snapshot. Data areas 2 and 3 have no further data.
pub(crate) fn host_telemetry(pages: &[Vec<u8>]) -> Vec<u8> {
    let mut data = pages.concat();
    data.resize(data.len().next_multiple_of(TELEMETRY_BLOCK), 0);
    let last = (data.len() / TELEMETRY_BLOCK) as u16;
    let id = log_page::TELEMETRY_HOST;
    let header = TelemetryHeader { id, last_blocks: [last; 3], ..TelemetryHeader::default() };
    [header.encode().to_vec(), data].concat()
}

/// The Telemetry Controller-Initiated page: no data.
pub(crate) fn controller_telemetry() -> Vec<u8> {
    let id = log_page::TELEMETRY_CONTROLLER;
    TelemetryHeader { id, ..TelemetryHeader::default() }.encode().to_vec()
}
