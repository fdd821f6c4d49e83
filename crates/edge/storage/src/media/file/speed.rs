//! Compares the ways to read and write a file: `FARLANE_MEDIA_FOLDER=/tmp cargo test --release
//! --package farlane-storage media::file::speed -- --nocapture` prints a table. Without the folder,
//! a few requests check that every way reads the written data.

use super::*;
use crate::media::Media;
use rustix::event::{PollFd, PollFlags, poll};
use std::os::unix::fs::FileExt;
use std::time::Instant;
use testkit::Folder;

const WAYS: [(&str, Aio); 3] = [
    ("threads", Aio::Threads),
    ("io_uring", Aio::IoUring),
    ("io_uring, direct", Aio::IoUringDirect),
];

/// A sequence of requests of one kind.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    write: bool,
    /// Whether the file is dropped from the page cache first.
    cold: bool,
    random: bool,
    bytes: usize,
    depth: usize,
    count: usize,
}

const fn load(name: &'static str, bytes: usize, depth: usize, count: usize) -> Load {
    Load { name, write: false, cold: false, random: true, bytes, depth, count }
}

const READ: Load = load("4 KiB random reads, QD1, cached", 4096, 1, 20_000);
const READS: Load = load("4 KiB random reads, QD32, cached", 4096, 32, 60_000);
const WRITE: Load = Load { write: true, ..load("4 KiB random writes, QD1", 4096, 1, 5_000) };
const WRITES: Load = Load { write: true, ..load("4 KiB random writes, QD32", 4096, 32, 40_000) };
const STREAM: Load =
    Load { random: false, ..load("128 KiB sequential reads, QD8, cached", 128 << 10, 8, 4_000) };

const LOADS: [Load; 9] = [
    READ,
    READS,
    Load { name: "4 KiB random reads, QD1, not cached", cold: true, count: 3_000, ..READ },
    Load { name: "4 KiB random reads, QD32, not cached", cold: true, count: 20_000, ..READS },
    WRITE,
    WRITES,
    STREAM,
    Load { name: "128 KiB sequential reads, QD8, not cached", cold: true, ..STREAM },
    Load { name: "128 KiB sequential writes, QD8", write: true, ..STREAM },
];

/// Runs a load, with a flush after writes; returns requests per second.
fn run(media: &mut FileMedia, load: Load) -> f64 {
    let blocks = media.size() / load.bytes as u64;
    let (mut started, mut ended, mut number) = (0, 0, 1u64);
    let begin = Instant::now();
    let flushes = usize::from(load.write);
    while ended < load.count + flushes {
        while started < load.count && started - ended < load.depth {
            // A linear congruential generator (Knuth, MMIX) is random enough for offsets.
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let block = if load.random { number >> 24 } else { started as u64 } % blocks;
            let (offset, length) = (block * load.bytes as u64, load.bytes);
            let operation = match load.write {
                true => Operation::Write { offset, data: vec![block as u8; length].into() },
                false => Operation::Read { offset, length },
            };
            start(media, started as u64, operation);
            started += 1;
        }
        if ended == load.count && started == load.count {
            start(media, started as u64, Operation::Flush);
            started += 1;
        }
        media.submit();
        let mut waited = true;
        while let Some((_, outcome)) = media.poll_completion() {
            let bytes = outcome.unwrap();
            assert!(load.write || bytes.len() == load.bytes);
            (ended, waited) = (ended + 1, false);
        }
        if waited {
            poll(&mut [PollFd::new(&media.done.signal(), PollFlags::IN)], None).unwrap();
            media.clear_signal();
        }
    }
    load.count as f64 / begin.elapsed().as_secs_f64()
}

fn start(media: &mut FileMedia, id: u64, operation: Operation) {
    let at_once = media.start(Request { id, command: None, nsid: 1, operation });
    assert_eq!(at_once, None);
}

fn opened(path: &Path, aio: Aio) -> FileMedia {
    let size = std::fs::metadata(path).unwrap().len();
    let mut media = FileMedia::open(path, FileOptions { aio, ..FileOptions::default() }).unwrap();
    media.begin();
    assert_eq!(media.size(), size);
    media
}

fn forget_pages(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

#[test]
fn every_way_carries_out_every_load() {
    let scratch = Folder::new();
    let path = scratch.join("disk.img");
    std::fs::write(&path, vec![0; 4 << 20]).unwrap();
    for (_, aio) in WAYS {
        for load in LOADS {
            assert!(run(&mut opened(&path, aio), Load { count: 40, ..load }) > 0.0);
        }
    }
}

#[test]
fn the_table_of_a_folder() {
    let Some(folder) = std::env::var_os("FARLANE_MEDIA_FOLDER") else { return };
    let path = Path::new(&folder).join("farlane-media-speed.img");
    let file = std::fs::File::create(&path).unwrap();
    let megabyte = vec![0x5a; 1 << 20];
    for index in 0..1024 {
        file.write_all_at(&megabyte, index << 20).unwrap();
    }
    println!("| load | {} |", WAYS.map(|(name, _)| name).join(" | "));
    for load in LOADS {
        let mut rates = [const { Vec::new() }; WAYS.len()];
        // The ways take turns, so that other load on the machine affects all of them.
        for _ in 0..5 {
            for (rates, (_, aio)) in rates.iter_mut().zip(WAYS) {
                let mut media = opened(&path, aio);
                match load.cold {
                    true => forget_pages(&path),
                    false => drop(std::fs::read(&path).unwrap()),
                }
                rates.push(run(&mut media, load));
            }
        }
        let medians = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            format!("{:.0}", rates[rates.len() / 2])
        });
        println!("| {} | {} |", load.name, medians.join(" | "));
    }
    std::fs::remove_file(path).unwrap();
    assert!(file.metadata().unwrap().len() > 0);
}
