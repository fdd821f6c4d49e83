//! Captures all simulated wires: Ethernet frames with 802.1Q tags and without FCS, written when
//! they start. If the sender supports frame preemption: mPackets, written when they have ended.

use super::places;
use analysis::export::pcapng::{WireFile, WireInterface};
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
    /// Whether each wire has mPackets.
    mpackets: Vec<bool>,
    failed: Option<io::Error>,
}

impl Capture {
    /// Begins the file, with one interface per direction of each cable. The interface's name
    /// contains the plan's names for both ends, its description the rate.
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
        let describe = |(number, (name, rate)): (usize, &(String, _))| {
            let (from, _) = places::wire(&config.network, number).expect("each wire has ends");
            let has_mpackets = config.network.port(from).preemption.is_some();
            let description = format!("{rate}b/s Ethernet");
            WireInterface { name: named(name), description, has_mpackets }
        };
        let interfaces: Vec<WireInterface> = wires.iter().enumerate().map(describe).collect();
        let file = WireFile::begin(target.create_binary()?, &interfaces);
        let file = file.map_err(|error| target.failed(&error))?;
        let mpackets = interfaces.iter().map(|wire| wire.has_mpackets).collect();
        Ok(Self { target: target.clone(), file: Some(file), mpackets, failed: None })
    }

    /// Closes the file.
    ///
    /// # Errors
    /// The first error of any write.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let closed = self.file.take().map(WireFile::finish).transpose().err();
        match self.failed.take().or(closed) {
            Some(error) => Err(self.target.failed(&error)),
            None => Ok(()),
        }
    }

    fn packet(&mut self, at: Instant, point: Point, is_mpacket: bool, bytes: &[u8]) {
        let Point::Wire(wire) = point else { return };
        if self.mpackets[usize::from(wire)] != is_mpacket || self.failed.is_some() {
            return;
        }
        if let Some(file) = &mut self.file {
            self.failed = file.packet(at, u32::from(wire), bytes).err();
        }
    }
}

impl Observer for Capture {
    fn ethernet_frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        self.packet(at, point, false, bytes);
    }

    fn mpacket(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        self.packet(at, point, true, bytes);
    }
}
