//! The TLS handshake of a listening node with a hostile peer.

use credentials::{Credentials, Handshake, NodeKey, Peers};
use std::sync::{Arc, LazyLock};
use testkit::Source;

/// Credentials with which two ends accept each other.
static CREDENTIALS: LazyLock<Arc<Credentials>> = LazyLock::new(|| {
    let key = NodeKey::generate().expect("random numbers");
    let peers = Peers::only("peer", key.fingerprint());
    Credentials::new(key, peers, None).into()
});

/// The most bytes that a node sends before the peer has proved its identity: its own first flight.
const MOST_SENT: usize = 4096;

/// What waits to be sent.
fn sent(end: &mut Handshake) -> Vec<u8> {
    let mut bytes = Vec::new();
    while end.tls.wants_write() {
        end.tls.write_tls(&mut bytes).expect("memory takes all bytes");
    }
    bytes
}

/// Passes `bytes` to a listening end until it fails; returns what it sends.
fn receive(end: &mut Handshake, mut bytes: &[u8]) -> Result<Vec<u8>, rustls::Error> {
    while !bytes.is_empty() {
        // The buffer of an unfinished message is full: the node closes the connection.
        let Ok(1..) = end.tls.read_tls(&mut bytes) else { break };
        end.tls.process_new_packets()?;
    }
    Ok(sent(end))
}

/// Feeds a listening end with arbitrary bytes, or with the messages of a valid client in which the
/// input changes bytes. The end must neither panic nor send much, and it must accept only unchanged
/// messages.
pub fn run(bytes: &[u8]) {
    let mut source = Source(bytes);
    let mut node = Handshake::accept(&CREDENTIALS).expect("a valid key");
    if source.byte() % 2 == 0 {
        let answer = receive(&mut node, &source.take(bytes.len()));
        assert!(answer.map_or(0, |answer| answer.len()) <= MOST_SENT);
        assert!(node.tls.is_handshaking(), "nobody proved a key");
        return;
    }
    let mut client = Handshake::connect(&CREDENTIALS, None).expect("a valid key");
    for _ in 0..3 {
        let (mut flight, mut changed) = (sent(&mut client), false);
        for _ in 0..source.byte() % 4 {
            let (at, change) = (usize::from(source.byte()) << 3, source.byte());
            if let Some(byte) = flight.get_mut(at) {
                *byte ^= change;
                changed |= change != 0;
            }
        }
        let Ok(answer) = receive(&mut node, &flight) else { return };
        assert!(answer.len() <= MOST_SENT);
        let mut rest = &answer[..];
        while !rest.is_empty() {
            client.tls.read_tls(&mut rest).expect("room");
            if client.tls.process_new_packets().is_err() {
                assert!(changed, "the client refuses an unchanged handshake");
                return;
            }
        }
        if changed {
            // A change of a byte that TLS ignores is found at the latest by the Finished message.
            return;
        }
    }
    assert!(!node.tls.is_handshaking() && node.peer().is_some_and(Result::is_ok));
}
