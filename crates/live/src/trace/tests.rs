//! Files as they come out.

use super::{Settings, Tracer};
use crate::clock::Clock;
use bytes::Bytes;
use wire::tlp::{MemoryRequest, Tlp};
use wire::trace::{CHUNK_HEADER, ChunkHeader, Header, NodeRole, Record, Records, Tap};
use wire::{Bdf, Tag};

fn tlp(number: u64) -> Tlp {
    let request = MemoryRequest::for_bytes(Bdf::new(1, 0, 0), Tag::default(), number * 512, 512);
    Tlp::memory_write(request.unwrap(), Bytes::from(vec![number as u8; 512]))
}

fn record(name: &str, ring: Option<u64>, snap: Option<u16>, tlps: u64) -> (Vec<u8>, u64) {
    let path = std::env::temp_dir().join(format!("farlane-trace-{}-{name}", std::process::id()));
    let settings = Settings { path: path.clone(), ring, snap };
    let tracer = Tracer::create(&settings, NodeRole::Host, 7, Clock::start()).unwrap();
    for number in 0..tlps {
        tracer.tlp(Tap::ROOT_PORT, false, &tlp(number));
    }
    let report = tracer.finish().unwrap();
    tracer.tlp(Tap::ROOT_PORT, false, &tlp(0));
    assert_eq!(tracer.finish().unwrap().bytes, 0, "only once");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    (bytes, report.lost)
}

/// The addresses in the chunks of a file that is no ring, and what was lost.
fn addresses(file: &[u8]) -> (Vec<u64>, u64) {
    let (header, mut at) = Header::decode(file).unwrap();
    assert_eq!((header.role, header.instance), (NodeRole::Host, 7));
    let (mut found, mut lost, mut number) = (Vec::new(), 0, 0);
    while at < file.len() {
        let chunk = ChunkHeader::decode(&file[at..]).expect("a chunk");
        assert_eq!(chunk.number, number);
        number += 1;
        lost += u64::from(chunk.lost);
        at += CHUNK_HEADER;
        let records = &file[at..at + chunk.length as usize];
        assert!(chunk.covers(records));
        at += records.len();
        for timed in Records::new(chunk.start_ns, records) {
            let Record::Tlp { length: 524, bytes, .. } = timed.record else { panic!() };
            found.push(u64::from(u32::from_be_bytes(bytes[8..12].try_into().unwrap())));
        }
    }
    (found, lost)
}

#[test]
fn what_is_recorded_or_lost_is_in_the_file() {
    let (file, lost) = record("whole", None, None, 20_000);
    let (found, counted) = addresses(&file);
    assert!(found.is_sorted_by(|a, b| a < b));
    // What is lost at the very end has no chunk behind it.
    assert!(counted <= lost);
    assert_eq!(found.len() as u64 + lost, 20_000);
    assert_eq!(found[..100], (0..100).map(|i| i * 512).collect::<Vec<_>>());
}

#[test]
fn a_ring_stays_small_and_a_snap_cuts() {
    let (file, _) = record("ring", Some(256 << 10), None, 4_000);
    assert!(file.len() <= 513 << 10, "{}", file.len());
    let (file, lost) = record("snap", None, Some(16), 1_000);
    assert_eq!(addresses(&file).0.len() as u64 + lost, 1_000);
    assert!(file.len() < 50_000, "{}", file.len());
}

#[test]
fn a_full_disk_is_told_and_stops_nobody() {
    let settings = Settings { path: "/dev/full".into(), ring: None, snap: None };
    match Tracer::create(&settings, NodeRole::Host, 7, Clock::start()) {
        Err(error) => assert!(error.to_string().contains("space"), "{error}"),
        Ok(_) => panic!("the header fits on a full disk"),
    }
}

#[test]
fn micro() {
    let path = std::env::temp_dir().join("farlane-micro");
    let settings = Settings { path, ring: Some(64 << 20), snap: None };
    let clock = Clock::start();
    let tracer = Tracer::create(&settings, NodeRole::Host, 7, clock).unwrap();
    let tlps: Vec<Tlp> = (0..18)
        .map(|n| {
            let request =
                MemoryRequest::for_bytes(Bdf::new(1, 0, 0), Tag::default(), (1 << 33) + n * 256, 256);
            Tlp::memory_write(request.unwrap(), Bytes::from(vec![n as u8; 256]))
        })
        .collect();
    let mut payload = Vec::new();
    tlps.iter().for_each(|tlp| tlp.encode(&mut payload));
    let header = wire::frame::Header {
        length: payload.len() as u16,
        kind: wire::frame::Kind::Tlps,
        sequence: 9,
        acknowledged: 0,
    };
    let frame = Bytes::from([&header.encode()[..], &payload].concat());
    let small = {
        let mut p = Vec::new();
        let r = MemoryRequest::for_bytes(Bdf::new(1, 0, 0), Tag::default(), 0x1000, 64);
        Tlp::memory_read(r.unwrap()).encode(&mut p);
        let h = wire::frame::Header { length: p.len() as u16, ..header };
        Bytes::from([&h.encode()[..], &p].concat())
    };
    for trash in [0usize, 64 << 10, 512 << 10] {
        let mut dirt = vec![1u8; trash];
        let mut times = vec![Vec::new(); 10]; let mut out = Vec::with_capacity(4096);
        for _ in 0..20000 {
            let mut wipe = || dirt.iter_mut().step_by(64).for_each(|b| *b += 1);
            let mut step = |n: usize, f: &mut dyn FnMut()| {
                let a = std::time::Instant::now();
                f();
                times[n].push(a.elapsed().as_nanos() as u64);
            };
            wipe();
            step(7, &mut || {});
            step(8, &mut || tlps.iter().for_each(|t| { std::hint::black_box(t.header()); }));
            step(9, &mut || tlps.iter().for_each(|t| { out.clear(); wire::trace::encode_tlp(Tap::FUNCTION, true, t, 16, 77, &mut out); std::hint::black_box(&out); }));
            step(0, &mut || tlps.iter().for_each(|t| tracer.tlp(Tap::FUNCTION, true, t)));
            wipe();
            let now = clock.now();
            step(1, &mut || {
                for _ in 0..8 {
                    tracer.tick(now, true);
                }
            });
            wipe();
            step(2, &mut || tracer.stream(Tap::UPLINK, true, &frame));
            wipe();
            step(3, &mut || {
                tracer.tick(now, true);
            });
            wipe();
            step(4, &mut || tracer.stream(Tap::UPLINK, true, &small));
            wipe();
            step(5, &mut || {
                tracer.tick(now, true);
            });
            step(6, &mut || {
                tracer.tick(now, true);
            });
        }
        let names =
            ["note 18", "settle 18", "note frame", "settle frame", "note small", "settle small", "tick", "nothing", "header 18", "encode 18"];
        for (name, times) in names.iter().zip(&mut times) {
            times.sort_unstable();
            eprintln!("trash {trash}: {name}: {} ns", times[times.len() / 2]);
        }
    }
}
