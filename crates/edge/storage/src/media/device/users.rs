//! The users of a block device, from `/proc` and `/sys`.

use std::fs;
use std::path::{Path, PathBuf};

/// A disk or a partition in sysfs.
struct Node {
    /// Description of the node in a message.
    label: String,
    /// The name in the kernel, such as `sda1`.
    name: String,
    /// Major and minor number, such as `8:1`.
    number: String,
    folder: PathBuf,
}

impl Node {
    fn new(label: &str, folder: PathBuf) -> Option<Self> {
        let name = folder.file_name()?.to_str()?.to_owned();
        let number = fs::read_to_string(folder.join("dev")).ok()?.trim().to_owned();
        let label = if label.is_empty() { String::new() } else { format!("{label} {name} ") };
        Some(Self { label, name, number, folder })
    }
}

/// A sentence, without the device's name, about the user of the block device `number`
/// (`major:minor`), of its partitions, or of the disk that contains it. `None` if no user is found.
/// `root` is `/`, except in tests.
///
/// The kernel decides whether the device is free (`O_EXCL` in open(2)); this function only finds
/// the reason. Only mounts in the mount namespace of this process are visible.
pub(super) fn user_of(root: &Path, number: &str) -> Option<String> {
    family(root, number).iter().find_map(|node| {
        let use_of_it = mount(root, node).or_else(|| swap(root, node)).or_else(|| holder(node))?;
        Some(format!("{}{use_of_it}", node.label))
    })
}

/// The device itself, then the partitions of a disk or the disk of a partition. Empty if the device
/// is not found.
fn family(root: &Path, number: &str) -> Vec<Node> {
    let Ok(folder) = fs::canonicalize(root.join("sys/dev/block").join(number)) else {
        return Vec::new();
    };
    let mut nodes = Vec::from_iter(Node::new("", folder.clone()));
    if is_partition(&folder) {
        nodes.extend(folder.parent().and_then(|disk| Node::new("its disk", disk.to_owned())));
        return nodes;
    }
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut partitions: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| is_partition(path)).collect();
    partitions.sort();
    nodes.extend(partitions.into_iter().filter_map(|path| Node::new("its partition", path)));
    nodes
}

/// Whether the node is a partition: only partitions have a file `partition`
/// (Documentation/ABI/stable/sysfs-block).
fn is_partition(folder: &Path) -> bool {
    folder.join("partition").exists()
}

/// A sentence about a mount of the node (proc_pid_mountinfo(5): the third field is the device, the
/// fifth the mount point).
fn mount(root: &Path, node: &Node) -> Option<String> {
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let place = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(2);
        (fields.next() == Some(&node.number)).then(|| fields.nth(1)).flatten()
    })?;
    Some(format!("is mounted at {place}"))
}

/// A sentence about swap space on the node (proc_swaps(5): the first field is the path).
fn swap(root: &Path, node: &Node) -> Option<String> {
    let swaps = fs::read_to_string(root.join("proc/swaps")).ok()?;
    let paths = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let found = paths.map(Path::new).any(|path| path.file_name() == Some(node.name.as_ref()));
    found.then(|| "is in use as swap space".into())
}

/// A sentence about a device that contains the node: device mapper, md, bcache.
fn holder(node: &Node) -> Option<String> {
    let entry = fs::read_dir(node.folder.join("holders")).ok()?.flatten().next()?;
    Some(format!("is held by {}", entry.file_name().display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use testkit::Folder;

    const MOUNTS: &str = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
                          30 27 8:2 / /srv\\040data rw shared:1 - ext4 /dev/sda2 rw\n";
    const SWAPS: &str = "Filename\tType\tSize\tUsed\tPriority\n/dev/sdb1 partition 1024 0 -2\n";

    /// A machine with the disks sda (8:0) with two partitions, sdb (8:16) with one, and sdc (8:32)
    /// with one. dm-0 contains sdc1.
    fn machine() -> Folder {
        let root = Folder::new();
        for (path, number) in [
            ("sda", "8:0"),
            ("sda/sda1", "8:1"),
            ("sda/sda2", "8:2"),
            ("sdb", "8:16"),
            ("sdb/sdb1", "8:17"),
            ("sdc", "8:32"),
            ("sdc/sdc1", "8:33"),
        ] {
            let folder = root.join("sys/devices/pci/block").join(path);
            fs::create_dir_all(folder.join("holders")).unwrap();
            fs::write(folder.join("dev"), format!("{number}\n")).unwrap();
            if path.contains('/') {
                fs::write(folder.join("partition"), "1\n").unwrap();
            }
            fs::create_dir_all(root.join("sys/dev/block")).unwrap();
            symlink(&folder, root.join("sys/dev/block").join(number)).unwrap();
        }
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::write(root.join("proc/self/mountinfo"), MOUNTS).unwrap();
        fs::write(root.join("proc/swaps"), SWAPS).unwrap();
        fs::create_dir(root.join("sys/devices/pci/block/sdc/sdc1/holders/dm-0")).unwrap();
        root
    }

    #[test]
    fn mounts_swap_and_holders_are_named_for_disk_and_partition() {
        let root = machine();
        let user = |number| user_of(&root, number);
        assert_eq!(user("8:2").unwrap(), "is mounted at /srv\\040data");
        assert_eq!(user("8:0").unwrap(), "its partition sda2 is mounted at /srv\\040data");
        assert_eq!(user("8:1"), None, "a mount of another partition is none of its own");
        assert_eq!(user("8:17").unwrap(), "is in use as swap space");
        assert_eq!(user("8:16").unwrap(), "its partition sdb1 is in use as swap space");
        assert_eq!(user("8:32").unwrap(), "its partition sdc1 is held by dm-0");
        fs::create_dir(root.join("sys/devices/pci/block/sda/holders/md0")).unwrap();
        assert_eq!(user("8:1").unwrap(), "its disk sda is held by md0");
    }

    #[test]
    fn no_device_users_without_sysfs_entries() {
        assert_eq!(user_of(&machine(), "259:0"), None);
        assert_eq!(user_of(&Folder::new(), "8:0"), None);
    }
}
