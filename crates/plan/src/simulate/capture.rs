//! The simulated wires as a capture: Ethernet frames as they start on each
//! wire, with 802.1Q tags, without FCS.

use super::places;
use analysis::export::pcapng::WireFile;
use report::Failure;
use report::target::{Sink, Target};
use sim::Config;
use sim::measure::{Observer, Point};
use std::io;
use wire::Instant;

/// Writes a capture of all wires.
pub struct Capture {
    target: Target,
    file: Option<WireFile<Sink>>,
    failed: Option<io::Error>,
}

impl Capture {
    /// Begins the file, with an interface for each direction of each cable:
    /// its name with the plan's names for both ends, its description with the rate.
    ///
    /// # Errors
    /// One line that names the file, also if there is no network to capture.
    pub fn create(
        config: &Config,
        target: &Target,
        named: &dyn Fn(&str) -> String,
    ) -> Result<Self, Failure> {
        let wires = places::wires(&config.network);
        if wires.is_empty() {
            return Err(Failure(format!("{target}: the plan has no Ethernet to capture")));
        }
        let describe = |(name, rate): &(String, _)| (named(name), format!("{rate}b/s Ethernet"));
        let interfaces: Vec<(String, String)> = wires.iter().map(describe).collect();
        let file = WireFile::begin(target.create_binary()?, &interfaces);
        let file = file.map_err(|error| target.failed(&error))?;
        Ok(Self { target: target.clone(), file: Some(file), failed: None })
    }

    /// Closes the file.
    ///
    /// # Errors
    /// The first one ever.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let closed = self.file.take().map(WireFile::finish).transpose().err();
        match self.failed.take().or(closed) {
            Some(error) => Err(self.target.failed(&error)),
            None => Ok(()),
        }
    }
}

impl Observer for Capture {
    fn ethernet_frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        let Point::Wire(wire) = point else { return };
        if let Some(file) = self.file.as_mut().filter(|_| self.failed.is_none()) {
            self.failed = file.frame(at, u32::from(wire), bytes).err();
        }
    }
}
