//! Programs that the lab runs.

use std::path::PathBuf;

/// Programs, each with its Debian package.
const PACKAGES: [(&str, &str); 13] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ethtool", "ethtool"),
    ("chrt", "util-linux"),
    ("taskset", "util-linux"),
    ("iperf3", "iperf3"),
    ("ptp4l", "linuxptp"),
    ("ovs-vsctl", "openvswitch-switch"),
    ("ovs-vswitchd", "openvswitch-switch"),
    ("ovsdb-server", "openvswitch-switch"),
    ("ovsdb-tool", "openvswitch-switch"),
    ("ovs-appctl", "openvswitch-switch"),
    ("modprobe", "kmod"),
];

/// Looks a program up in PATH.
///
/// # Errors
/// A sentence with the name of the program, and with its package if the package is known.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
    paths.find(|path| path.is_file()).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> String {
    match PACKAGES.iter().find(|(tool, _)| *tool == name) {
        Some((_, package)) => format!("{name} is missing: install the package {package}"),
        None => format!("{name} is missing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        assert!(find("sh").is_ok_and(|path| path.ends_with("sh")));
        let says = "ovs-vsctl is missing: install the package openvswitch-switch";
        assert_eq!(missing("ovs-vsctl"), says);
        assert_eq!(find("no-such-program"), Err("no-such-program is missing".to_owned()));
    }
}
