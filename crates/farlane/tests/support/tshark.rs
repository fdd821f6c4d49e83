//! Runs tshark with farlane's dissector.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// tshark, its companions dumpcap and sharkd, and their files.
pub struct Tshark {
    folder: PathBuf,
}

impl Tshark {
    /// Returns tshark from the cache, which is filled first if necessary. Panics if the cache
    /// cannot be filled, because a test that cannot run has failed.
    pub fn ready() -> &'static Self {
        static TSHARK: OnceLock<Tshark> = OnceLock::new();
        TSHARK.get_or_init(|| Self { folder: fetched(&["wireshark/fetch"]) })
    }

    /// Returns a command of dumpcap, which captures packets.
    pub fn dumpcap(&self) -> Command {
        Command::new(self.folder.join("dumpcap"))
    }

    /// Returns a command of sharkd, Wireshark without a window.
    pub fn sharkd(&self) -> Command {
        let root = self.folder.join("wireshark/usr");
        let mut command = Command::new(root.join("lib64/ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(root.join("lib/x86_64-linux-gnu"));
        command.arg(root.join("bin/sharkd"));
        command
    }

    /// Returns the output of tshark for a capture. tshark uses its default preferences, not the
    /// preferences of the user.
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
        // tshark ignores a script that cannot be loaded.
        let errors = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
        let errors: Vec<&str> =
            errors.lines().filter(|line| !line.starts_with("Running as user")).collect();
        assert!(errors.is_empty(), "tshark: {}", errors.join("\n"));
        text
    }

    /// Returns the values of fields: one row per packet that passes `filter`, with the values of
    /// each field in order.
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

/// Returns the folder of the source tree.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs these scripts in `tests`, which fetch packages, and returns the folder of the files. Panics
/// if a script fails, because a test that cannot run has failed.
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

/// Parses a number of tshark's output, decimal or hexadecimal.
pub fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|error| panic!("{text}: {error}"))
}
