//! A hostile peer.

use bytes::Bytes;
use proptest::prelude::*;
use switch::raw::{Cause, Endpoint, Input, Output, Settings};
use wire::raw::{Bitmap, Body, Frame, Kind, Offer, Sequence};
use wire::{Duration, Instant};

fn frame(connection: u32, acknowledged: u32, body: Body<'_>) -> Bytes {
    let mut out = Vec::new();
    Frame { connection, acknowledged: Sequence::new(acknowledged), body }.encode(&mut out);
    out.into()
}

fn data(sequence: u32) -> Body<'static> {
    Body::Data { sequence: Sequence::new(sequence), segment: b"segment" }
}

fn drain(end: &mut Endpoint, now: Instant) -> Vec<Output> {
    let outputs: Vec<_> = std::iter::from_fn(|| match end.poll(now) {
        Output::Timeout(_) => None,
        output => Some(output),
    })
    .take(5000)
    .collect();
    assert!(outputs.len() < 5000, "the endpoint does not come to rest");
    outputs
}

/// An end with connection 9 established.
fn established(now: Instant) -> Endpoint {
    let mut end = Endpoint::new(Settings { window: 8, ..Settings::new(1) });
    end.handle(now, Input::Accept);
    let offer = Offer { segment: 1488, window: 8 };
    end.handle(now, Input::Received(frame(9, 0, Body::Open(offer))));
    end.handle(now, Input::Received(frame(9, 0, data(0))));
    assert!(drain(&mut end, now).contains(&Output::Connected) && end.is_up());
    end
}

#[test]
fn other_connections_and_nonsense_are_counted_and_dropped() {
    let now = Instant::from_ns(7);
    let mut end = established(now);
    end.handle(now, Input::Received(frame(10, 0, data(1))));
    end.handle(now, Input::Received(Bytes::from_static(&[0x13, 0, 9])));
    end.handle(now, Input::Received(Bytes::from_static(&[0xff; 60])));
    let counters = end.counters();
    assert_eq!((counters.foreign, counters.malformed, counters.delivered), (1, 2, 1));
    assert!(drain(&mut end, now).iter().all(|output| !matches!(output, Output::Delivered(_))));
    assert!(end.is_up());
}

#[test]
fn acknowledgement_of_unsent_frame_closes_connection() {
    let now = Instant::from_ns(7);
    let mut end = established(now);
    end.handle(now, Input::Received(frame(9, 1, data(1))));
    let outputs = drain(&mut end, now);
    assert!(matches!(outputs[0], Output::Down(Cause::Violation(_))), "{outputs:?}");
    assert!(matches!(&outputs[1], Output::Transmit(bytes)
        if matches!(Frame::decode(bytes).unwrap().body, Body::Close(_))));
}

#[test]
fn frames_beyond_the_window_are_not_kept() {
    let now = Instant::from_ns(7);
    let mut end = established(now);
    for sequence in 2..2000 {
        end.handle(now, Input::Received(frame(9, 0, data(sequence))));
    }
    // Frame 1 is missing; frames 2 to 8 are kept.
    assert_eq!(end.counters().beyond_window, 2000 - 9);
    end.handle(now, Input::Received(frame(9, 0, data(1))));
    assert_eq!(end.counters().delivered, 9);
}

#[test]
fn many_opens_get_one_answer_at_a_time() {
    let now = Instant::from_ns(7);
    let mut end = established(now);
    let offer = Offer { segment: 1488, window: 8 };
    for _ in 0..1000 {
        end.handle(now, Input::Received(frame(9, 0, Body::Open(offer))));
    }
    assert_eq!(drain(&mut end, now).len(), 1);
}

fn any_frame() -> impl Strategy<Value = Bytes> {
    let number = || prop_oneof![0u32..12, Just((1 << 24) - 1), any::<u32>()];
    let kind = prop::sample::select(vec![Kind::Open, Kind::Accept, Kind::Data, Kind::Ack]);
    let numbers = (number(), number(), any::<u16>(), prop::collection::vec(0usize..300, 0..8));
    let connection = prop::sample::select(vec![9u32, 9, 9, 10]);
    let built = (connection, kind, numbers).prop_map(|(connection, kind, numbers)| {
        let (sequence, acknowledged, short, bits) = numbers;
        let offer = Offer { segment: short.max(1), window: (short >> 4).max(1) };
        let mut bitmap = Bitmap::default();
        bits.into_iter().for_each(|bit| bitmap.set(bit));
        let newest = Sequence::new(sequence);
        let body = match kind {
            Kind::Open => Body::Open(offer),
            Kind::Accept => Body::Accept(offer),
            Kind::Data => data(sequence),
            _ => Body::Ack { newest, waited: short, bitmap },
        };
        frame(connection, acknowledged, body)
    });
    let noise = prop::collection::vec(any::<u8>(), 0..60).prop_map(Bytes::from);
    prop_oneof![8 => built, 1 => noise]
}

proptest! {
    #[test]
    fn hostile_frames_break_only_their_connection(
        steps in prop::collection::vec((any_frame(), 0u64..400, any::<bool>()), 0..60),
        swift in any::<bool>(),
    ) {
        let mut now = Instant::from_ns(7);
        let mut end = established(now);
        if swift {
            let congestion = "swift=20us".parse().expect("a control");
            end = Endpoint::new(Settings { congestion, ..Settings::new(9) });
            end.handle(now, Input::Open);
        }
        for (frame, pause, send) in steps {
            now += Duration::from_us(pause);
            end.handle(now, Input::Received(frame));
            let room = end.room(now);
            if send && room > 0 {
                end.send(now, vec![1; room.min(100)]);
            }
            for output in drain(&mut end, now) {
                match output {
                    Output::Transmit(bytes) => { Frame::decode(&bytes).expect("our own frame"); }
                    Output::Delivered(segment) => prop_assert_eq!(&segment[..], b"segment"),
                    Output::Down(_) => end.handle(now, Input::Accept),
                    _ => {}
                }
            }
        }
    }
}
