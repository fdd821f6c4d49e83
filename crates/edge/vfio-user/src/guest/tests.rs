//! Tests of ranges of guest memory, and of copies from and to guest memory.

use super::*;
use crate::mapping::Shared;
use rustix::event::EventfdFlags;
use rustix::fs::MemfdFlags;

const BOTH: Rights = Rights { read: true, write: true };

/// A copy of a file, as received from a client.
fn given(file: &impl AsFd) -> ClientFile {
    let worker = Workers::new().unwrap().for_client();
    ClientFile::new(file.as_fd().try_clone_to_owned().unwrap(), worker.disposal())
}

fn read(memory: &Memory, address: u64) -> Result<[u8; 4], Fault> {
    let mut bytes = [0; 4];
    memory.read_into(address, &mut bytes).map(|()| bytes)
}

#[test]
fn reads_and_writes_go_through_ranges() {
    let ram = Shared::new("ram", 0, 0x4000).unwrap();
    let mut memory = Memory::default();
    let file = || given(&ram.file);
    // Two adjacent ranges; the second is the start of the file.
    memory.map(0x1000, 0x1000, BOTH, Some((file(), 0x2000))).unwrap();
    memory.map(0x2000, 0x1000, BOTH, Some((file(), 0))).unwrap();
    memory.write(0x1ffe, &[1, 2, 3, 4]).unwrap();
    assert_eq!(read(&memory, 0x1ffe), Ok([1, 2, 3, 4]));
    let mut there = [0; 2];
    ram.mapping.read(0x2ffe, &mut there).unwrap();
    assert_eq!(there, [1, 2]);
    ram.mapping.read(0, &mut there).unwrap();
    assert_eq!(there, [3, 4]);
    assert_eq!(read(&memory, 0x2ffe), Err(Fault::Unmapped));
    assert_eq!(memory.write(0xfff, &[0]), Err(Fault::Unmapped));
    assert_eq!(read(&memory, u64::MAX), Err(Fault::Unmapped));
    assert_eq!(memory.parts(0x1ff0, 32, true).unwrap().len(), 2);
}

#[test]
fn a_write_that_ends_in_a_hole_leaves_no_trace() {
    let ram = Shared::new("ram", 0, 0x1000).unwrap();
    let mut memory = Memory::default();
    memory.map(0, 0x1000, BOTH, Some((given(&ram.file), 0))).unwrap();
    assert_eq!(memory.write(0xffe, &[9; 4]), Err(Fault::Unmapped));
    assert_eq!(ram.mapping.load(0xffc), Some(0));
}

#[test]
fn rights_are_honoured() {
    let ram = Shared::new("ram", 0, 0x3000).unwrap();
    let file = || given(&ram.file);
    let mut memory = Memory::default();
    memory.map(0, 0x1000, Rights { read: true, write: false }, Some((file(), 0))).unwrap();
    memory.map(0x1000, 0x1000, Rights { read: false, write: true }, Some((file(), 0))).unwrap();
    memory.map(0x2000, 0x1000, Rights { read: false, write: false }, Some((file(), 0))).unwrap();
    memory.map(0x3000, 0x1000, BOTH, None).unwrap();
    assert_eq!(memory.write(0, &[0; 4]), Err(Fault::Denied));
    assert_eq!(memory.read_into(0x1000, &mut [0; 4]), Err(Fault::Denied));
    assert_eq!(memory.write(0x1000, &[0; 4]), Ok(()));
    assert_eq!(memory.write(0x2000, &[0; 4]), Err(Fault::Denied));
    assert_eq!(memory.write(0x3000, &[0; 4]), Err(Fault::ByMessage));
    assert_eq!(memory.read_into(0xffc, &mut [0; 8]), Err(Fault::Denied));
}

#[test]
fn overlaps_and_impossible_ranges_are_refused() {
    let mut memory = Memory::default();
    let mut map = |address, size| memory.map(address, size, BOTH, None);
    assert_eq!(map(0x1000, 0x1000), Ok(()));
    assert_eq!(map(0x1fff, 1), Err(Errno::EXIST));
    assert_eq!(map(0, 0x1001), Err(Errno::EXIST));
    assert_eq!(map(0, u64::MAX), Err(Errno::EXIST));
    assert_eq!(map(0, 0x1000), Ok(()));
    assert_eq!(map(5, 0), Err(Errno::INVAL));
    assert_eq!(map(u64::MAX, 2), Err(Errno::INVAL));
    assert_eq!(map(u64::MAX, 1), Ok(()));
    assert_eq!(memory.unmap(0x1000, 0x800).err(), Some(Errno::NOENT));
    assert_eq!(memory.unmap(0x1800, 0x800).err(), Some(Errno::NOENT));
    assert!(memory.unmap(0x1000, 0x1000).is_ok());
    assert_eq!(memory.parts(u64::MAX, 1, false).unwrap().len(), 1);
    assert_eq!(memory.parts(u64::MAX, 2, false).err(), Some(Fault::Unmapped));
    for page in 2..=MAX_RANGES as u64 + 1 {
        let wanted = if memory.ranges() < MAX_RANGES { Ok(()) } else { Err(Errno::NOSPC) };
        assert_eq!(memory.map(page * 0x1000, 0x1000, BOTH, None), wanted);
    }
    drop(memory.clear());
    assert_eq!(memory.parts(0, 1, false).err(), Some(Fault::Unmapped));
}

#[test]
fn memory_that_is_cut_is_a_fault_and_is_reported() {
    let file = rustix::fs::memfd_create("ram", MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, 0x3000).unwrap();
    let mut memory = Memory::default();
    memory.map(0x8000, 0x1000, BOTH, Some((given(&file), 0))).unwrap();
    memory.map(0x1000, 0x2000, BOTH, Some((given(&file), 0x1000))).unwrap();
    memory.write(0x1ffe, &[1, 2, 3, 4]).unwrap();
    assert_eq!(read(&memory, 0x1ffe), Ok([1, 2, 3, 4]));
    let mut back = [0; 4];
    rustix::io::pread(&file, &mut back, 0x1ffe).unwrap();
    assert_eq!(back, [1, 2, 3, 4]);
    assert_eq!(memory.lost(), None);
    rustix::fs::ftruncate(&file, 0x1000).unwrap();
    assert_eq!(memory.write(0x8000, &[1; 8]), Ok(()));
    assert_eq!(memory.lost(), None);
    assert_eq!(read(&memory, 0x1ffe), Err(Fault::Unmapped));
    assert_eq!(memory.lost(), Some(0x1000));
    assert_eq!(memory.write(0x2ffe, &[0]), Err(Fault::Unmapped));
}

#[test]
fn descriptors_that_are_not_memory_are_not_kept() {
    let (file, mut memory) =
        (rustix::event::eventfd(0, EventfdFlags::empty()).unwrap(), Memory::default());
    let worker = Workers::new().unwrap().for_client();
    let given = ClientFile::new(file, worker.disposal());
    memory.map(0, 0x1000, BOTH, Some((given, 0))).unwrap();
    assert_eq!(memory.read_into(0, &mut [0]), Err(Fault::ByMessage));
}
