//! `farlane calibrate`: fits the delays of live nodes on this machine.

use super::Outcome;
use crate::node::waiting;
use crate::output::note;
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use report::span;
use report::target::Target;
use wire::Duration;

/// Fit the delays of live nodes on this machine, for `farlane sim` and `compare`
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  farlane calibrate machine.toml\n  \
    farlane calibrate machine.toml --spin 50us --rounds 20\n\n\
    Needs root and an idle machine. Measures raw TCP and configuration reads between two network\n\
    namespaces, no NVMe commands. A plan uses the file by calibration = \"machine.toml\";\n\
    docs/guide/compare.md describes the fit.")]
pub struct Args {
    /// File to write. FILE - is standard output
    #[arg(value_name = "FILE")]
    file: Target,
    /// Rounds, 1 to 1000. Values are medians over the rounds
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// How long nodes poll for input before sleeping. A number alone is in microseconds
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::microseconds)]
    spin: Duration,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let stop = stop_on_signals()?;
    let spin = spin_name(args.spin);
    let console = &mut Progress::new();
    let fitted = rig::calibrate(waiting(args.spin), &spin, args.rounds, (console, &stop))?;
    args.file.write(&fitted.toml())?;
    if let Target::File(path) = &args.file {
        let path = path.display();
        note(format_args!("{path}: a plan uses it by calibration = \"{path}\""));
    }
    Ok(())
}

/// `--spin` in a calibration.
pub fn spin_name(spin: Duration) -> String {
    format!("{}ns", spin.as_ns())
}
