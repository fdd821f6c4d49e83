//! Who may connect to the sockets of a host node: `--socket-group` and `--socket-mode`.

use crate::support::program::{fails, farlane, is_refused, is_wrong_usage, scratch, text};
use crate::support::{ANY, Node, Process};
use linux::UserGroup;
use rustix::process::geteuid;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A group of every Debian system, and its number.
const GROUP: (&str, u32) = ("daemon", 1);

/// Group and mode of a file.
fn access(path: &Path) -> (u32, u32) {
    let found = path.metadata().unwrap();
    (found.gid(), found.mode() & 0o7777)
}

/// Only root can start processes in another group; other users test their own group.
#[test]
fn sandboxed_host_gives_sockets_to_a_group() {
    let folder = scratch("socket-access");
    let device = Node::device_at(ANY, &folder, "device", &["ram=1M"], &[]);
    let own = String::from_utf8(Command::new("id").arg("-gn").output().unwrap().stdout).unwrap();
    let root = geteuid().is_root();
    let name = if root { GROUP.0 } else { own.trim() };
    let group: UserGroup = name.parse().unwrap();
    let far = device.address().to_string();
    for (umask, mode, socket, in_folder) in [
        ("077", None, 0o660, 0o710),
        ("022", Some("0606"), 0o606, 0o701),
        ("000", Some("0600"), 0o600, 0o700),
    ] {
        let sockets = folder.join(format!("vms-{umask}"));
        let named = text(&sockets);
        let mut arguments = vec!["host", "--connect", &far, "--vfio-user", &named];
        arguments.extend(["--socket-group", name]);
        arguments.extend(mode.iter().flat_map(|mode| ["--socket-mode", mode]));
        let program = farlane(&arguments);
        // An earlier process left these behind.
        std::fs::create_dir_all(sockets.join("0")).unwrap();
        let prefix = if root { format!("setpriv --groups {} ", group.id) } else { String::new() };
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask}; exec {prefix}\"$@\""), "sh"]);
        command.arg(program.get_program()).args(program.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut host = Process::start(&mut command, &format!("host-{umask}"), &folder);
        host.line("ready");
        // In another group than its own the node needs S_ISGID (inode(7)).
        let in_folder = if root { 0o2000 | in_folder } else { in_folder };
        assert_eq!(access(&sockets.join("0")), (group.id, in_folder), "{umask}");
        assert_eq!(access(&sockets.join("0/cntrl")), (group.id, socket), "{umask}");
        assert!(host.interrupt().success());
    }
}

#[test]
fn group_or_mode_that_does_not_work_is_an_error() {
    let base = ["host", "--connect", "127.0.0.1:1", "--vfio-user", "/tmp/x"];
    let with = |more: [&'static str; 2]| [&base[..], &more].concat();
    let said = is_wrong_usage(&with(["--socket-group", "no-such-group"]));
    assert!(said.contains("unknown group 'no-such-group'"), "{said}");
    for mode in ["660", "0o660", "01777", "0688"] {
        let said = is_wrong_usage(&with(["--socket-mode", mode]));
        assert!(said.contains("such as 0660"), "{said}");
    }
    let group: UserGroup = GROUP.0.parse().unwrap();
    assert_eq!(group.id, GROUP.1);
    if !group.is_own() {
        let parts = ["--socket-group daemon", "not in this group", "Group=daemon"];
        is_refused(&with(["--socket-group", "daemon"]), &parts);
    }
}

#[test]
fn folder_that_clients_cannot_search_is_an_error() {
    let folder = scratch("socket-folder");
    let sockets = folder.join("closed");
    std::fs::create_dir(&sockets).unwrap();
    let chmod = Command::new("chmod").arg("0700").arg(&sockets).status().unwrap();
    assert!(chmod.success());
    let sockets = text(&sockets);
    let arguments =
        ["host", "--connect", "127.0.0.1:1", "--vfio-user", &sockets, "--socket-mode", "0666"];
    fails(&arguments, &[&sockets, "cannot search", "chmod"]);
}
