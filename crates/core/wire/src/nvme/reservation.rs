//! Reservations (NVMe 1.4, sections 6.10 to 6.13 and 8.8). Figure numbers are from NVM Express 2.2,
//! whose structures are the same.

numbers! {
    /// RTYPE: the type of a reservation (figure 572).
    pub enum ReservationType: u8 {
        /// Only the holder writes.
        WriteExclusive = 1,
        /// Only the holder reads and writes.
        ExclusiveAccess = 2,
        /// Only registrants write.
        WriteExclusiveRegistrantsOnly = 3,
        /// Only registrants read and write.
        ExclusiveAccessRegistrantsOnly = 4,
        /// Only registrants write, and all registrants are holders.
        WriteExclusiveAllRegistrants = 5,
        /// Only registrants read and write, and all registrants are holders.
        ExclusiveAccessAllRegistrants = 6,
    }
}

numbers! {
    /// RREGA of Reservation Register (figure 574).
    pub enum RegisterAction: u32 {
        /// 000b: registers a key.
        Register = 0,
        /// 001b: removes the registration.
        Unregister = 1,
        /// 010b: replaces the key.
        Replace = 2,
    }
}

numbers! {
    /// RACQA of Reservation Acquire (figure 570).
    pub enum AcquireAction: u32 {
        /// 000b: acquires the reservation.
        Acquire = 0,
        /// 001b: removes registrations of others, and takes the reservation of a removed holder.
        Preempt = 1,
        /// 010b: as preempt, and aborts the commands of the removed registrants.
        PreemptAndAbort = 2,
    }
}

numbers! {
    /// RRELA of Reservation Release (figure 577).
    pub enum ReleaseAction: u32 {
        /// 000b: releases the reservation.
        Release = 0,
        /// 001b: releases the reservation and removes all registrations.
        Clear = 1,
    }
}

layout! {
    decode encode
    /// The data of Reservation Register (figure 575) and Reservation Acquire (figure 571).
    #[derive(Default)]
    pub struct ReservationKeys: 16, {
        /// CRKEY, the present key of the host.
        current: u64 = 0,
        /// NRKEY, the new key of the host; for Reservation Acquire PRKEY, the key to preempt.
        other: u64 = 8,
    }
}

/// Length in bytes of the data of Reservation Release: CRKEY (figure 578).
pub const RELEASE_LENGTH: usize = 8;

layout! {
    decode encode
    /// The header of the Reservation Status data structure (figure 582).
    #[derive(Default)]
    pub struct ReservationStatus: 24, {
        /// GEN, the number of changes of registrations, modulo 2^32.
        generation: u32 = 0,
        /// RTYPE; 0 without a reservation.
        kind: u8 = 4,
        /// REGCTL, the number of structures that follow.
        controllers: u16 = 5,
        /// PTPLS: registrations and reservation persist through a loss of power.
        persists: bool = 9,
    }
}

/// Byte offset of the first extended structure in a Reservation Status Extended data structure
/// (figure 583).
pub const EXTENDED_STATUS: usize = 64;

layout! {
    decode encode
    /// A Registered Controller data structure (figure 584).
    #[derive(Default)]
    pub struct RegisteredController: 24, {
        /// CNTLID; [`NO_REGISTERED_CONTROLLER`] for a registrant without a controller.
        controller: u16 = 0,
        /// RCSTS bit 0: the host holds a reservation.
        holds: bool = 2,
        /// HOSTID, 64 bits.
        host: [u8; 8] = 8,
        /// RKEY, the key of the host.
        key: u64 = 16,
    }
}

layout! {
    decode encode
    /// A Registered Controller Extended data structure (figure 585).
    #[derive(Default)]
    pub struct RegisteredControllerExtended: 64, {
        /// As [`RegisteredController::controller`].
        controller: u16 = 0,
        /// As [`RegisteredController::holds`].
        holds: bool = 2,
        /// RKEY, the key of the host.
        key: u64 = 8,
        /// HOSTID, 128 bits.
        host: [u8; 16] = 16,
    }
}

/// CNTLID of a registrant that is the host of no controller (figure 584).
pub const NO_REGISTERED_CONTROLLER: u16 = 0xffff;

numbers! {
    /// RNLPT: the type of a reservation notification (NVM Express 2.1, figure 290). The number is
    /// also the bit that masks the notification in feature 82h (NVMe 1.4, section 5.21.1.27).
    pub enum ReservationNotice: u8 {
        /// Another host has removed the registration.
        RegistrationPreempted = 1,
        /// The reservation was released, or its type has changed.
        ReservationReleased = 2,
        /// Another host has cleared the reservation and all registrations.
        ReservationPreempted = 3,
    }
}

layout! {
    decode encode
    /// Reservation Notification log page (NVMe 1.4, section 5.14.1.16.1). Without a notification,
    /// all fields are 0.
    #[derive(Default)]
    pub struct ReservationNotification: 64, {
        /// Log Page Count, from 1.
        count: u64 = 0,
        /// Type, see [`ReservationNotice`].
        kind: u8 = 8,
        /// Number of further notifications, 255 for more.
        available: u8 = 9,
        /// NSID.
        nsid: u32 = 12,
    }
}
