//! Asymmetric Namespace Access, ANA (NVMe 1.4, sections 5.14.1.12 and 8.20). Figure numbers are from
//! NVM Express 2.2, whose structures are the same.

numbers! {
    /// Asymmetric Namespace Access State of a group (figure 225, section 8.1.1).
    pub enum AccessState: u8 {
        /// The namespaces perform best through this controller.
        Optimized = 1,
        /// The namespaces perform worse than through an optimized controller.
        NonOptimized = 2,
        /// The namespaces are not accessible, but may become accessible again.
        Inaccessible = 3,
        /// The namespaces are not accessible and never become accessible again.
        PersistentLoss = 4,
        /// The state is changing.
        Change = 15,
    }
}

layout! {
    decode encode
    /// The header of the Asymmetric Namespace Access log page (figure 224).
    #[derive(Default)]
    pub struct AccessLogHeader: 16, {
        /// CHGC, the number of changes of the page since the last reset of the controller.
        change_count: u64 = 0,
        /// NAGD, number of group descriptors that follow.
        groups: u16 = 8,
    }
}

layout! {
    decode encode
    /// An ANA group descriptor (figure 225). Ascending NSIDs of four bytes follow.
    #[derive(Default)]
    pub struct AccessGroup: 32, {
        /// AGID, the ANA group identifier.
        group: u32 = 0,
        /// NNV, number of NSIDs that follow.
        namespaces: u32 = 4,
        /// CHGC, as in the header, but from 1; 0 if it is not reported.
        change_count: u64 = 8,
        /// ANAS, see [`AccessState`].
        state: u8 = 16 [0, 4],
    }
}
