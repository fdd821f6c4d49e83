//! The archives of guests with networks: `initramfs.cpio` and `lab.cpio` of
//! `tests/guest/initramfs`, and the program under test.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::support::folder;

/// Returns a file with the archives one after the other, as the kernel unpacks them. All guests
/// share the file. `files` is the cache folder.
pub fn initrd(files: &Path) -> PathBuf {
    static INITRD: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let folder = folder::kept("lab-initrd");
        let mut archives = Vec::new();
        for name in ["initramfs.cpio", "lab.cpio"] {
            archives.extend(fs::read(files.join(name)).expect("an archive of the cache"));
        }
        archives.extend(program(files, &folder));
        let path = folder.join("initrd");
        fs::write(&path, archives).expect("write the initrd");
        path
    };
    INITRD.get_or_init(make).clone()
}

/// Returns an archive with the program under test as `/usr/bin/farlane`, without debug information,
/// which is most of the program.
fn program(files: &Path, folder: &Path) -> Vec<u8> {
    let path = "usr/bin/farlane";
    let stripped = folder.join(path);
    fs::create_dir_all(stripped.parent().unwrap()).expect("make a folder");
    let status = Command::new("strip")
        .args([Path::new("-o"), &stripped, Path::new(env!("CARGO_BIN_EXE_farlane"))])
        .status();
    assert!(status.expect("strip of binutils").success(), "strip");
    let mut busybox = Command::new(files.join("root/usr/bin/busybox"))
        .args(["cpio", "-o", "-H", "newc", "-R", "0:0"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("busybox starts");
    busybox.stdin.take().unwrap().write_all(path.as_bytes()).expect("name a file to cpio");
    let output = busybox.wait_with_output().expect("output of cpio");
    assert!(output.status.success(), "cpio: {}", output.status);
    output.stdout
}
