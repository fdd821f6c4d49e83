//! Progress and messages of a run for the user.

/// Receives progress and messages of a run. By default they are ignored.
pub trait Console {
    /// Shows the progress of the run, in place of the previous progress.
    fn progress(&mut self, _what: &str) {}

    /// Clears the progress.
    fn done(&mut self) {}

    /// Shows a line of text.
    fn line(&mut self, _text: &str) {}

    /// Shows further information.
    fn note(&mut self, _text: &str) {}

    /// Shows a warning about an unexpected condition.
    fn warning(&mut self, _text: &str) {}
}
