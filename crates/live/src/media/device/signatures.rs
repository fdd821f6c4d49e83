//! The signatures by which file systems, volume managers and partition tables are found on a
//! disk. Magic values and places are those of libblkid (util-linux, `libblkid/src/superblocks`
//! and `libblkid/src/partitions`, the file is named in each row), which `wipefs` and the mkfs
//! programs ask too.

use std::io;

const KIB: u64 = 1 << 10;

/// Where a magic value may be: `count` places, `step` bytes apart.
struct Place {
    base: Base,
    step: u64,
    count: u64,
}

enum Base {
    /// Bytes from the start.
    Start(u64),
    /// Bytes back from the end, which is rounded down to a multiple of `align` bytes.
    End { align: u64, back: u64 },
}

const fn at(offset: u64) -> Place {
    each(offset, 0, 1)
}

const fn each(offset: u64, step: u64, count: u64) -> Place {
    Place { base: Base::Start(offset), step, count }
}

const fn end(align: u64, back: u64) -> Place {
    Place { base: Base::End { align, back }, step: 0, count: 1 }
}

impl Place {
    /// The offsets on a device of `size` bytes at which `length` bytes fit.
    fn offsets(&self, size: u64, length: u64) -> impl Iterator<Item = u64> {
        let base = match self.base {
            Base::Start(offset) => Some(offset),
            Base::End { align, back } => (size & !(align - 1)).checked_sub(back),
        };
        let (step, count) = (self.step, self.count);
        base.into_iter()
            .flat_map(move |base| (0..count).map(move |index| base + index * step))
            .filter(move |offset| offset.checked_add(length).is_some_and(|end| end <= size))
    }
}

/// What is found, any of its magic values, and their places.
type Signature = (&'static str, &'static [&'static [u8]], &'static [Place]);

/// The more specific ones first: a boot sector of a file system ends like a partition table.
const SIGNATURES: &[Signature] = &[
    // ext.c: 0xef53, little endian.
    ("an ext2, ext3 or ext4 file system", &[&[0x53, 0xef]], &[at(0x438)]),
    // xfs.c
    ("an XFS file system", &[b"XFSB"], &[at(0)]),
    // btrfs.c: superblock at 64 KiB.
    ("a Btrfs file system", &[b"_BHRfS_M"], &[at(0x1_0040)]),
    // f2fs.c: 0xf2f52010, little endian.
    ("an F2FS file system", &[&[0x10, 0x20, 0xf5, 0xf2]], &[at(0x400)]),
    // vfat.c
    ("a FAT file system", &[b"MSWIN", b"FAT32   "], &[at(0x52)]),
    ("a FAT file system", &[b"MSDOS", b"FAT16   ", b"FAT12   ", b"FAT     "], &[at(0x36)]),
    // ntfs.c, exfat.c, bitlocker.c: the OEM name of the boot sector.
    ("an NTFS file system", &[b"NTFS    "], &[at(3)]),
    ("an exFAT file system", &[b"EXFAT   "], &[at(3)]),
    ("a BitLocker volume", &[b"-FVE-FS-"], &[at(3)]),
    // apfs.c, jfs.c, reiserfs.c, squashfs.c, erofs.c, iso9660.c
    ("an APFS container", &[b"NXSB"], &[at(32)]),
    ("a JFS file system", &[b"JFS1"], &[at(0x8000)]),
    ("a ReiserFS file system", &[b"ReIsEr"], &[at(0x2034), at(0x1_0034)]),
    ("a SquashFS image", &[b"hsqs", b"sqsh"], &[at(0)]),
    ("an EROFS image", &[&[0xe2, 0xe1, 0xf5, 0xe0]], &[at(0x400)]),
    ("an ISO 9660 image", &[b"CD001"], &[at(0x8001)]),
    // bcache.c
    (
        "a bcache or bcachefs member",
        &[
            b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
            b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        ],
        &[at(0x1018)],
    ),
    // bluestore.c
    ("a Ceph BlueStore", &[b"bluestore block device"], &[at(0)]),
    // luks.c: the second header of version 2 has other letters and one of nine places.
    ("a LUKS volume", &[b"LUKS\xba\xbe"], &[at(0)]),
    (
        "a LUKS volume",
        &[b"SKUL\xba\xbe"],
        &[
            at(16 * KIB),
            at(32 * KIB),
            at(64 * KIB),
            at(128 * KIB),
            at(256 * KIB),
            at(512 * KIB),
            at(1024 * KIB),
            at(2048 * KIB),
            at(4096 * KIB),
        ],
    ),
    // lvm.c: the label is in one of the first four sectors.
    ("an LVM2 physical volume", &[b"LABELONE"], &[each(0, 512, 4)]),
    // linux_raid.c: 0xa92b4efc; versions 1.1, 1.2, 1.0 and 0.90, the last in either byte order.
    (
        "a member of an md RAID",
        &[&[0xfc, 0x4e, 0x2b, 0xa9]],
        &[at(0), at(4 * KIB), end(4 * KIB, 8 * KIB), end(64 * KIB, 64 * KIB)],
    ),
    ("a member of an md RAID", &[&[0xa9, 0x2b, 0x4e, 0xfc]], &[end(64 * KIB, 64 * KIB)]),
    // zfs.c: 0x00bab10c in either byte order, in the 128 uberblocks of the first and of the last
    // label.
    (
        "a member of a ZFS pool",
        &[&[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 0xba, 0xb1, 0x0c]],
        &[
            each(128 * KIB, KIB, 128),
            Place { base: Base::End { align: 256 * KIB, back: 128 * KIB }, step: KIB, count: 128 },
        ],
    ),
    // swap.c: the end of the first page, of 4 to 64 KiB; the later ones are of hibernation.
    (
        "swap space",
        &[b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"],
        &[
            at(4 * KIB - 10),
            at(8 * KIB - 10),
            at(16 * KIB - 10),
            at(32 * KIB - 10),
            at(64 * KIB - 10),
        ],
    ),
    // gpt.c: block 1 and the last block, of 512 or 4096 bytes.
    (
        "a partition table (GPT)",
        &[b"EFI PART"],
        &[at(512), at(4 * KIB), end(512, 512), end(4 * KIB, 4 * KIB)],
    ),
    // dos.c
    ("a partition table (MBR)", &[&[0x55, 0xaa]], &[at(0x1fe)]),
];

/// The first signature on a device of `size` bytes, and its byte offset; `read` fills a buffer
/// from an offset.
///
/// # Errors
/// As `read`.
pub(super) fn find(
    size: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Option<(&'static str, u64)>> {
    for (name, magics, places) in SIGNATURES {
        for magic in *magics {
            let mut found = vec![0; magic.len()];
            let length = magic.len() as u64;
            for offset in places.iter().flat_map(|place| place.offsets(size, length)) {
                read(offset, &mut found)?;
                if found == *magic {
                    return Ok(Some((name, offset)));
                }
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at an empty disk of `size` bytes with `magic` at `offset`.
    fn find_in(size: u64, magic: &[u8], offset: u64) -> Option<(&'static str, u64)> {
        let mut disk = vec![0; size as usize];
        disk[offset as usize..][..magic.len()].copy_from_slice(magic);
        find(size, |offset, buffer| {
            buffer.copy_from_slice(&disk[offset as usize..][..buffer.len()]);
            Ok(())
        })
        .unwrap()
    }

    const MIB: u64 = 1 << 20;

    /// Places and values from the manuals of the formats, written out.
    #[test]
    fn each_kind_is_found_where_its_format_says() {
        for (part, magic, offset) in [
            // Documentation/filesystems/ext4: s_magic at 38h of the superblock at 1024.
            ("ext4", &b"\x53\xef"[..], 1024 + 0x38),
            ("XFS", b"XFSB", 0),
            ("Btrfs", b"_BHRfS_M", 65536 + 0x40),
            ("F2FS", b"\x10\x20\xf5\xf2", 1024),
            ("FAT", b"FAT32   ", 82),
            ("FAT", b"FAT16   ", 54),
            ("NTFS", b"NTFS    ", 3),
            ("LUKS", b"LUKS\xba\xbe", 0),
            ("LUKS", b"SKUL\xba\xbe", 0x4000),
            ("LVM2", b"LABELONE", 512),
            // md(4): 1.2 is 4 KiB from the start; 1.0 8 to 12 KiB before the end; 0.90 is the
            // last 64 KiB block at a multiple of 64 KiB.
            ("md RAID", b"\xfc\x4e\x2b\xa9", 4096),
            ("md RAID", b"\xfc\x4e\x2b\xa9", 8 * MIB - 8192),
            ("md RAID", b"\xa9\x2b\x4e\xfc", 8 * MIB - 65536),
            ("ZFS", b"\x0c\xb1\xba\0\0\0\0\0", 132 * 1024),
            ("ZFS", b"\0\0\0\0\0\xba\xb1\x0c", 8 * MIB - 1024),
            ("bcache", b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", 4120),
            ("swap", b"SWAPSPACE2", 4086),
            ("swap", b"SWAPSPACE2", 65526),
            ("GPT", b"EFI PART", 512),
            ("GPT", b"EFI PART", 4096),
            ("GPT", b"EFI PART", 8 * MIB - 512),
            ("MBR", b"\x55\xaa", 510),
        ] {
            let (name, place) = find_in(8 * MIB, magic, offset).expect(part);
            assert!(name.contains(part), "{name}: not {part}");
            assert_eq!(place, offset, "{part}");
        }
    }

    #[test]
    fn every_place_of_the_table_is_found_and_an_empty_disk_has_none() {
        // An uneven end, rounded as each format does.
        let size = 8 * MIB + 5 * 512;
        assert_eq!(find_in(size, b"", 0), None);
        for (name, magics, places) in SIGNATURES {
            for magic in *magics {
                let offsets: Vec<_> = places
                    .iter()
                    .flat_map(|place| place.offsets(size, magic.len() as u64))
                    .collect();
                assert!(offsets.len() >= places.len(), "{name}");
                for offset in [offsets[0], *offsets.last().unwrap()] {
                    let found = find_in(size, magic, offset).map(|(name, _)| name);
                    assert_eq!(found, Some(*name), "at {offset}");
                }
            }
        }
    }

    #[test]
    fn a_device_too_small_for_a_place_has_nothing_there() {
        for size in [0, 1, 511, 512, 4095, 4096, 65_536] {
            let read = |offset: u64, buffer: &mut [u8]| {
                assert!(offset + buffer.len() as u64 <= size, "beyond the end");
                buffer.fill(0);
                Ok(())
            };
            assert_eq!(find(size, read).unwrap(), None);
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_empty_disk() {
        assert!(find(MIB, |_, _| Err(io::ErrorKind::Other.into())).is_err());
    }
}
