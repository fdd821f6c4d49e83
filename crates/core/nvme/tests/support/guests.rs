//! Tests with a stock Linux guest that use a command, a feature or a log page, by code. The tests
//! are in `crates/farlane/tests/stock_guest`, the scripts of the guest in `tests/guest/scripts`.

use super::proofs::Proofs;

/// nvme-cli: admin commands, namespaces (`admin.sh`, `manage.sh`).
const MANAGED: &str = "nvme_cli_manages_a_drive";
/// nvme-cli, blkdiscard, a file system (`tools.sh`).
const TOOLS: &str = "remote_drive_and_stock_tools";
/// The kernel, nvme-cli and fio (`protection.sh`).
const PROTECTION: &str = "a_stock_guest_uses_protection_information";
/// The kernel and nvme-cli (`events.sh`).
const BUFFERS: &str = "a_guest_keeps_the_doorbells";
/// A drive that is killed and moved (`drive.sh`).
const MOVED: &str = "a_drive_is_killed_and_moved";

/// Two guests with a controller each, and nvme-cli (`subsystem.sh`, `reservation.sh`).
const SHARED: &str = "two_guests_share_a_namespace_by_reservations";

/// Tests by opcode.
pub const ADMIN: Proofs = &[
    (0x00, &[MANAGED]),
    (0x01, &[MANAGED]),
    (0x02, &[MANAGED, TOOLS]),
    (0x04, &[MANAGED]),
    (0x05, &[MANAGED]),
    (0x06, &[MANAGED, TOOLS]),
    (0x08, &[MANAGED]),
    (0x09, &[MANAGED, TOOLS, MOVED]),
    (0x0a, &[MANAGED, TOOLS, MOVED]),
    (0x0c, &[MANAGED]),
    (0x0d, &[MANAGED]),
    (0x10, &[MANAGED]),
    (0x11, &[MANAGED]),
    (0x14, &[MANAGED]),
    (0x15, &[MANAGED, SHARED]),
    (0x18, &[MANAGED]),
    (0x7c, &[BUFFERS]),
    (0x80, &[MANAGED, PROTECTION]),
    (0x81, &[MANAGED]),
    (0x82, &[MANAGED]),
    (0x84, &[MANAGED]),
];

/// Tests by opcode.
pub const IO: Proofs = &[
    (0x00, &[MANAGED, TOOLS]),
    (0x01, &[MANAGED, TOOLS, PROTECTION]),
    (0x02, &[MANAGED, TOOLS, PROTECTION]),
    (0x04, &[MANAGED]),
    (0x05, &[MANAGED]),
    (0x08, &[MANAGED, TOOLS]),
    (0x09, &[TOOLS]),
    (0x0c, &[MANAGED, PROTECTION]),
    (0x0d, &[SHARED]),
    (0x0e, &[SHARED]),
    (0x11, &[SHARED]),
    (0x15, &[SHARED]),
    (0x19, &[MANAGED]),
];

/// Tests by feature identifier.
pub const FEATURES: Proofs = &[
    (0x01, &[MANAGED]),
    (0x02, &[MANAGED]),
    (0x04, &[MANAGED, TOOLS, MOVED]),
    (0x05, &[MANAGED]),
    (0x06, &[MANAGED, TOOLS, BUFFERS]),
    (0x07, &[MANAGED, TOOLS]),
    (0x08, &[MANAGED, TOOLS]),
    (0x09, &[MANAGED]),
    (0x0a, &[MANAGED]),
    (0x0b, &[MANAGED, TOOLS]),
    (0x0e, &[MANAGED]),
    (0x0f, &[MANAGED]),
    (0x16, &[MANAGED]),
    (0x84, &[MANAGED]),
];

/// Tests by log page identifier.
pub const LOG_PAGES: Proofs = &[
    (0x01, &[MANAGED, TOOLS]),
    (0x02, &[MANAGED, MOVED]),
    (0x03, &[MANAGED]),
    (0x04, &[MANAGED]),
    (0x05, &[MANAGED]),
    (0x06, &[MANAGED]),
    (0x07, &[MANAGED]),
    (0x0d, &[BUFFERS]),
    (0x80, &[SHARED]),
    (0x81, &[MANAGED]),
];
