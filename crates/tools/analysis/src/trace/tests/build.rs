//! Builds a host's and a device's trace of the same traffic. A node takes 1 us, the network 5 us,
//! and the device's clock is ahead.

use crate::commands::tests::{Drive, Testbed, io};
use crate::commands::{AnalyserSettings, Direction};
use crate::trace::{PortFollower, Run};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wire::Duration;
use wire::frame::{Control, Grant, Hello, Role};
use wire::push::Push;
use wire::tlp::Tlp;
use wire::trace::{
    CHUNK_HEADER, ChunkHeader, HEAD, Header, Kept, LinkState, NodeRole, PayloadKey, Payloads,
    Record, Tap, encode_tlp,
};

/// Nanoseconds by which the device's clock is ahead of the host's clock.
pub const OFFSET: u64 = 1_234_567;
/// Time in a node and on the network, in nanoseconds.
const NODE: u64 = 1_000;
const NETWORK: u64 = 5_000;
const CHUNK: usize = 25;

/// Files of one run in a folder that is deleted when the value is dropped.
pub struct Traces {
    pub folder: TempDir,
    pub host: PathBuf,
    pub device: PathBuf,
    pub testbed: Testbed,
}

impl Traces {
    /// Opens both traces on one timeline.
    pub fn run(&self) -> Run {
        Run::open(&[self.device.clone(), self.host.clone()]).unwrap()
    }

    /// Writes a file with these bytes into the folder.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

struct File {
    role: NodeRole,
    records: Vec<(u64, Encode)>,
}

/// Appends a record. The number is nanoseconds since the previous record.
type Encode = Box<dyn Fn(u64, &mut Vec<u8>)>;

impl File {
    fn record(&mut self, at: u64, record: impl Fn(u64, &mut Vec<u8>) + 'static) {
        self.records.push((at, Box::new(record)));
    }

    fn write(mut self, path: &Path, instance: u64, key: u64) {
        self.records.sort_by_key(|(at, _)| *at);
        let clock = "made by hand".to_owned();
        let (role, ring, snap, start_unix_ns) = (self.role, false, 0, 1_700_000_000_000_000_000);
        let mut out = Vec::new();
        Header { role, ring, instance, start_unix_ns, snap, key, clock }.encode(&mut out);
        for (number, records) in self.records.chunks(CHUNK).enumerate() {
            let (start, mut last) = (records[0].0, records[0].0);
            let mut bytes = Vec::new();
            for (at, record) in records {
                record(at - last, &mut bytes);
                last = *at;
            }
            out.extend(ChunkHeader::new(number as u32, 0, start, &bytes).encode());
            out.extend(bytes);
        }
        assert!(out.len() > CHUNK_HEADER);
        std::fs::write(path, out).unwrap();
    }
}

pub fn hello(role: Role, instance: u64) -> Vec<u8> {
    let credits = [Grant { headers: 64, data: 1024 }; 3];
    let version = wire::frame::VERSION;
    let (max_payload, group, push) = (256, 0, 0);
    let (session, paths, connection) = (None, None, None);
    let lease_ms = 0;
    let hello = Hello {
        version,
        role,
        max_payload,
        group,
        instance,
        push,
        session,
        paths,
        connection,
        lease_ms,
        credits,
    };
    let mut payload = Vec::new();
    Control::Hello(hello).encode(&mut payload);
    payload
}

/// Adds the greetings of host `host` and device `device`.
fn greet(node: &mut File, tap: Tap, at: u64, hellos: &[Vec<u8>; 2]) {
    let state = LinkState::Connected;
    node.record(at, move |delta, out| Record::Link { tap, state }.encode(delta, out));
    for (up, payload) in [false, true].into_iter().zip(hellos.clone()) {
        node.record(at, move |delta, out| {
            Record::Control { tap, up, kind: 1, payload: &payload }.encode(delta, out);
        });
    }
}

/// A read and a write of 4 KiB after enumeration and bring-up.
pub fn traces() -> Traces {
    traces_of(41, |testbed, drive| {
        let entry = io(2, 18, 4096, 8, 0x10_0000, 0);
        testbed.begin(drive, 1, &[entry]);
        testbed.write_host(drive, 0x10_0000, &[5; 4096]);
        testbed.end(drive, 1, 18, 0);
        testbed.begin(drive, 1, &[io(1, 17, 64, 8, 0x12_3456_7000, 0)]);
        testbed.read_host(drive, 0x12_3456_7000, &[7; 4096]);
        testbed.end(drive, 1, 17, 0x280);
    })
}

/// Traces of `work`, of nodes with this `instance`.
pub fn traces_of(instance: u64, work: impl FnOnce(&mut Testbed, &mut Drive)) -> Traces {
    traces_greeting(instance, hello, work)
}

/// Builds traces with the given greetings.
pub fn traces_greeting(
    instance: u64,
    hello: impl Fn(Role, u64) -> Vec<u8>,
    work: impl FnOnce(&mut Testbed, &mut Drive),
) -> Traces {
    record(instance, hello, |_, _, tlp| (tlp.clone(), Kept::ALL), 0, work)
}

/// Builds traces as nodes record by default, without user data. `change` alters the TLPs that a
/// node sees.
pub fn hashed(
    change: impl Fn(NodeRole, &Tlp) -> Tlp,
    keys: [PayloadKey; 2],
    work: impl FnOnce(&mut Testbed, &mut Drive),
) -> Traces {
    let payloads = |key| Payloads::new(Some(Box::new(PortFollower::recording())), key, None);
    let [mut host, mut device] = keys.map(payloads);
    let see = |role, up, tlp: &Tlp| {
        let tlp = change(role, tlp);
        let payloads = if role == NodeRole::Host { &mut host } else { &mut device };
        let kept = payloads.kept_of(up, &tlp);
        (tlp, kept)
    };
    let key = if keys[0] == keys[1] { keys[0].check() } else { 0 };
    record(71, hello, see, key, work)
}

fn record(
    instance: u64,
    hello: impl Fn(Role, u64) -> Vec<u8>,
    mut see: impl FnMut(NodeRole, bool, &Tlp) -> (Tlp, Kept),
    key: u64,
    work: impl FnOnce(&mut Testbed, &mut Drive),
) -> Traces {
    let gap = Duration::from_us(20);
    let (mut testbed, mut drive) = Testbed::with_drive(AnalyserSettings::default(), gap, 1);
    work(&mut testbed, &mut drive);
    let folder = tempfile::tempdir().unwrap();
    let [host, device] = ["host", "device"].map(|name| folder.path().join(name));
    let mut near = File { role: NodeRole::Host, records: Vec::new() };
    let mut far = File { role: NodeRole::Device, records: Vec::new() };
    let hellos = [hello(Role::Host, instance), hello(Role::Device, instance + 1)];
    greet(&mut near, Tap::link(0), 0, &hellos);
    greet(&mut far, Tap::UPLINK, OFFSET, &hellos);
    let (mut sequences, mut at_function) = ([0, 0], Vec::new());
    for (at, direction, tlp) in &testbed.tlps {
        let (at, up) = (at.as_ns(), *direction == Direction::Up);
        let sequence = sequences[usize::from(up)];
        sequences[usize::from(up)] += 1;
        // Upwards, the root port is the last point.
        let step = |late: u64| if up { at - late } else { at + late };
        let (seen, kept) = see(NodeRole::Host, up, tlp);
        let tap = Tap::ROOT_PORT;
        near.record(at, move |delta, out| encode_tlp(tap, up, &seen, &kept, delta, out));
        frame(&mut near, step(NODE), Tap::link(0), up, sequence, tlp);
        frame(&mut far, step(NODE + NETWORK) + OFFSET, Tap::UPLINK, up, sequence, tlp);
        // The port consumes pushes.
        if Push::decode(tlp).is_none() {
            at_function.push((step(2 * NODE + NETWORK), up, tlp));
        }
    }
    for (at, direction, tlp) in &testbed.local {
        at_function.push((at.as_ns(), *direction == Direction::Up, tlp));
    }
    at_function.sort_by_key(|(at, ..)| *at);
    for (at, up, tlp) in at_function {
        let (tlp, kept) = see(NodeRole::Device, up, tlp);
        let tap = Tap::FUNCTION;
        far.record(at + OFFSET, move |delta, out| encode_tlp(tap, up, &tlp, &kept, delta, out));
    }
    near.write(&host, instance, key);
    far.write(&device, instance + 1, key);
    Traces { folder, host, device, testbed }
}

fn frame(file: &mut File, at: u64, tap: Tap, up: bool, sequence: u32, tlp: &Tlp) {
    let length = tlp.wire_length() as u32;
    let mut heads = Vec::new();
    tlp.encode(&mut heads);
    heads.truncate(tlp.header_length());
    heads.resize(HEAD, 0);
    file.record(at, move |delta, out| {
        let bytes = length + 12;
        Record::Frame { tap, up, sequence, bytes, tlps: 1, heads: &heads }.encode(delta, out);
    });
}
