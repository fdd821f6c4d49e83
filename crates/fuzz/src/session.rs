//! Random messages to the session of a vfio-user server.

use bytes::Bytes;
use vfio_user::{Action, EndpointInfo, Incoming, Input, MAX_PAYLOAD, Presence, Session};
use wire::vfio_user::Header;
use wire::{Duration, Instant};

/// Reads `input` as a list of operations on a session (connect, message, disconnect, reply, DMA,
/// interrupt, time) and carries them out. Panics if a promise of [`Session`] is broken.
pub fn run(input: &[u8]) {
    let (config, bars) = testkit::vfio_user::plain_function();
    let info = EndpointInfo { config, bars, doorbells: true };
    let Ok(mut session) = Session::new(info) else { return };
    let mut now = Instant::ZERO;
    let mut connected = false;
    let mut tokens = Vec::new();
    let mut rest = input;
    let mut take = |count: usize| {
        let (head, tail) = rest.split_at(count.min(rest.len()));
        rest = tail;
        head.to_vec()
    };
    while let [operation] = take(1)[..] {
        match operation & 0xf {
            0 if connected => {
                session.handle(now, Input::Disconnected);
                connected = false;
            }
            1 => tokens.iter().take(3).for_each(|token| session.reply(now, *token, Ok(&[1; 4]))),
            2 => {
                now += Duration::from_ms(u64::from(operation) * 20);
            }
            3 => {
                let at = take(4);
                let address = at.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
                let _ = session.dma_read(now, address << 8, usize::from(operation) * 17);
                let _ = session.dma_write(now, address << 8, &at);
            }
            4 => {
                session.signal(u16::from(operation >> 4));
                session.set_intx(operation & 0x10 != 0);
                session.poll_doorbells();
            }
            5 => session.set_presence(
                now,
                match operation >> 4 {
                    0..4 => Presence::Absent,
                    4..8 => Presence::ConfigOnly,
                    _ => Presence::Present,
                },
            ),
            6 => {
                for token in tokens.drain(..) {
                    let result = Err(rustix::io::Errno::IO);
                    session.reply(now, token, if operation < 0x80 { Ok(&[]) } else { result });
                }
            }
            _ if session.accepts_input() => {
                if !connected {
                    session.handle(now, Input::Connected);
                    connected = true;
                }
                let mut head = [0; Header::SIZE];
                let given = take(8);
                head[..given.len()].copy_from_slice(&given);
                // Mostly existing commands with the right size.
                head[2] &= 0x1f;
                head[3] = 0;
                head[8] = head[5] & 0x31;
                let length = usize::from(head[4]).min(MAX_PAYLOAD);
                head[4..8].copy_from_slice(&((Header::SIZE + length) as u32).to_le_bytes());
                let mut payload = take(length);
                payload.resize(length, 0);
                let Ok(header) = Header::decode(&head) else { continue };
                let message = Incoming {
                    header,
                    payload: Bytes::from(payload),
                    fds: Vec::new(),
                    refusal: None,
                };
                session.handle(now, Input::Message(message));
            }
            _ => {}
        }
        while let Some(action) = session.poll(now, true) {
            match action {
                Action::ConfigRead { token, .. }
                | Action::ConfigWrite { token, .. }
                | Action::BarRead { token, .. }
                | Action::Reset { token }
                | Action::ClientGone { token } => tokens.push(token),
                Action::BarWrite { offset, data, .. } => {
                    assert!(!data.is_empty() && offset + data.len() as u64 <= 0x4000);
                }
                _ => {}
            }
        }
        tokens.truncate(256);
        while let Some(message) = session.outgoing() {
            let header = Header::decode(&message.bytes).expect("a header of ours");
            assert_eq!(header.size as usize, message.bytes.len());
            assert_ne!(header.error, Some(0), "errno 0 reads as success");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use proptest::prelude::*;

    /// A command with a plausible payload, in the encoding of `run`.
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
            run(&input);
        }

        #[test]
        fn random_bytes_keep_the_promises(input in proptest::collection::vec(any::<u8>(), 0..600)) {
            run(&input);
        }
    }
}
