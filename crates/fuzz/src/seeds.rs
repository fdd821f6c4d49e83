//! The seed corpus, made of what the codecs themselves produce.

use crate::frames::{frame, hello};
use wire::frame::{Control, Grant, HostAfter, Kind, MoveStatus, Moved, Role};
use wire::tlp::{
    Completion, ConfigKind, ConfigRequest, MemoryRequest, Message, Packet, Routing, Status, Tlp,
    message_code,
};
use wire::{Bdf, Tag};

/// The seeds of each target.
pub fn all() -> [(&'static str, Vec<Vec<u8>>); 8] {
    [
        ("tlp", tlps()),
        ("frames", frames()),
        ("raw", crate::raw::seeds()),
        ("fabric", fabric()),
        ("endpoint", endpoint()),
        ("nvme", nvme()),
        ("vfio_user", vfio_user()),
        ("trace", crate::trace::seeds()),
    ]
}

fn encoded(tlp: &Tlp) -> Vec<u8> {
    let mut out = Vec::new();
    tlp.encode(&mut out);
    out
}

const HOST: Bdf = Bdf::new(0, 0, 0);
const DEVICE: Bdf = Bdf::new(3, 0, 0);

fn config(write: Option<(u16, u32)>) -> Tlp {
    let register = write.map_or(0, |(register, _)| register);
    let tag = Tag::truncate(3);
    let kind = ConfigKind::Type0;
    let request =
        ConfigRequest { kind, requester: HOST, tag, target: DEVICE, register, first_be: 0xf };
    match write {
        None => Tlp::new(Packet::ConfigRead(request), bytes::Bytes::new()),
        Some((_, value)) => {
            let data = bytes::Bytes::copy_from_slice(&value.to_le_bytes());
            Tlp::new(Packet::ConfigWrite(request), data)
        }
    }
}

fn some_tlps() -> Vec<Tlp> {
    let request = |address, length| {
        MemoryRequest::for_bytes(DEVICE, Tag::truncate(0x205), address, length).expect("one page")
    };
    let write = |address, length: usize| {
        let request = request(address, length);
        Tlp::memory_write(request, bytes::Bytes::from(vec![7; request.length()]))
    };
    let completion = |status| Completion {
        completer: HOST,
        requester: DEVICE,
        tag: Tag::truncate(1),
        status,
        byte_count: 64,
        lower_address: 0x40,
        byte_count_modified: false,
    };
    let data = bytes::Bytes::from(vec![9; 64]);
    let message = Message {
        requester: DEVICE,
        tag: Tag::default(),
        routing: Routing::Local,
        code: message_code::ASSERT_INTA,
        body: [0; 8],
    };
    let mut guarded = write(0x2003, 9);
    guarded.digest = true;
    vec![
        Tlp::memory_read(request(0x10_0040, 256)),
        Tlp::memory_read(request(0x1_0000_0001, 2)),
        write(0xfee0_0000, 4),
        write(0x8_0000_0002, 64),
        guarded,
        config(None),
        config(Some((4, 0x406))),
        Tlp::new(Packet::Completion(completion(Status::Success)), data),
        Tlp::completion(completion(Status::UnsupportedRequest)),
        Tlp::new(Packet::Message(message), bytes::Bytes::new()),
    ]
}

fn tlps() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = some_tlps().iter().map(encoded).collect();
    seeds.push(seeds.concat());
    seeds
}

/// A piece of the stream as the target `frames` reads it.
fn piece(bytes: &[u8]) -> Vec<u8> {
    let pieces = bytes.chunks(255).flat_map(|part| {
        let short = part.len() < 7;
        let padding = if short { 7 - part.len() } else { 0 };
        let mut out = vec![(part.len() + padding) as u8];
        out.extend_from_slice(part);
        out.resize(out.len() + padding, 0);
        out
    });
    pieces.collect()
}

fn frames() -> Vec<Vec<u8>> {
    let control = |control: Control| {
        let mut payload = Vec::new();
        control.encode(&mut payload);
        frame(control.kind(), 0, 0, &payload)
    };
    let grant = Grant { headers: 2000, data: 100_000 };
    let transmit = [0, 0, 0, 1, 0];
    let mut seeds = vec![
        [&[0][..], &transmit, &[1, 1, 2], &piece(&control(Control::Echo(7)))].concat(),
        [&[1][..], &transmit, &[3], &piece(&control(Control::ResetDone(1)))].concat(),
        [&[0][..], &transmit, &piece(&control(Control::Reset(1))), &[2]].concat(),
        [&[0][..], &piece(&control(Control::Credits([grant; 3])))].concat(),
        [&[2][..], &piece(&hello(Role::Host)), &piece(&control(Control::Goodbye))].concat(),
        [&[3][..], &piece(&hello(Role::Device)), &[5, 0, 0, 0, 1]].concat(),
    ];
    // A greeting with entries: one to ignore, one that is required.
    let mut payload = hello(Role::Host).split_off(wire::frame::HEADER);
    for entries in [&[0, 1, 0, 2, 0, 5, 0, 9, 0, 0][..], &[0x80, 10, 0, 1, 7]] {
        payload.extend(entries);
        let greeting = piece(&frame(Kind::Hello, 0, 0, &payload));
        seeds.push([&[2][..], &transmit, &greeting, &[2]].concat());
    }
    // A probe that moves the device, and a probe that is answered.
    let moved =
        Moved { status: MoveStatus::Done, host: HostAfter::Stays, awaited: true, from: 1, to: 2 };
    seeds.push([&[4][..], &transmit, &piece(&control(Control::Move(2))), &transmit].concat());
    seeds.push([&[5][..], &transmit, &piece(&control(Control::Moved(moved)))].concat());
    let all: Vec<u8> = some_tlps().iter().flat_map(encoded).collect();
    seeds.push([&[0][..], &piece(&frame(Kind::Tlps, 0, 0, &all)), &[2, 2, 2], &transmit].concat());
    seeds
}

fn fabric() -> Vec<Vec<u8>> {
    let start = |kind: u8| vec![kind, 1, 2, 3, 4];
    let copy = [4, 0, 2, 0, 1, 0, 0, 2, 0, 9, 0, 0, 0x77, 7, 0, 0];
    let pass = [9, 0x10, 0x27, 0, 0];
    let with = |kind: u8, operations: &[&[u8]]| {
        let mut seed = start(kind);
        operations.iter().for_each(|operation| seed.extend_from_slice(operation));
        seed
    };
    let script = |tlp: &Tlp| {
        let bytes = encoded(tlp);
        [&[11, bytes.len() as u8][..], &bytes].concat()
    };
    let mut scripted = start(0x20);
    for tlp in some_tlps() {
        scripted.extend(script(&tlp));
    }
    scripted.extend(pass);
    vec![
        with(0x00, &[&copy, &pass, &[2, 0, 0, 0, 0, 0, 0], &pass]),
        with(0x17, &[&copy, &pass, &[5, 0], &pass, &[6, 0], &pass, &[0, 4, 0, 0, 0, 0]]),
        with(0x11, &[&copy, &[10, 0, 1], &pass, &[10, 0, 0], &pass]),
        with(0x10, &[&[7, 0, 1], &copy, &pass, &[7, 0, 0], &[13, 200], &[8, 0, 5, 0, 0, 0]]),
        with(0x05, &[&[1, 3, 1, 6, 0, 0, 0], &copy, &pass, &[12, 1], &copy, &pass]),
        scripted,
    ]
}

fn endpoint() -> Vec<Vec<u8>> {
    let tlp = |tlp: &Tlp| {
        let bytes = encoded(tlp);
        [&[0, bytes.len() as u8][..], &bytes].concat()
    };
    let enable = [
        tlp(&config(Some((0x10, 0xe000_0000)))),
        tlp(&config(Some((4, 0x406)))),
        tlp(&config(Some((0x48, 0xc000_0000)))),
    ]
    .concat();
    let read = [2, 0, 0x10, 0, 0, 0, 0x58, 2, 0, 0];
    let write = [3, 1, 0x20, 0, 0, 0, 0x58, 2, 0, 0];
    let poll = [9, 7];
    let base: &[u8] = &[1, 1, 8];
    let mut seeds = vec![
        [base, &enable, &read, &poll, &[7, 0, 2, 7, 0, 3], &poll].concat(),
        [base, &enable, &read, &write, &[4, 0, 5, 1, 9, 1, 9, 6]].concat(),
        [base, &enable, &read, &poll, &[6, 0, 0, 0xf, 0], &poll, &[8], &poll].concat(),
    ];
    let all: Vec<u8> = some_tlps().iter().flat_map(tlp).collect();
    seeds.push([base, &enable, &all, &poll].concat());
    seeds
}

/// Lists of operations have no form that could be wrong, so any bytes will do:
/// some for each kind of host and of controller.
fn nvme() -> Vec<Vec<u8>> {
    let mut rng = wire::random::Random::new(1);
    (0..8u8).map(|mode| [&[mode][..], &rng.bytes(240)].concat()).collect()
}

/// Every command with a payload of its usual length, then the session's own
/// operations.
fn vfio_user() -> Vec<Vec<u8>> {
    let message = |command: u8, length: u8| {
        let mut seed = vec![7, 0, command, command, 0, length, 0, 0, 0];
        seed.resize(seed.len() + usize::from(length), 0);
        seed
    };
    let version = [&[7, 0, 1, 1, 0, 4, 0, 0, 0][..], &[0, 0, 1, 0]].concat();
    let lengths = [4, 32, 24, 16, 16, 32, 20, 16, 20, 16, 24, 16, 0, 0, 16];
    let all: Vec<u8> = (1..).zip(lengths).flat_map(|(c, length)| message(c, length)).collect();
    vec![
        [&version[..], &all].concat(),
        [&version[..], &message(13, 0), &[1, 2, 3, 0, 0, 0x10, 0, 4, 6]].concat(),
        [&version[..], &message(9, 16), &[1, 0], &version, &[5, 0x15]].concat(),
        [&message(2, 32)[..], &version, &message(8, 20), &[6]].concat(),
    ]
}
