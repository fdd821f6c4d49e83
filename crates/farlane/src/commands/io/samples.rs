//! `--csv`: a line a transfer.

use report::target::{Sink, Target};
use report::{Failure, Outcome as Written};
use std::io::{self, Write};
use wire::Duration;
use workload::{Outcome, Transfer};

/// The file of all transfers. The first fault of it is kept: the run goes on without it.
#[derive(Debug)]
pub struct Samples {
    /// The target under load, from 0.
    pub target: usize,
    file: Target,
    sink: Sink,
    fault: Option<io::Error>,
}

/// The first line.
const HEAD: &str = "job,submit_ns,latency_ns,op,offset,bytes,status,target\n";

impl Samples {
    /// Begins the file. The error names it.
    pub fn create(target: &Target) -> Result<Self, Failure> {
        let mut sink = target.create()?;
        let fault = sink.write_all(HEAD.as_bytes()).err();
        Ok(Self { target: 0, file: target.clone(), sink, fault })
    }

    /// Adds a line.
    pub fn write(
        &mut self,
        section: &str,
        op: &str,
        at: Duration,
        latency: Duration,
        transfer: &Transfer,
    ) {
        if self.fault.is_some() {
            return;
        }
        let Transfer { job, offset, length, .. } = *transfer;
        let (at, latency) = (at.as_ns(), latency.as_ns());
        let target = self.target;
        let mut line = |status: &dyn std::fmt::Display| {
            writeln!(
                self.sink,
                "{section}.{job},{at},{latency},{op},{offset},{length},{status},{target}"
            )
        };
        let written = match transfer.outcome {
            Outcome::Done => line(&"ok"),
            Outcome::Failed(status) => line(&status.code),
            Outcome::Lost => line(&"lost"),
        };
        self.fault = written.err();
    }

    /// Ends the file. The error names it, if not everything is in it.
    pub fn finish(mut self) -> Written {
        let fault = self.fault.take().or_else(|| self.sink.flush().err());
        fault.map_or(Ok(()), |error| Err(self.file.failed(&error)))
    }
}
