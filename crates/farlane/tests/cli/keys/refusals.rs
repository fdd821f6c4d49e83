//! What nodes with keys refuse, on both sides.

use super::Keys;
use crate::support::program::{device, fails, is_refused, is_wrong_usage};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn plain_text_and_tls_recognise_each_other() {
    let keys = Keys::new("keys-plain", &["device", "host"]);
    keys.peers("device", "host-a {host} use");
    keys.peers("host", "store {device} serve");
    let (encrypted, address) = keys.device("device", &[]);
    fails(&["ping", &address], &[&address, "the far side uses TLS", "--key"]);
    encrypted.line("the far side sent plain text instead of TLS");
    let (plain, address) = device("ram=1M", &[]);
    fails(&keys.with("host", &["ping", &address]), &[&address, "before its first byte", "--key"]);
    plain.line("the far side uses TLS");
}

#[test]
fn unknown_wrong_and_expired_keys_have_clear_errors_on_both_sides() {
    let keys = Keys::new("keys-wrong", &["device", "stranger", "late", "early", "host"]);
    keys.peers(
        "device",
        "late {late} use,probe not-after=2020-02-03\nearly {early} use not-before=2920-02-03\n\
         host {host} serve",
    );
    for name in ["stranger", "late", "early", "host"] {
        keys.peers(name, "store {device} serve");
    }
    let (device, address) = keys.device("device", &[]);
    let expired = "expired or not yet valid";
    for (name, near, far) in [
        ("stranger", "unknown there or lacks the right", "unknown key {}"),
        ("late", expired, "the key of late ({}) is not valid after 2020-02-03T00:00:00Z"),
        ("early", expired, "the key of early ({}) is not valid before 2920-02-03T00:00:00Z"),
        ("host", "unknown there or lacks the right", "({}) lacks the right use, move or probe"),
    ] {
        fails(&keys.with(name, &["ping", &address]), &[&address, near]);
        device.line(&far.replace("{}", &keys.fingerprint(name)));
    }
    let unknown = format!("unknown key {}", keys.fingerprint("device"));
    keys.peers("host", "store {stranger} serve");
    fails(&keys.with("host", &["ping", &address]), &[&address, &unknown]);
    keys.peers("host", "store {device} use");
    fails(&keys.with("host", &["ping", &address]), &["lacks the right serve"]);
}

#[test]
fn options_and_files_that_do_not_fit_are_refused() {
    let keys = Keys::new("keys-files", &["host"]);
    keys.peers("host", "");
    let with = |arguments: &[&str]| keys.with("host", arguments);
    is_refused(&with(&["ping", "raw:lo,02:00:00:00:00:01"]), &["MACsec", "docs/security.md"]);
    is_refused(&["ping", "127.0.0.1,peer=store"], &["peer= needs --key"]);
    is_wrong_usage(&with(&["ping", "127.0.0.1", "--insecure"]));
    is_wrong_usage(&["ping", "127.0.0.1", "--key", &keys.key("host")]);
    let path = keys.key("host");
    fails(&["key", "new", &path], &[&path, "exists"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fails(&with(&["ping", "127.0.0.1"]), &[&path, "mode 0644", "chmod 600"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let peers = keys.peers("host", "store SHA256:x serve");
    fails(&with(&["ping", "127.0.0.1"]), &[&format!("{peers}:1: invalid key 'SHA256:x'")]);
}
