//! Options of `farlane bench`, and their values.

use load::ablation::Transport;
use load::case::CASES;
use report::span;
use report::target::Target;
use wire::Duration;

/// Options of commands that measure live nodes in rounds.
#[derive(clap::Args, Debug)]
pub struct RoundArgs {
    /// Rounds, 1 to 1000 [default: 7; with --quick 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Print one JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    pub json: bool,
    /// Write an HTML page with distributions. FILE - is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub html: Option<Target>,
    /// Poll for input this long before sleeping: lower latency, higher CPU load. A number alone is
    /// in microseconds
    #[arg(long, value_name = "TIME", default_value = "200us", value_parser = span::microseconds)]
    pub spin: Duration,
}

impl RoundArgs {
    /// Number of rounds.
    pub fn rounds(&self, quick: bool) -> u32 {
        self.rounds.unwrap_or(if quick { 3 } else { 7 })
    }
}

/// The usual time of a workload on one path in a round.
pub fn usual_span(quick: bool) -> Duration {
    Duration::from_ms(if quick { 150 } else { 500 })
}

/// The value of `--transport`.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum TransportOption {
    /// TCP
    Tcp,
    /// Raw Ethernet
    Raw,
}

impl From<TransportOption> for Transport {
    fn from(option: TransportOption) -> Self {
        match option {
            TransportOption::Tcp => Self::Tcp,
            TransportOption::Raw => Self::Raw,
        }
    }
}

/// Parses a queue depth of a workload. The error lists the depths.
pub fn parse_depth(text: &str) -> Result<usize, String> {
    let depth = text.parse().ok().filter(|n| CASES.iter().any(|case| case.iodepth == *n));
    depth.ok_or_else(|| format!("invalid depth '{text}': expected 1, 8 or 32"))
}
