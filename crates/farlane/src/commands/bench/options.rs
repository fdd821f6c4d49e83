//! The values of options of `farlane bench`.

use load::ablation::Transport;
use load::case::CASES;

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
