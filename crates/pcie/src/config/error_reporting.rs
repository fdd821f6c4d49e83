//! Advanced Error Reporting (PCIe Base 4.0, section 7.8.4): which errors a
//! function has seen, and whether it guards what it sends with an ECRC.
//!
//! Not implemented: error messages to the root complex, the header log, and
//! correctable errors, which belong to links that there are none of here.

use super::{ConfigSpace, capability};
use crate::errors::Errors;

/// The capability of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct ErrorReporting {
    at: u16,
    /// What the status shows, or has shown and software has cleared.
    shown: Errors,
}

impl ErrorReporting {
    const LENGTH: u16 = 0x2c;
    const UNCORRECTABLE_STATUS: u16 = 0x04;
    const UNCORRECTABLE_MASK: u16 = 0x08;
    const UNCORRECTABLE_SEVERITY: u16 = 0x0c;
    /// Advanced Error Capabilities and Control.
    pub const CONTROL: u16 = 0x18;
    /// ECRC Generation Capable and ECRC Check Capable.
    pub const ECRC_CAPABLE: u32 = 1 << 5 | 1 << 7;
    /// ECRC Generation Enable and ECRC Check Enable.
    pub const ECRC_ENABLE: u32 = 1 << 6 | 1 << 8;
    /// The errors that are reported (section 7.8.4.2): poisoned, timeout,
    /// abort, unexpected completion, malformed, ECRC, unsupported request.
    const REPORTED: u32 = 1 << 12 | 0b111 << 14 | 0b111 << 18;

    /// Adds the capability, with nothing to report.
    pub fn add(config: &mut ConfigSpace) -> Self {
        let at = config.add_extended(capability::EXT_ERROR_REPORTING, 2, Self::LENGTH);
        let reported = Self::REPORTED.to_le_bytes();
        config.make_rw1c(at + Self::UNCORRECTABLE_STATUS, &reported);
        config.make_rw(at + Self::UNCORRECTABLE_MASK, &reported);
        config.make_rw(at + Self::UNCORRECTABLE_SEVERITY, &reported);
        // Malformed packets are fatal by default (section 7.8.4.4).
        config.set_u32(at + Self::UNCORRECTABLE_SEVERITY, 1 << 18);
        config.set_u32(at + Self::CONTROL, Self::ECRC_CAPABLE);
        config.make_rw(at + Self::CONTROL, &Self::ECRC_ENABLE.to_le_bytes());
        Self { at, shown: Errors::default() }
    }

    /// Whether software wants every packet guarded.
    pub fn generates_ecrc(&self, config: &ConfigSpace) -> bool {
        config.u32(self.at + Self::CONTROL) & 1 << 6 != 0
    }

    /// Shows the errors that have come since the last time.
    pub fn show(&mut self, config: &mut ConfigSpace, errors: &Errors) {
        let counters = |errors: &Errors| {
            [
                (12, errors.poisoned),
                (14, errors.completion_timeout),
                (15, errors.completer_abort),
                (16, errors.unexpected_completion),
                (18, errors.malformed),
                (19, errors.ecrc),
                (20, errors.unsupported_request),
            ]
        };
        let at = self.at + Self::UNCORRECTABLE_STATUS;
        let pairs = counters(errors).into_iter().zip(counters(&self.shown));
        let new = pairs
            .filter(|((_, now), (_, before))| now > before)
            .fold(0, |bits, ((bit, _), _)| bits | 1 << bit);
        config.set_u32(at, config.u32(at) | new);
        self.shown = *errors;
    }

    /// Nothing that came before is new: after a reset.
    pub fn forget(&mut self, errors: &Errors) {
        self.shown = *errors;
    }
}
