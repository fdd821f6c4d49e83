//! Not there yet.
use super::Outcome;
/// To come
#[derive(clap::Args, Debug)]
pub struct Args {}
/// Runs.
///
/// # Errors
/// Never.
pub fn run(_args: &Args) -> Outcome {
    Ok(())
}
