//! `farlane latency listen`: receives a talker's frames, and with `--reflect` sends them back.

use super::options::{MachineArgs, MarkArgs, ResultArgs, positive};
use super::{Terminal, deliver};
use crate::node::listening;
use latency::frame::ETHERTYPE;
use latency_linux::{Listen, Listener, Port, Rows};
use linux::Interface;
use live::net::{Address, Protection};
use report::{Failure, Outcome, span};
use std::io::Write;
use wire::Duration;

/// Receive frames of a talker
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane latency listen localhost --reflect\n  \
    farlane latency listen raw:eth1 --clock shared --json\n\n\
    The listener receives the first run, or that of --run, and counts frames of other runs. It ends \
    with a report after the run or on Ctrl-C.")]
pub struct Args {
    /// Address to listen on: HOST[:PORT] for UDP, or raw:INTERFACE for Ethernet frames
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Send every frame of the run back, from the application
    #[arg(long)]
    reflect: bool,
    /// Allow --reflect with addresses other than loopback
    #[arg(long)]
    insecure: bool,
    /// Receive one run after the other and print each report, until Ctrl-C or --wait without a run
    #[arg(long, conflicts_with_all = ["clock", "csv", "parquet", "html"])]
    repeat: bool,
    /// Time to wait for the first frame. A number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span::seconds)]
    wait: Duration,
    /// Time without frames after which the run ends
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive)]
    idle: Duration,
    #[command(flatten)]
    marks: MarkArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    output: ResultArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    args.output.assign();
    let stop = Terminal::new()?;
    let listen = Listen {
        reflect: args.reflect,
        wait: args.wait,
        idle: args.idle,
        marks: args.marks.marks(),
        machine: args.machine.machine(),
        heading: args.output.heading(&args.address),
    };
    let mut listener = Listener::open(&listen, args.port()?, &stop)?;
    loop {
        let mut files = args.output.files()?;
        let rows = files.as_mut().map(|files| files as &mut dyn Rows);
        let Some(run) = listener.run(rows)? else { return Ok(()) };
        deliver(&run, files, &args.output)?;
        std::io::stdout().flush()?;
        if !args.repeat || stop.0.is_set() {
            return Ok(());
        }
    }
}

impl Args {
    fn port(&self) -> Result<Port, Failure> {
        // Without --reflect nothing is sent, so no permission is needed.
        let protection = match self.insecure || !self.reflect {
            true => Protection::Insecure,
            false => Protection::Loopback,
        };
        Ok(match listening(&self.address, protection)? {
            Address::Tcp(address) => Port::udp(address)?,
            Address::Raw(station) => {
                Port::ethernet(&Interface::find(&station.interface)?, ETHERTYPE)?
            }
            Address::Other(_) => {
                return Err(Failure(format!(
                    "{}: time stamps need UDP or raw Ethernet",
                    self.address
                )));
            }
        })
    }
}
