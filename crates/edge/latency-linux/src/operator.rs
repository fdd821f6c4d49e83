//! The interface between a measurement and its user.

/// The user of a measurement, who receives messages and can stop the measurement.
pub trait Operator {
    /// Whether the user has stopped the measurement.
    fn has_stopped(&self) -> bool;
    /// Reports a setting or a fault that may affect the results.
    fn warn(&self, text: &str);
    /// Reports the state of the measurement, such as that it is ready.
    fn inform(&self, text: &str);
}
