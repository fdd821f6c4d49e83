//! The longest wait of a kind, and the first beyond its limit.

use super::{Event, Row};
use wire::{Duration, Instant};

/// Waits of one kind.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    name: &'static str,
    pub limit: Duration,
    latest: Duration,
    source: &'static str,
    pub longest: Option<Event>,
    first: Option<Event>,
}

impl Meter {
    pub fn new(name: &'static str, limits: (Duration, Duration), source: &'static str) -> Self {
        let (limit, latest) = limits;
        Self { name, limit, latest, source, longest: None, first: None }
    }

    /// Somebody waited.
    pub fn add(&mut self, since: Instant, until: Instant, what: impl FnOnce() -> String) {
        self.add_span(since, until.since(since), what);
    }

    /// The same for so long.
    pub fn add_span(&mut self, since: Instant, span: Duration, what: impl FnOnce() -> String) {
        let longest = self.longest.as_ref().is_none_or(|longest| span > longest.span);
        let earlier = |first: &Event| Some(since) < first.at;
        let first = span >= self.limit && self.first.as_ref().is_none_or(earlier);
        if !longest && !first {
            return;
        }
        let event = Event { at: Some(since), span, what: what() };
        if first {
            self.first = Some(event.clone());
        }
        if longest {
            self.longest = Some(event);
        }
    }

    pub fn row(&self) -> Row {
        Row {
            name: self.name.to_owned(),
            limit: self.limit,
            latest: self.latest,
            worst: self.longest.clone(),
            first: self.first.clone(),
            planned: false,
            endless: false,
            source: self.source,
        }
    }
}
