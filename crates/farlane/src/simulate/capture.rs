//! The simulated wires as a capture: Ethernet frames as they start on each
//! wire, with 802.1Q tags, without FCS.

use super::places;
use super::trace::cannot_write;
use crate::commands::Failure;
use crate::export::pcapng::WireFile;
use sim::Config;
use sim::measure::{Observer, Point};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use wire::Instant;

/// See the module.
pub struct Capture {
    path: PathBuf,
    file: Option<WireFile<BufWriter<File>>>,
    failed: Option<io::Error>,
}

impl Capture {
    /// Begins the file, with an interface for each direction of each cable.
    ///
    /// # Errors
    /// One line that names the file, also if there is no network to capture.
    pub fn create(config: &Config, path: &Path) -> Result<Self, Failure> {
        let wires = places::wires(&config.network);
        if wires.is_empty() {
            let path = path.display();
            return Err(Failure(format!("{path}: the plan has no Ethernet to capture")));
        }
        let describe = |(name, rate): &(String, _)| (name.clone(), format!("{rate}b/s Ethernet"));
        let interfaces: Vec<(String, String)> = wires.iter().map(describe).collect();
        let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
        let file = WireFile::begin(BufWriter::new(file), &interfaces);
        let file = file.map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path: path.to_owned(), file: Some(file), failed: None })
    }

    /// Closes the file.
    ///
    /// # Errors
    /// The first one ever.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let closed = self.file.take().map(WireFile::finish).transpose().err();
        match self.failed.take().or(closed) {
            Some(error) => Err(cannot_write(&self.path, &error)),
            None => Ok(()),
        }
    }
}

impl Observer for Capture {
    fn frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        let Point::Wire(wire) = point else { return };
        if let Some(file) = self.file.as_mut().filter(|_| self.failed.is_none()) {
            self.failed = file.frame(at, u32::from(wire), bytes).err();
        }
    }
}
