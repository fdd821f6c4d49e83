//! The Device Self-test log page (section 5.14.1.6, figures 202 and 203).

layout! {
    /// A result of a device self-test. Other fields are zero.
    #[derive(Default)]
    pub struct SelfTestResult: 28, {
        /// Result, 4 bits: Fh in an unused entry.
        result: u8 = 0 [0, 4],
        /// Self-test code, 4 bits: 1 for a short, 2 for an extended one.
        code: u8 = 0 [4, 4],
        /// Valid diagnostic information: bit 0, NSID.
        valid: u8 = 2,
        /// Power on hours at the end of the test.
        hours: u64 = 4,
        /// Namespace of the first failure; without a failure, the tested namespace.
        nsid: u32 = 12,
    }
}

layout! {
    decode encode
    /// Device Self-test.
    pub struct SelfTestLog: 564, {
        /// Current operation, 4 bits: 0 for none, 1 for a short, 2 for an extended test.
        current: u8 = 0 [0, 4],
        /// Current completion in percent, 7 bits.
        completion: u8 = 1 [0, 7],
        /// The last 20 results, newest first.
        results: [SelfTestResult; 20] = 4,
    }
}

impl SelfTestResult {
    /// An unused entry.
    pub const UNUSED: Self = Self { result: 0xf, code: 0, valid: 0, hours: 0, nsid: 0 };
}
