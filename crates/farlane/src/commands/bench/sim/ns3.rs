//! The same transfer on ns-3, built from `data/two-links.cc`.

use report::Failure;
use std::process::{Command, Output};

const SOURCE: &str = include_str!("../../../../data/two-links.cc");
const MODULES: [&str; 5] =
    ["ns3-core", "ns3-network", "ns3-internet", "ns3-point-to-point", "ns3-applications"];
const MISSING: &str = "--ns3 needs ns-3 with its headers, pkg-config and g++; on Debian: apt-get \
                       install libns3-dev pkg-config g++";

/// What it prints.
pub struct Run {
    /// Seconds.
    pub simulated: f64,
    /// Seconds.
    pub wall: f64,
    /// Seconds of processor time.
    pub cpu: f64,
    /// Events.
    pub events: f64,
    /// Received by the application.
    pub bytes: f64,
}

/// Options for the compiler, if everything is there. Not pkg-config's own
/// `--libs`: they name libraries that ns-3 needs and a program on top does not.
fn options() -> Result<Vec<String>, Failure> {
    let found = Command::new("pkg-config").arg("--cflags").args(MODULES).output();
    let compiler = Command::new("g++").arg("--version").output();
    match (found, compiler) {
        (Ok(found), Ok(_)) if found.status.success() => {
            let text = String::from_utf8_lossy(&found.stdout);
            let libraries = MODULES.map(|module| format!("-l{module}"));
            Ok(text.split_whitespace().map(str::to_owned).chain(libraries).collect())
        }
        _ => Err(Failure(MISSING.into())),
    }
}

/// Says what is missing, before anything is measured.
pub fn check() -> Result<(), Failure> {
    options().map(|_| ())
}

/// Builds it and runs it for so many simulated seconds.
pub fn run(seconds: f64) -> Result<Run, Failure> {
    let folder = tempfile::tempdir()?;
    let (source, program) = (folder.path().join("two-links.cc"), folder.path().join("two-links"));
    std::fs::write(&source, SOURCE)?;
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-std=c++17"]).arg(&source).arg("-o").arg(&program).args(options()?);
    succeeded("g++", compiler.output()?)?;
    let output = Command::new(&program).arg(seconds.to_string()).output()?;
    let output = succeeded("ns-3", output)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [simulated, wall, cpu, events, bytes] = numbers[..] else {
        return Err(Failure(format!("ns-3 printed something else: {}", text.trim())));
    };
    Ok(Run { simulated, wall, cpu, events, bytes })
}

fn succeeded(name: &str, output: Output) -> Result<Output, Failure> {
    if output.status.success() {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.contains("error")).or(text.lines().last());
    Err(Failure(format!("{name} failed: {}", line.unwrap_or("no message").trim())))
}
