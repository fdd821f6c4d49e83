//! The raw-Ethernet codec, and an endpoint with a hostile peer.

use bytes::Bytes;
use switch::raw::{Endpoint, Input, Output, Settings};
use testkit::Source;
use wire::raw::{Bitmap, Body, Frame, Offer, Reason, Sequence};
use wire::{Duration, Instant};

/// The connection identifier of the peer.
const CONNECTION: u32 = 9;

fn frame(acknowledged: u32, body: Body<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let acknowledged = Sequence::new(acknowledged);
    Frame { connection: CONNECTION, acknowledged, body }.encode(&mut out);
    out
}

/// Bytes that decode must encode to the same bytes, without padding.
fn round_trip(bytes: &[u8]) {
    if let Ok(frame) = Frame::decode(bytes) {
        let mut again = Vec::new();
        frame.encode(&mut again);
        assert_eq!(again, bytes[..again.len()]);
        assert_eq!(Frame::decode(&again), Ok(frame));
    }
}

/// A frame with sequence numbers near the valid ones.
fn peer_frame(source: &mut Source<'_>, kind: u8) -> Vec<u8> {
    let [sequence, acknowledged] = [(); 2].map(|()| u32::from(source.byte()).wrapping_sub(8));
    let offer =
        Offer { segment: u16::from(source.byte()) + 1, window: u16::from(source.byte()) + 1 };
    let newest = Sequence::new(sequence);
    match kind {
        1 => frame(0, Body::Open(offer)),
        2 => frame(0, Body::Accept(offer)),
        3 => {
            let segment = source.take(1 + usize::from(offer.segment / 8));
            let segment = if segment.is_empty() { vec![0] } else { segment };
            frame(acknowledged, Body::Data { sequence: newest, segment: &segment })
        }
        4 => {
            let mut bitmap = Bitmap::default();
            (0..usize::from(offer.window) % 8).for_each(|_| bitmap.set(source.byte().into()));
            frame(acknowledged, Body::Ack { newest, waited: offer.segment, bitmap })
        }
        _ => frame(0, Body::Close(Reason::Unknown)),
    }
}

pub fn run(data: &[u8]) {
    round_trip(data);
    let mut source = Source(data);
    let how = source.byte();
    let congestion = ["none", "swift", "swift=20us", "rate=1G"][usize::from(how >> 1 & 3)];
    let congestion = congestion.parse().expect("a control");
    let window = 1 + usize::from(how >> 3);
    let mut end = Endpoint::new(Settings { congestion, window, ..Settings::new(CONNECTION) });
    let mut now = Instant::from_ns(1);
    end.handle(now, if how & 1 == 0 { Input::Open } else { Input::Accept });
    while !source.0.is_empty() {
        match source.byte() {
            kind @ 1..=5 => {
                let bytes = peer_frame(&mut source, kind);
                end.handle(now, Input::Received(bytes.into()));
            }
            6 => {
                let room = end.room(now);
                if room > 0 {
                    end.send(now, vec![7; room.min(1 + usize::from(source.byte()))]);
                }
            }
            7 => now += Duration::from_ns(u64::from(source.u32()) % 2_000_000_000),
            8 => end.handle(now, Input::CanTransmit { frames: source.byte().into() }),
            9 => end.handle(now, Input::Close),
            10 => end.handle(now, Input::Accept),
            11 => end.handle(now, Input::Open),
            length => {
                let bytes = source.take(usize::from(length));
                round_trip(&bytes);
                end.handle(now, Input::Received(Bytes::from(bytes)));
            }
        }
        drain(&mut end, now);
        assert!(end.in_flight() <= 32 * 1600, "more on the way than the window holds");
    }
}

/// Polls all outputs; transmitted bytes must decode.
fn drain(end: &mut Endpoint, now: Instant) {
    for _ in 0..1000 {
        match end.poll(now) {
            Output::Timeout(at) => {
                assert!(at.is_none_or(|at| at > now), "a timer in the past");
                return;
            }
            Output::Transmit(bytes) => {
                Frame::decode(&bytes).expect("our own frame");
            }
            _ => {}
        }
    }
    panic!("the endpoint does not come to rest");
}
