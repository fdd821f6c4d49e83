//! The user of a measurement.

/// Receives messages, and may end the measurement.
pub trait Operator {
    /// Whether the measurement is to end.
    fn has_stopped(&self) -> bool;
    /// Reports a setting or a fault that may affect the results.
    fn warn(&self, text: &str);
    /// Reports that the measurement is ready or waits.
    fn inform(&self, text: &str);
}
