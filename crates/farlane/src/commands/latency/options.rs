//! Options of talker and listener.

use crate::output::{assign_stdout, wrong_usage};
use columns::Targets;
use lab::view::Files;
use latency::{Band, frame};
use latency_linux::{Clock, Heading, MachineOptions, Marks};
use report::target::Target;
use report::{Failure, span};
use wire::Duration;

/// Options of results.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct ResultArgs {
    /// Name of the run, such as idle or loaded
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub label: String,
    /// Count frames with a latency between two times, such as 40us,100us
    #[arg(long, value_name = "FROM,TO", value_parser = band)]
    pub band: Option<Band>,
    /// Print one JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    pub json: bool,
    /// Write one line of CSV per frame. FILE - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    pub csv: Option<Target>,
    /// Write one row of Apache Parquet per frame, with the columns of --csv
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<Target>,
    /// Write an HTML page with time series and histograms. FILE - is standard output, instead of
    /// the text
    #[arg(long, value_name = "FILE")]
    pub html: Option<Target>,
}

impl ResultArgs {
    /// Selects the writer of standard output.
    pub fn assign(&self) {
        let documents = [
            ("--csv", self.csv.as_ref()),
            ("--parquet", self.parquet.as_ref()),
            ("--html", self.html.as_ref()),
        ];
        assign_stdout(self.json, &documents);
    }

    /// Creates the requested files; `None` if there are none. The thread that writes them inherits
    /// the CPUs and the scheduling class of this thread.
    pub fn files(&self) -> Result<Option<Files>, Failure> {
        Files::create(Targets { csv: self.csv.as_ref(), parquet: self.parquet.as_ref() })
    }

    /// The heading of the document of a run at this address.
    pub fn heading(&self, address: &str) -> Heading {
        Heading { label: self.label.clone(), address: address.to_owned(), band: self.band }
    }
}

/// Settings of the machine, for both ends.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// Run as SCHED_FIFO with this priority, 1 to 99
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub fifo: Option<u8>,
    /// Run on this CPU
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<usize>,
    /// Keep all memory of the process in RAM
    #[arg(long)]
    pub lock_memory: bool,
    /// Use hardware time stamps of this interface; its clock must be TAI, as with PTP
    #[arg(long, value_name = "INTERFACE")]
    pub hardware: Option<String>,
    /// Source of the clock error of this end; repeatable: unknown, shared, ptp4l[=SOCKET] (ptp4l
    /// here follows the other end) or phc2sys=DEVICE (CLOCK_TAI here follows DEVICE)
    #[arg(long, value_name = "RELATION")]
    pub clock: Vec<Clock>,
    /// Domain number of ptp4l, 0 to 255
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub ptp_domain: u8,
    /// Add this to every time stamp of this end, such as -20ms, to test reports with clocks that
    /// differ
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = signed, allow_hyphen_values = true)]
    pub stamp_offset: i64,
    /// Number of the run, in hexadecimal: a listener accepts only this run, a talker uses this
    /// number
    #[arg(long, value_name = "HEX", value_parser = hex)]
    pub run: Option<u64>,
}

impl MachineArgs {
    /// Returns the settings of `latency_linux`. Ends the process if several `--clock` contradict
    /// each other.
    pub fn machine(&self) -> MachineOptions {
        let machine = MachineOptions {
            fifo: self.fifo,
            cpu: self.cpu,
            lock_memory: self.lock_memory,
            hardware: self.hardware.clone(),
            clocks: self.clock.clone(),
            ptp_domain: self.ptp_domain,
            stamp_offset: self.stamp_offset,
            run: self.run,
        };
        machine.check().unwrap_or_else(wrong_usage);
        machine
    }
}

/// Marks of frames.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct MarkArgs {
    /// Priority of frames, 0 to 7: SO_PRIORITY, and PCP of the VLAN tag. In listen, the default is
    /// the priority of the received tag
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub priority: Option<u8>,
    /// Differentiated Services code point of UDP over IPv4, 0 to 63
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub dscp: Option<u8>,
}

impl MarkArgs {
    /// The settings of `latency_linux`.
    pub fn marks(self) -> Marks {
        Marks { priority: self.priority, dscp: self.dscp }
    }
}

/// Parses a time with an optional minus sign. Returns nanoseconds.
fn signed(text: &str) -> Result<i64, String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    Ok(sign * span::time(rest)?.as_ns() as i64)
}

/// Parses FROM,TO: two times that may be negative, FROM not after TO.
fn band(text: &str) -> Result<Band, String> {
    let (from, to) = text.split_once(',').ok_or("expected FROM,TO, such as 40us,100us")?;
    let (from_ns, to_ns) = (signed(from)?, signed(to)?);
    if from_ns > to_ns {
        return Err(format!("invalid band '{text}': FROM is after TO"));
    }
    Ok(Band { from_ns, to_ns })
}

fn hex(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16)
        .map_err(|_| format!("invalid number '{text}': expected up to 16 hexadecimal digits"))
}

/// Parses START,LENGTH: two times, such as `200us,100us`. Returns both in nanoseconds.
pub fn window(text: &str) -> Result<(u64, u64), String> {
    let (start, length) =
        text.split_once(',').ok_or("expected START,LENGTH, such as 200us,100us")?;
    Ok((span::time(start)?.as_ns(), span::time(length)?.as_ns()))
}

/// Parses the payload of a frame in bytes. Payloads outside the range of `--size` are errors.
pub fn payload(text: &str) -> Result<u16, String> {
    span::bytes_in(text, frame::LEAST as u16..=frame::MOST as u16)
}

/// Parses a time. 0 is an error.
pub fn positive(text: &str) -> Result<Duration, String> {
    match span::time(text)? {
        Duration::ZERO => Err("expected a time greater than 0".to_owned()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_bands_and_windows() {
        assert_eq!(signed("-20ms"), Ok(-20_000_000));
        assert_eq!(signed("1.5us"), Ok(1_500));
        assert!(signed("--1s").is_err());
        assert_eq!(band("40us,100us"), Ok(Band { from_ns: 40_000, to_ns: 100_000 }));
        assert!(band("2us,1us").unwrap_err().contains("FROM is after TO"));
        assert!(band("2us").unwrap_err().contains("FROM,TO"));
        assert_eq!(window("200us,100us"), Ok((200_000, 100_000)));
        assert_eq!(hex("ff"), Ok(255));
        assert_eq!((payload("1k"), payload("128B")), (Ok(1024), Ok(128)));
        assert!(payload("100").is_err() && payload("2k").is_err());
        assert!(hex("0xff").is_err() && positive("0").is_err());
    }
}
