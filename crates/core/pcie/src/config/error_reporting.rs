//! Advanced Error Reporting (PCIe Base 4.0, section 7.8.4): the errors detected
//! by a function, and ECRC generation.
//!
//! Not implemented: error messages to the root complex, the header log, and
//! correctable errors, which occur on physical links only.

use super::{ConfigSpace, capability};
use crate::errors::Errors;

/// The AER capability of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct ErrorReporting {
    at: u16,
    /// The error counters at the last update of the status register.
    reported: Errors,
}

impl ErrorReporting {
    const LENGTH: u16 = 0x2c;
    const UNCORRECTABLE_STATUS: u16 = 0x04;
    const UNCORRECTABLE_MASK: u16 = 0x08;
    const UNCORRECTABLE_SEVERITY: u16 = 0x0c;
    /// Byte offset of Advanced Error Capabilities and Control.
    pub const CONTROL: u16 = 0x18;
    /// ECRC Generation Capable and ECRC Check Capable.
    pub const ECRC_CAPABLE: u32 = 1 << 5 | 1 << 7;
    /// ECRC Generation Enable and ECRC Check Enable.
    pub const ECRC_ENABLE: u32 = 1 << 6 | 1 << 8;
    /// The status bits of the reported errors (section 7.8.4.2): poisoned TLP, completion timeout,
    /// completer abort, unexpected completion, malformed TLP, ECRC, unsupported request.
    const REPORTED: u32 = 1 << 12 | 0b111 << 14 | 0b111 << 18;

    /// Adds the capability, without errors.
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
        Self { at, reported: Errors::default() }
    }

    /// Whether software has enabled ECRC generation.
    pub fn generates_ecrc(&self, config: &ConfigSpace) -> bool {
        config.u32(self.at + Self::CONTROL) & 1 << 6 != 0
    }

    /// Sets the status bits of the errors counted since the last call.
    pub fn update(&mut self, config: &mut ConfigSpace, errors: &Errors) {
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
        let pairs = counters(errors).into_iter().zip(counters(&self.reported));
        let new = pairs
            .filter(|((_, now), (_, before))| now > before)
            .fold(0, |bits, ((bit, _), _)| bits | 1 << bit);
        config.set_u32(at, config.u32(at) | new);
        self.reported = *errors;
    }

    /// Treats all errors counted so far as reported, after a reset.
    pub fn reset(&mut self, errors: &Errors) {
        self.reported = *errors;
    }
}
