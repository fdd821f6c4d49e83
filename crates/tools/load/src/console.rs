//! What a run tells its user while it goes on.

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

    /// Something that may not be as the user wants it.
    fn warning(&mut self, _text: &str) {}
}
