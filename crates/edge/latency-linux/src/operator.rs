//! Who runs a measurement.

/// Is told what happens, and may end the measurement.
pub trait Operator {
    /// Whether the measurement is to end.
    fn has_stopped(&self) -> bool;
    /// Something may not be as it was asked for.
    fn warn(&self, text: &str);
    /// Something is ready, or waits for somebody.
    fn inform(&self, text: &str);
}
