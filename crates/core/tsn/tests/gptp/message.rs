//! Messages: golden bytes, round trips, and any bytes.

use proptest::prelude::*;
use tsn::gptp::message::{Body, Message};
use tsn::gptp::node::{frame, message_of};
use tsn::gptp::{ClockIdentity, PortIdentity, SystemIdentity};

fn message(body: Body) -> Message {
    let source = PortIdentity { clock: ClockIdentity(0x0200_00ff_fe00_0001), port: 1 };
    Message { domain: 0, correction: 65_536, source, sequence: 7, log_interval: -3, body }
}

/// Offsets of IEEE 802.1AS-2020, tables 10-7, 10-11, 11-9, 11-11, 11-12 to 11-14.
#[test]
fn golden_bytes() {
    let bytes = message(Body::Sync).encode();
    assert_eq!(bytes.len(), 44);
    assert_eq!(bytes[..8], [0x10, 0x12, 0, 44, 0, 0, 0x02, 0x08]);
    assert_eq!(bytes[8..16], [0, 0, 0, 0, 0, 1, 0, 0], "a nanosecond");
    assert_eq!(bytes[20..34], [2, 0, 0, 0xff, 0xfe, 0, 0, 1, 0, 1, 0, 7, 0, 0xfd]);
    let bytes = message(Body::FollowUp { origin: 2_000_000_005_000, rate: -2 }).encode();
    assert_eq!(bytes.len(), 76);
    // 2^30 + 2 seconds and 5 ns.
    assert_eq!(bytes[34..44], [0, 0, 0x40, 0, 0, 2, 0, 0, 0, 5]);
    assert_eq!(bytes[44..54], [0, 3, 0, 28, 0, 0x80, 0xc2, 0, 0, 1]);
    assert_eq!(bytes[54..58], [0xff, 0xff, 0xff, 0xfe]);
    assert_eq!(message(Body::DelayRequest).encode().len(), 54);
    let root = SystemIdentity::new(246, ClockIdentity(9));
    let path = vec![ClockIdentity(9), ClockIdentity(8)];
    let bytes = message(Body::Announce { root, steps: 1, path }).encode();
    assert_eq!(bytes.len(), 64 + 4 + 16);
    assert_eq!(bytes[47..53], [246, 248, 0xfe, 0x43, 0x6a, 248]);
    assert_eq!(bytes[61..63], [0, 1], "stepsRemoved");
}

fn bodies() -> impl Strategy<Value = Body> {
    let ns = (-1_000_000_000_000_000i64..1_000_000_000_000_000).prop_map(|ns| ns * 1_000);
    let port = (any::<u64>(), any::<u16>())
        .prop_map(|(clock, port)| PortIdentity { clock: ClockIdentity(clock), port });
    let root = (any::<u8>(), any::<u8>(), any::<u64>()).prop_map(|(priority1, class, clock)| {
        SystemIdentity { class, ..SystemIdentity::new(priority1, ClockIdentity(clock)) }
    });
    let path = prop::collection::vec(any::<u64>().prop_map(ClockIdentity), 0..8);
    prop_oneof![
        Just(Body::Sync),
        Just(Body::DelayRequest),
        (ns.clone(), any::<i32>()).prop_map(|(origin, rate)| Body::FollowUp { origin, rate }),
        (ns.clone(), port.clone())
            .prop_map(|(received, requester)| Body::DelayResponse { received, requester }),
        (ns, port).prop_map(|(sent, requester)| Body::DelayFollowUp { sent, requester }),
        (root, any::<u16>(), path).prop_map(|(root, steps, path)| Body::Announce {
            root,
            steps,
            path
        }),
    ]
}

proptest! {
    #[test]
    fn messages_round_trip(body in bodies(), domain: u8, correction: i64, sequence: u16) {
        let message = Message { domain, correction, sequence, ..message(body) };
        prop_assert_eq!(Message::decode(&message.encode()), Ok(message.clone()));
        let mut padded = frame([2, 0, 0, 0, 0, 1], &message);
        padded.resize(padded.len().max(60), 0);
        prop_assert_eq!(message_of(&padded), Some(message));
    }

    #[test]
    fn decode_of_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), cut in 0usize..120, body in bodies()) {
        let _ = Message::decode(&bytes);
        let whole = message(body).encode();
        if cut < whole.len() {
            prop_assert!(Message::decode(&whole[..cut]).is_err());
        }
        let mut wrong = whole;
        for (at, byte) in wrong.iter_mut().zip(&bytes).skip(cut % 34).take(3) {
            *at = *byte;
        }
        let _ = Message::decode(&wrong);
    }
}
