//! A tunnel end with a hostile peer, before and after the Hellos.

use bytes::Bytes;
use pcie::Ready;
use switch::tunnel::{Input, Output, Settings, Tunnel};
use testkit::Source;
use wire::frame::{
    Control, HEADER, Header, Hello, HostAfter, Kind, MoveStatus, Moved, Role, Survival,
};
use wire::tlp::{MemoryRequest, Tlp};
use wire::{Bdf, Duration, Instant, Tag};

/// A frame's bytes.
fn frame(kind: Kind, sequence: u32, acknowledged: u32, payload: &[u8]) -> Vec<u8> {
    let header = Header { length: payload.len() as u16, kind, sequence, acknowledged };
    let mut out = header.encode().to_vec();
    out.extend_from_slice(payload);
    out
}

/// The bytes of a Hello frame, for a session that expects this frame, if it goes on.
fn hello(role: Role, expected: Option<u32>) -> Vec<u8> {
    let settings = Settings::new(role, 7);
    let hello = Hello {
        version: wire::frame::VERSION,
        role,
        max_payload: settings.max_payload,
        group: 0,
        instance: settings.instance,
        push: 0,
        session: Some(Survival { id: 1 << 32 | 1, survive_ms: 10_000, expected }),
        paths: None,
        connection: None,
        lease_ms: 0,
        credits: settings.window,
    };
    let mut payload = Vec::new();
    Control::Hello(hello).encode(&mut payload);
    frame(Kind::Hello, 0, 0, &payload)
}

pub fn run(data: &[u8]) {
    let mut source = Source(data);
    let how = source.byte();
    let above = if how & 4 == 0 { Role::Host } else { Role::Probe };
    let (own, far) = if how & 1 == 0 { (Role::Device, above) } else { (above, Role::Device) };
    let survive = if how & 8 == 0 { Duration::ZERO } else { Duration::from_ms(10_000) };
    let mut end = Tunnel::new(Settings { survive, ..Settings::new(own, 1) });
    let mut now = Instant::ZERO;
    end.handle(now, Input::Connected);
    if how & 2 == 0 {
        end.handle(now, Input::Received(Bytes::from(hello(far, None))));
    }
    while !source.0.is_empty() {
        match source.byte() {
            0 => end.handle(now, Input::CanTransmit { bytes: source.u32() as usize }),
            1 => {
                let ready = end.ready();
                let write = MemoryRequest::for_bytes(Bdf::new(1, 0, 0), Tag::default(), 0x1000, 64);
                let write = Tlp::memory_write(write.expect("a page"), Bytes::from(vec![1; 64]));
                if ready.has(write.class()) {
                    end.push(write);
                }
            }
            2 => {
                let taken = end.pop(Ready::ALL);
                assert!(taken.is_none() || end.is_up(), "a TLP without a link");
            }
            3 => end.reset(),
            4 => end.echo(1),
            5 => now += Duration::from_us(source.u32().into()),
            6 => end.goodbye(),
            7 => {
                end.handle(now, Input::Disconnected);
                drain(&mut end, now);
                end.handle(now, Input::Connected);
                let expected = u32::from(source.byte());
                end.handle(now, Input::Received(Bytes::from(hello(far, Some(expected)))));
            }
            length => {
                let piece = source.take(usize::from(length));
                end.handle(now, Input::Received(Bytes::from(piece)));
            }
        }
        drain(&mut end, now);
    }
}

/// Polls all outputs; transmitted bytes must be whole frames.
fn drain(end: &mut Tunnel, now: Instant) {
    for _ in 0..1000 {
        match end.poll(now) {
            Output::Timeout(_) => return,
            Output::Reset => end.reset_done(),
            Output::Move(group) => {
                let (status, host) = (MoveStatus::Done, HostAfter::None);
                end.answer_move(Moved { status, host, awaited: false, from: 0, to: group });
            }
            Output::Transmit(_, frames) => check(&frames),
            _ => {}
        }
    }
    panic!("the tunnel does not come to rest");
}

fn check(mut bytes: &[u8]) {
    while let Some((head, rest)) = bytes.split_first_chunk::<HEADER>() {
        let header = Header::decode(*head).expect("our own header");
        let (payload, rest) = rest.split_at(usize::from(header.length));
        if header.kind == Kind::Tlps {
            let mut payload = Bytes::copy_from_slice(payload);
            while !payload.is_empty() {
                Tlp::decode(&mut payload).expect("our own TLP");
            }
        } else {
            Control::decode(header.kind, payload).expect("our own control frame");
        }
        bytes = rest;
    }
    assert!(bytes.is_empty(), "half a frame");
}
