//! The Reservation Notification log (NVMe 1.4, section 5.14.1.16.1).

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::nvme::{ReservationNotice, ReservationNotification};

/// The maximum number of unread notifications. Further notifications are only counted.
const MOST: usize = 64;

/// Unread notifications of a controller, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReservationLog {
    /// Log Page Count of the last notification.
    count: u64,
    /// Log Page Count, type and NSID.
    unread: VecDeque<(u64, u8, u32)>,
}

impl ReservationLog {
    pub(crate) fn add(&mut self, nsid: u32, notice: ReservationNotice) {
        // The count skips 0, which stands for an empty page.
        self.count = self.count.checked_add(1).unwrap_or(1);
        if self.unread.len() < MOST {
            self.unread.push_back((self.count, notice as u8, nsid));
        }
    }

    /// The page of the oldest unread notification; zeroes without one.
    pub(crate) fn page(&self) -> Vec<u8> {
        let available = self.unread.len().saturating_sub(1).min(255) as u8;
        let page = self.unread.front().map(|(count, kind, nsid)| ReservationNotification {
            count: *count,
            kind: *kind,
            available,
            nsid: *nsid,
        });
        page.unwrap_or_default().encode().to_vec()
    }

    /// Removes the notification that the host has read.
    pub(crate) fn acknowledge(&mut self) {
        self.unread.pop_front();
    }
}
