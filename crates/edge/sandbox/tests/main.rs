//! Each test restricts a thread of its own: the rest of the process keeps everything.

use farlane_sandbox::{Access, InForce, Layers, Needs, restrict};
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

const LANDLOCK: Layers = Layers { landlock: true, ..Layers::OFF };
const SECCOMP: Layers = Layers { seccomp: true, ..Layers::OFF };
const CAPABILITIES: Layers = Layers { capabilities: true, ..Layers::OFF };

/// Runs `work` in a thread with these restrictions.
fn restricted<T: Send>(layers: Layers, needs: &Needs, work: impl FnOnce(InForce) -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| work(restrict(layers, needs).unwrap()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Whether the kernel has this version of Landlock; if not, prints a line, also without --nocapture.
fn has_landlock(test: &str, state: &InForce, version: i32) -> bool {
    let found = state.landlock.as_ref().unwrap();
    let has = found.as_ref().is_ok_and(|rules| rules.abi >= version);
    if !has {
        let _ = writeln!(io::stderr(), "NOT TESTED: {test}: Landlock ABI {version}: {found:?}");
    }
    has
}

fn is_denied<T>(result: io::Result<T>, kind: ErrorKind) {
    assert_eq!(result.map(|_| ()).map_err(|error| error.kind()), Err(kind));
}

#[test]
fn files_outside_the_folders_are_denied() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["write", "read", "sockets", "other"] {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("file"), name).unwrap();
    }
    let mut needs = Needs::default();
    needs.file(&path("write").join("file"), Access::Write);
    needs.file(&path("read").join("file"), Access::Read);
    needs.path(path("sockets"), Access::Sockets);
    needs.path(path("missing"), Access::Write);
    let mut open_before = File::open(path("other").join("file")).unwrap();
    restricted(LANDLOCK, &needs, |state| {
        if !has_landlock("files outside the folders", &state, 3) {
            return;
        }
        let rules = state.landlock.unwrap().unwrap();
        assert_eq!((rules.folders, rules.files), (3, 0));
        // A file that is replaced, as records are.
        let file = path("write").join("file");
        fs::write(file.with_extension("new"), "replaced").unwrap();
        fs::rename(file.with_extension("new"), &file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "replaced");
        OpenOptions::new().write(true).truncate(true).open(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let file = path("read").join("file");
        assert_eq!(fs::read_to_string(&file).unwrap(), "read");
        is_denied(fs::write(&file, ""), ErrorKind::PermissionDenied);
        is_denied(fs::remove_file(&file), ErrorKind::PermissionDenied);
        fs::create_dir(path("sockets").join("0")).unwrap();
        let socket = path("sockets").join("0/cntrl");
        drop(UnixListener::bind(&socket).unwrap());
        fs::remove_file(&socket).unwrap();
        is_denied(File::open(path("sockets").join("file")), ErrorKind::PermissionDenied);
        is_denied(File::create(path("sockets").join("new")), ErrorKind::PermissionDenied);
        for file in [&path("other").join("file"), Path::new("/etc/passwd")] {
            is_denied(File::open(file), ErrorKind::PermissionDenied);
        }
        is_denied(File::create(path("new")), ErrorKind::PermissionDenied);
        let mut text = String::new();
        open_before.read_to_string(&mut text).unwrap();
        assert_eq!(text, "other", "open files stay usable");
    });
}

#[test]
fn only_named_ports_are_connected_and_none_is_bound() {
    let [listed, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let address = |listener: &TcpListener| listener.local_addr().unwrap();
    let needs = Needs { connect: vec![address(&listed).port()], ..Needs::default() };
    restricted(LANDLOCK, &needs, |state| {
        if !has_landlock("ports", &state, 4) {
            return;
        }
        TcpStream::connect(address(&listed)).unwrap();
        listed.accept().unwrap();
        is_denied(TcpStream::connect(address(&other)), ErrorKind::PermissionDenied);
        is_denied(TcpListener::bind("127.0.0.1:0"), ErrorKind::PermissionDenied);
    });
}

#[test]
fn denied_system_calls_return_eperm() {
    restricted(SECCOMP, &Needs::default(), |state| {
        let denied = state.seccomp.unwrap();
        assert!(denied.as_ref().is_ok_and(|count| *count > 80), "needs seccomp: {denied:?}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        is_denied(Command::new("/bin/true").status(), ErrorKind::PermissionDenied);
        is_denied(
            fs::set_permissions(&file, fs::metadata(&file).unwrap().permissions()),
            ErrorKind::PermissionDenied,
        );
        is_denied(fs::hard_link(&file, file.with_extension("2")), ErrorKind::PermissionDenied);
        let nix_denied = |result: nix::Result<()>| assert_eq!(result, Err(nix::Error::EPERM));
        nix_denied(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER));
        nix_denied(nix::sched::unshare(nix::sched::CloneFlags::empty()));
        let open = |family, kind| socket(family, kind, SockFlag::SOCK_CLOEXEC, None).map(drop);
        nix_denied(open(AddressFamily::Inet, SockType::Datagram));
        nix_denied(open(AddressFamily::Netlink, SockType::Raw));
        nix_denied(open(AddressFamily::Vsock, SockType::Stream));
        open(AddressFamily::Inet6, SockType::Stream).unwrap();
        open(AddressFamily::Unix, SockType::Datagram).unwrap();
        let mptcp = socket2(libc::AF_INET, libc::IPPROTO_MPTCP);
        assert_eq!(mptcp, Err(Errno::PERM));
        assert_eq!(socket2(libc::AF_INET, libc::IPPROTO_TCP), Ok(()));
        // Threads are still started, and inherit the filter.
        let child = std::thread::spawn(|| Command::new("/bin/true").status());
        is_denied(child.join().unwrap(), ErrorKind::PermissionDenied);
    });
    let needs = Needs { packet_sockets: true, ..Needs::default() };
    restricted(SECCOMP, &needs, |_| nix::ifaddrs::getifaddrs().map(drop).unwrap());
}

/// Opens a stream socket of a protocol.
fn socket2(family: i32, protocol: i32) -> Result<(), Errno> {
    use rustix::net::{AddressFamily, Protocol, SocketType, socket};
    let protocol = std::num::NonZeroU32::new(protocol as u32).map(Protocol::from_raw);
    socket(AddressFamily::from_raw(family as u16), SocketType::STREAM, protocol).map(drop)
}

#[test]
fn all_capabilities_but_the_kept_ones_are_dropped() {
    let status = || fs::read_to_string("/proc/thread-self/status").unwrap();
    let value = |key: &str| {
        let status = status();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap().to_owned();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    let before = value("CapPrm:");
    for (needs, kept) in [
        (Needs::default(), 0),
        // Numbers 13 and 12 (linux/capability.h).
        (Needs { packet_sockets: true, ..Needs::default() }, 1 << 13),
        (Needs { high_priority: true, packet_sockets: true, ..Needs::default() }, 3 << 12),
    ] {
        restricted(CAPABILITIES, &needs, |state| {
            let left = before & kept;
            for set in ["CapPrm:", "CapEff:"] {
                assert_eq!(value(set), left, "{set}");
            }
            assert_eq!((value("CapInh:"), value("CapAmb:")), (0, 0));
            // CAP_SETPCAP, number 8, is needed for the bounding set.
            if before & 1 << 8 != 0 {
                assert_eq!(value("CapBnd:"), kept);
            }
            assert_eq!(value("NoNewPrivs:"), 1);
            let names = state.capabilities.unwrap();
            assert_eq!(names.len() as u32, left.count_ones(), "{names:?}");
            assert!(names.iter().all(|name| name.starts_with("CAP_NET_")), "{names:?}");
        });
    }
    let state = restricted(Layers::OFF, &Needs::default(), |state| (state, value("NoNewPrivs:")));
    let off = InForce { capabilities: None, landlock: None, seccomp: None };
    assert_eq!((state, value("CapPrm:")), ((off, 0), before));
}

#[test]
fn files_of_another_user_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let [mut of_folder, mut of_file] = [Needs::default(), Needs::default()];
    of_folder.path(folder.path(), Access::Write);
    of_file.file(&file, Access::Write);
    for (path, needs) in [(&*file, of_file), (folder.path(), of_folder)] {
        let begin = || restrict(CAPABILITIES, &needs).map(drop);
        let result = || std::thread::scope(|scope| scope.spawn(begin).join().unwrap());
        result().unwrap();
        // A user without CAP_CHOWN has no CAP_DAC_OVERRIDE that could be missed.
        if std::os::unix::fs::chown(path, Some(65534), None).is_err() {
            return;
        }
        let text = result().unwrap_err().to_string();
        assert!(text.starts_with(&format!("{} belongs to another", path.display())), "{text}");
        assert!(text.contains("--sandbox landlock,seccomp"), "{text}");
    }
}
