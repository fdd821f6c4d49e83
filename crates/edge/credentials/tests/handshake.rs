//! Handshakes between two ends in memory: identities, refusals, and changes of traffic keys.

use farlane_credentials::{Cipher, Credentials, Fingerprint, Handshake, NodeKey, Refusal};
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A folder with the keys of a host and a device.
struct Keys {
    folder: TempDir,
}

impl Keys {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["host", "device"] {
            NodeKey::create(&folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fingerprint(&self, name: &str) -> Fingerprint {
        NodeKey::load(&self.path(name)).unwrap().fingerprint()
    }

    /// The credentials of `node` with a file of peers in which `{host}` and `{device}` are keys.
    fn node(&self, node: &str, peers: &str) -> Arc<Credentials> {
        let key = |text: &str, name| {
            text.replace(&format!("{{{name}}}"), &self.fingerprint(name).to_string())
        };
        let path = self.path(&format!("{node}.peers"));
        fs::write(&path, key(&key(peers, "host"), "device")).unwrap();
        Credentials::load(&self.path(node), &path, None).unwrap().into()
    }
}

/// Moves bytes until neither end has more; the error of the first end that fails.
fn exchange(ends: &mut [Handshake; 2]) -> Result<(), rustls::Error> {
    loop {
        let mut moved = false;
        for index in 0..2 {
            let mut bytes = Vec::new();
            while ends[index].tls.wants_write() {
                ends[index].tls.write_tls(&mut bytes).unwrap();
            }
            let (mut rest, far) = (&bytes[..], &mut ends[1 - index].tls);
            while !rest.is_empty() {
                moved = true;
                far.read_tls(&mut rest).unwrap();
                far.process_new_packets()?;
            }
        }
        if !moved {
            return Ok(());
        }
    }
}

/// Both ends after a handshake, and the first error.
fn handshake(
    host: &Arc<Credentials>,
    device: &Arc<Credentials>,
) -> ([Handshake; 2], Result<(), rustls::Error>) {
    let mut ends = [Handshake::connect(host, None).unwrap(), Handshake::accept(device).unwrap()];
    let result = exchange(&mut ends);
    (ends, result)
}

#[test]
fn ends_identify_each_other_by_name_and_fingerprint() {
    let keys = Keys::new();
    let host = keys.node("host", "store {device} serve");
    let device = keys.node("device", "host-a {host} use groups=2");
    let (ends, result) = handshake(&host, &device);
    assert_eq!(result, Ok(()));
    let [store, host_a] = ends.each_ref().map(|end| end.peer().unwrap().clone().unwrap());
    assert_eq!((&*store.name, store.fingerprint), ("store", keys.fingerprint("device")));
    assert_eq!((&*host_a.name, host_a.fingerprint), ("host-a", keys.fingerprint("host")));
    assert!(host_a.rights.attach.contain(2) && !host_a.rights.attach.contain(1));
}

#[test]
fn unknown_expired_and_rightless_keys_are_refused() {
    let keys = Keys::new();
    let host = keys.node("host", "store {device} serve");
    type Is = fn(&Refusal) -> bool;
    let cases: [(&str, Is, &str); 4] = [
        ("", |why| matches!(why, Refusal::Unknown(_)), "ApplicationVerificationFailure"),
        ("a {host} use not-after=2001-01-01", |why| matches!(why, Refusal::Expired(..)), "Expired"),
        (
            "a {host} use not-before=2999-01-01",
            |why| matches!(why, Refusal::NotYetValid(..)),
            "Expired",
        ),
        ("a {host} serve", |why| matches!(why, Refusal::NoRight(..)), "ApplicationVerification"),
    ];
    for (peers, is, text) in cases {
        let device = keys.node("device", peers);
        let (ends, result) = handshake(&host, &device);
        let error = format!("{:?}", result.unwrap_err());
        assert!(error.contains(text), "{peers}: {error}");
        let refusal = ends[1].peer().unwrap().clone().unwrap_err();
        assert!(is(&refusal), "{peers}: {refusal}");
        assert!(refusal.to_string().contains(&keys.fingerprint("host").to_string()), "{refusal}");
    }
}

#[test]
fn host_refuses_another_device() {
    let keys = Keys::new();
    let device = keys.node("device", "host-a {host} use");
    let host = keys.node("host", "store {device} use");
    let (ends, result) = handshake(&host, &device);
    assert!(result.is_err());
    assert!(matches!(ends[0].peer(), Some(Err(Refusal::NoRight(..)))));
    let host = keys.node("host", "store {device} serve");
    let mut ends = [
        Handshake::connect(&host, Some("other-store".into())).unwrap(),
        Handshake::accept(&device).unwrap(),
    ];
    assert!(exchange(&mut ends).is_err());
    assert!(matches!(ends[0].peer(), Some(Err(Refusal::AnotherPeer(..)))));
}

/// Sends `count` messages from one end to the other.
fn send(ends: &mut [Handshake; 2], from: usize, count: u32) {
    for number in 0..count {
        let message = number.to_le_bytes();
        ends[from].tls.writer().write_all(&message).unwrap();
        exchange(ends).unwrap();
        let mut received = [0; 4];
        ends[1 - from].tls.reader().read_exact(&mut received).unwrap();
        assert_eq!(received, message, "message {number} from end {from}");
    }
}

#[test]
fn traffic_keys_change_at_the_limit_in_both_directions() {
    let keys = Keys::new();
    let limited = |node, peers| {
        let path = keys.path(&format!("{node}.peers"));
        keys.node(node, peers);
        let limited = Credentials::load(&keys.path(node), &path, None).unwrap();
        Arc::new(limited.with_records_per_key(64))
    };
    let host = limited("host", "store {device} serve");
    let device = limited("device", "host-a {host} use");
    let (mut ends, result) = handshake(&host, &device);
    assert_eq!(result, Ok(()));
    send(&mut ends, 0, 1_000);
    send(&mut ends, 1, 1_000);
    for _ in 0..100 {
        send(&mut ends, 0, 7);
        send(&mut ends, 1, 7);
    }
}

#[test]
fn connecting_node_chooses_the_cipher() {
    use rustls::CipherSuite as Suite;
    let keys = Keys::new();
    let device = keys.node("device", "host-a {host} use");
    keys.node("host", "store {device} serve");
    for (cipher, suite) in [
        (None, Suite::TLS13_AES_128_GCM_SHA256),
        (Some(Cipher::Aes256Gcm), Suite::TLS13_AES_256_GCM_SHA384),
        (Some(Cipher::ChaCha20Poly1305), Suite::TLS13_CHACHA20_POLY1305_SHA256),
    ] {
        let files = (keys.path("host"), keys.path("host.peers"));
        let host = Credentials::load(&files.0, &files.1, cipher).unwrap().into();
        let (ends, result) = handshake(&host, &device);
        assert_eq!(result, Ok(()));
        assert_eq!(ends[1].tls.negotiated_cipher_suite().unwrap().suite(), suite);
    }
}

/// The certificates were made by `openssl x509 -req` and are valid until 2126.
#[test]
fn certificates_authorise_by_dns_name_of_a_listed_authority() {
    let keys = Keys::new();
    fs::write(keys.path("ca.pem"), include_str!("certificates/ca.pem")).unwrap();
    fs::write(keys.path("host"), include_str!("certificates/host.pem")).unwrap();
    fs::write(keys.path("device"), include_str!("certificates/device.pem")).unwrap();
    fs::write(keys.path("host.pem"), include_str!("certificates/host.pem")).unwrap();
    let host = keys.node("host", "store ca=ca.pem,san=device.example serve");
    let by_name = "host-a ca=ca.pem,san=host.example use";
    for (peers, accepted) in [
        (by_name, true),
        ("host-a {host} use", true),
        ("host-a ca=ca.pem,san=other.example use", false),
        ("host-a ca=host.pem,san=host.example use", false),
    ] {
        let device = keys.node("device", peers);
        let (ends, result) = handshake(&host, &device);
        assert_eq!(result.is_ok(), accepted, "{peers}: {result:?} {:?}", ends[1].peer());
    }
    // A link ends when its authority is no longer listed, although the line is the same.
    let device = keys.node("device", by_name);
    let identity = handshake(&host, &device).0[1].peer().unwrap().clone().unwrap();
    assert_eq!(device.confirm(&identity), Ok(()));
    fs::copy(keys.path("host.pem"), keys.path("ca.pem")).unwrap();
    device.reload().unwrap();
    assert!(matches!(device.confirm(&identity), Err(Refusal::Certificate(..))));
    let raw = keys.path("raw");
    NodeKey::create(&raw).unwrap();
    let path = keys.path("raw.peers");
    fs::write(&path, by_name).unwrap();
    let error = Credentials::load(&raw, &path, None).unwrap_err().to_string();
    assert!(error.contains("has no certificate"), "{error}");
    // Neither does a node take such a key while it runs.
    let earlier = device.key().fingerprint();
    fs::rename(&raw, keys.path("device")).unwrap();
    let error = device.reload_key().unwrap_err().to_string();
    assert!(error.contains("has no certificate"), "{error}");
    assert_eq!(device.key().fingerprint(), earlier);
}

#[test]
fn changed_file_is_read_again_and_a_bad_one_is_reported() {
    use farlane_credentials::{Reading, Watch};
    use std::sync::mpsc;
    let keys = Keys::new();
    let host = keys.node("host", "store {device} serve");
    let device = keys.node("device", "host-a {host} use");
    let (ends, _) = handshake(&host, &device);
    let identity = ends[1].peer().unwrap().clone().unwrap();
    let (sender, reports) = mpsc::channel();
    let watch = Watch::start(device.clone(), Arc::default(), move |report| {
        sender.send(report.map_err(|error| error.to_string())).unwrap();
    });
    let replace = |text: &str| {
        fs::write(keys.path("new"), text).unwrap();
        fs::rename(keys.path("new"), keys.path("device.peers")).unwrap();
        reports.recv_timeout(std::time::Duration::from_secs(5)).expect("the change is noticed")
    };
    let error = replace("host-a").unwrap_err();
    assert!(error.contains("device.peers:1"), "{error}");
    assert!(device.confirm(&identity).is_ok(), "the earlier peers stay");
    assert_eq!(replace("# nobody"), Ok(Reading::Peers(0)));
    assert!(device.confirm(&identity).is_err());
    drop(watch);
}
