//! Runs tshark with farlane's dissector.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// tshark and what belongs to it.
pub struct Tshark {
    folder: PathBuf,
}

impl Tshark {
    /// The cache, filled first if it is not.
    /// Panics when it cannot be filled: a test that cannot run has failed.
    pub fn ready() -> &'static Self {
        static TSHARK: OnceLock<Tshark> = OnceLock::new();
        TSHARK.get_or_init(|| Self { folder: fetched(&["wireshark/fetch"]) })
    }

    /// Its capture program.
    pub fn dumpcap(&self) -> Command {
        Command::new(self.folder.join("dumpcap"))
    }

    /// The same without a window or a terminal.
    pub fn sharkd(&self) -> Command {
        let root = self.folder.join("wireshark/usr");
        let mut command = Command::new(root.join("lib64/ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(root.join("lib/x86_64-linux-gnu"));
        command.arg(root.join("bin/sharkd"));
        command
    }

    /// What it prints about a capture. Its preferences are the default ones,
    /// not those of whoever runs the test.
    pub fn run(&self, capture: &Path, options: &[&str]) -> String {
        let script = repository().join("wireshark/farlane.lua");
        let output = Command::new(self.folder.join("tshark"))
            .env("HOME", "/nonexistent")
            .env_remove("XDG_CONFIG_HOME")
            .arg("-X")
            .arg(format!("lua_script:{}", script.display()))
            .arg("-n")
            .arg("-r")
            .arg(capture)
            .args(options)
            .output();
        let text = output_of("tshark", output.as_ref().ok());
        // tshark ignores a script that fails to load.
        let errors = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
        let errors: Vec<&str> =
            errors.lines().filter(|line| !line.starts_with("Running as user")).collect();
        assert!(errors.is_empty(), "tshark: {}", errors.join("\n"));
        text
    }

    /// The values of fields: a row for each packet that passes `filter`, in it
    /// the values of each field in their order.
    pub fn fields(
        &self,
        capture: &Path,
        options: &[&str],
        filter: &str,
        fields: &[&str],
    ) -> Vec<Vec<Vec<String>>> {
        let mut all = options.to_vec();
        all.extend(["-Y", filter, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=;"]);
        fields.iter().for_each(|field| all.extend(["-e", field]));
        let text = self.run(capture, &all);
        let values =
            |cell: &str| cell.split(';').filter(|v| !v.is_empty()).map(str::to_owned).collect();
        text.lines().map(|line| line.split('\t').map(values).collect()).collect()
    }
}

/// The folder of the source tree.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where packages' files are, after these scripts in `tests` have fetched them.
/// Panics when they cannot: a test that cannot run has failed.
pub fn fetched(scripts: &[&str]) -> PathBuf {
    for name in scripts {
        let script = repository().join("tests").join(name);
        let output = Command::new(&script).current_dir(repository()).output();
        output_of(name, output.as_ref().ok());
    }
    repository().join(std::env::var_os("FARLANE_GUEST_CACHE").unwrap_or(".cache/guest".into()))
}

fn output_of(program: &str, output: Option<&Output>) -> String {
    let output = output.unwrap_or_else(|| panic!("{program} cannot be started"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {}\n{text}{errors}", output.status);
    text
}

/// A number as tshark prints it, decimal or hexadecimal.
pub fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|error| panic!("{text}: {error}"))
}
