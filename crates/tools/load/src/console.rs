//! Progress and messages of a run for the user.

/// Where a run's lines go; by default nowhere.
pub trait Console {
    /// How far the run is, in place of what was said before.
    fn progress(&mut self, _what: &str) {}

    /// Clears the progress.
    fn done(&mut self) {}

    /// A line.
    fn line(&mut self, _text: &str) {}

    /// Something worth knowing.
    fn note(&mut self, _text: &str) {}

    /// A condition that the user may not expect.
    fn warning(&mut self, _text: &str) {}
}
