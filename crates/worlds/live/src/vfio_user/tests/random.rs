//! Random messages, and random lists of operations, against a session.

use crate::vfio_user::testing::run_messages;
use proptest::prelude::*;

/// A command with a plausible payload, in the encoding of `run_messages`.
fn command() -> impl Strategy<Value = Vec<u8>> {
    let small = prop_oneof![Just(0_u32), Just(1), Just(4), 0..64_u32, any::<u32>()];
    let fields = proptest::collection::vec(small, 0..10);
    (1..19_u8, fields, any::<u8>()).prop_map(|(command, fields, flags)| {
        let payload: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        let mut out = vec![0xf, 1, 0, command, 0, payload.len() as u8, flags & 0x10, 0, 0];
        out.extend(payload);
        out
    })
}

fn operation() -> impl Strategy<Value = Vec<u8>> {
    let other = (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..5));
    prop_oneof![
        6 => command(),
        2 => other.prop_map(|(first, mut rest)| { rest.insert(0, first); rest }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_keep_the_promises(
        list in proptest::collection::vec(operation(), 0..60),
    ) {
        // Most commands need a negotiated version first.
        let mut input = vec![0xf, 1, 0, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        input.extend(list.concat());
        run_messages(&input);
    }

    #[test]
    fn random_bytes_keep_the_promises(input in proptest::collection::vec(any::<u8>(), 0..600)) {
        run_messages(&input);
    }
}
