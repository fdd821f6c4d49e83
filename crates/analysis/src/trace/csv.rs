//! Commands as comma-separated values: a line for each, the same columns always.

use super::measures;
use super::path::Leg;
use crate::commands::Command;
use std::io::{self, Write};

/// The first columns; those of [`measures::ALL`] follow.
const FIRST: &str = "number,drive,queue,cid,nsid,opcode,command,lba,blocks,data_bytes,moved_bytes,\
                     status,begin_ns,end_ns";

/// Writes lines as commands come.
pub struct Writer<W: Write> {
    out: W,
    /// The first fault, which the end tells.
    fault: Option<io::Error>,
}

/// A value, or nothing.
fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

impl<W: Write> Writer<W> {
    /// Begins with the names of the columns.
    pub fn new(mut out: W) -> Self {
        let names: Vec<&str> = measures::ALL.iter().map(|measure| measure.column).collect();
        let fault = writeln!(out, "{FIRST},{}", names.join(",")).err();
        Self { out, fault }
    }

    /// Adds a command with its number and its path.
    pub fn add(&mut self, number: u64, command: &Command, path: &[Leg]) {
        if self.fault.is_none() {
            self.fault = self.line(number, command, path).err();
        }
    }

    fn line(&mut self, number: u64, command: &Command, path: &[Leg]) -> io::Result<()> {
        let Command { device, queue, entry, .. } = command;
        write!(
            self.out,
            "{number},{device},{queue},{},{},{:#04x},{},{},{},{},{},{},{},{}",
            entry.cid,
            entry.nsid,
            entry.opcode,
            command.name(),
            cell(command.slba()),
            cell(command.blocks()),
            command.transfer.bytes(),
            command.moved,
            cell(command.status_number()),
            command.start.as_ns(),
            cell(command.end.map(|end| end.as_ns())),
        )?;
        for value in measures::values(command, path) {
            write!(self.out, ",{}", cell(value))?;
        }
        writeln!(self.out)
    }

    /// Ends the document.
    ///
    /// # Errors
    /// The first one of the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.fault.take().map_or_else(|| self.out.flush(), Err)
    }
}
