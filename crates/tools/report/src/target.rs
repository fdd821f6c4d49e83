//! Targets of documents that options write: files, and `-` for standard output.

use crate::failure::{Failure, Outcome};
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::str::FromStr;

/// The target that an option's FILE names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file.
    File(PathBuf),
    /// Standard output, `-`. The command's own text is suppressed.
    Stdout,
}

impl FromStr for Target {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Stdout => f.write_str("standard output"),
        }
    }
}

impl Target {
    /// Begins the document.
    ///
    /// # Errors
    /// One line that names the target.
    pub fn create(&self) -> Result<Sink, Failure> {
        Ok(Sink(BufWriter::new(match self {
            Self::File(path) => Out::File(File::create(path).map_err(|error| self.failed(&error))?),
            Self::Stdout => Out::Stdout,
        })))
    }

    /// Begins a binary document.
    ///
    /// # Errors
    /// As [`create`](Self::create), and if standard output is a terminal.
    pub fn create_binary(&self) -> Result<Sink, Failure> {
        if *self == Self::Stdout && io::stdout().is_terminal() {
            return Err(Failure(
                "standard output is a terminal, and the output is not text".into(),
            ));
        }
        self.create()
    }

    /// Writes a whole document.
    ///
    /// # Errors
    /// One line that names the target.
    pub fn write(&self, text: &str) -> Outcome {
        let mut sink = self.create()?;
        sink.write_all(text.as_bytes()).and_then(|()| sink.flush()).map_err(|e| self.failed(&e))
    }

    /// Returns the error of a document that could not be written.
    pub fn failed(&self, error: &io::Error) -> Failure {
        Failure(format!("cannot write {self}: {error}"))
    }
}

/// A document that is being written. Call [`flush`](Write::flush) at its end.
#[derive(Debug)]
pub struct Sink(BufWriter<Out>);

#[derive(Debug)]
enum Out {
    File(File),
    Stdout,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Stdout => match io::stdout().write(bytes) {
                // The reader has closed the pipe, which is no error.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
                done => done,
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Stdout => Ok(()),
        }
    }
}
