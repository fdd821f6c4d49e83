//! `[flows.NAME]`: flows over TCP in the background.

use super::intervals;
use super::network::Layout;
use keys::{KeyError, Section, all, both};
use sim::network::BulkConfig;

impl Layout {
    /// Reads all flows.
    pub(super) fn flows(&mut self, root: &Section) -> Result<(), KeyError> {
        let (names, sections): (Vec<_>, Vec<_>) = root.named("flows").into_iter().unzip();
        self.config.bulk = all(sections.iter().map(|section| self.flow(section)))?;
        self.flows = names;
        Ok(())
    }

    fn flow(&self, section: &Section) -> Result<BulkConfig, KeyError> {
        let station =
            |key| self.station(section.required(key, ": a host or node")?, &section.place(key));
        let ((from, to), (start, stop)) =
            both(both(station("from"), station("to")), intervals::span(section))?;
        if from == to {
            return section.fail("to", "'to' names the sender: expected another station");
        }
        Ok(BulkConfig {
            stations: [from, to],
            priority: section.get("priority").unwrap_or(0),
            start,
            stop,
            bytes: section.get("bytes"),
        })
    }
}
