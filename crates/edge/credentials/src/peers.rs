//! The file of peers: one line per key.

use crate::{Fingerprint, file};
use chrono::{DateTime, NaiveDate};
use node::{Groups, Rights};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a file of peers cannot be used; the texts name the file.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// The file, or a file of certificates that it names, cannot be read.
    #[error("cannot read {path}: {1}", path = .0.display())]
    Read(PathBuf, io::Error),
    /// A line is invalid. Has the line's number, from 1, and the mistake.
    #[error("{path}:{1}: {2}", path = .0.display())]
    Line(PathBuf, usize, String),
}

/// Why a peer is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No line has this key.
    #[error("unknown key {0}")]
    Unknown(Fingerprint),
    /// The validity of the key of this name has not begun. Has the time in seconds since 1970.
    #[error("the key of {0} ({1}) is not valid before {time}", time = utc(*.2))]
    NotYetValid(Arc<str>, Fingerprint, i64),
    /// The validity of the key of this name has ended. Has the time in seconds since 1970.
    #[error("the key of {0} ({1}) is not valid after {time}", time = utc(*.2))]
    Expired(Arc<str>, Fingerprint, i64),
    /// The key of this name lacks every right that the connection needs.
    #[error("the key of {0} ({1}) lacks the right {2}")]
    NoRight(Arc<str>, Fingerprint, &'static str),
    /// The far side has the key of this name instead of the expected one.
    #[error("the far side has the key of {0} ({1}), expected the key of {2}")]
    AnotherPeer(Arc<str>, Fingerprint, Arc<str>),
    /// The certificate is invalid, or comes from no listed authority. Has the fingerprint of its
    /// key.
    #[error("invalid certificate with key {0}: {1}")]
    Certificate(Fingerprint, String),
}

/// A peer that has proved that it owns a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name in the file of peers. Keys with the same name belong to the same peer.
    pub name: Arc<str>,
    /// The fingerprint of the peer's public key.
    pub fingerprint: Fingerprint,
    /// What the key may do at a device node or a switch node.
    pub rights: Rights,
    /// Whether the key may be the far side of a connection that this node opens.
    pub serves: bool,
    /// Whether the key may read the state of this node.
    pub status: bool,
    /// The line, by what it requires of the peer.
    key: Key,
    /// The certificate that a line with an authority requires.
    pub(crate) chain: Option<Arc<Chain>>,
}

/// A certificate, its intermediates, and the use that it must allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub certificates: Vec<CertificateDer<'static>>,
    pub is_client: bool,
}

impl Chain {
    /// The use that the certificate must allow.
    pub(crate) fn usage(&self) -> webpki::KeyUsage {
        match self.is_client {
            true => webpki::KeyUsage::client_auth(),
            false => webpki::KeyUsage::server_auth(),
        }
    }
}

impl Identity {
    /// Keeps the certificate if the line requires one.
    pub(crate) fn with_chain(mut self, chain: Option<Arc<Chain>>) -> Self {
        self.chain = chain.filter(|_| matches!(self.key, Key::Certificate { .. }));
        self
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.fingerprint)
    }
}

/// What a line requires of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// The public key with this fingerprint.
    Fingerprint(Fingerprint),
    /// A certificate for this DNS name (subject alternative name) from the authority in this file.
    Certificate { name: String, authority: PathBuf },
}

#[derive(Debug)]
struct Line {
    name: Arc<str>,
    key: Key,
    /// The authority of a certificate.
    roots: RootCertStore,
    rights: Rights,
    serves: bool,
    status: bool,
    /// Seconds since 1970.
    not_before: i64,
    /// Seconds since 1970.
    not_after: i64,
}

/// The keys that a node accepts.
#[derive(Debug, Default)]
pub struct Peers {
    lines: Vec<Line>,
}

/// Intermediate certificates that a peer may present; webpki tries their orders.
pub(crate) const MAX_INTERMEDIATES: usize = 4;

/// The public key or certificate that a peer presents.
pub(crate) struct Presented<'a> {
    pub fingerprint: Fingerprint,
    /// The certificate with its intermediates, and the use that it must allow.
    pub certificate:
        Option<(webpki::EndEntityCert<'a>, &'a [CertificateDer<'a>], webpki::KeyUsage)>,
}

impl Peers {
    /// Reads a file of peers. Names of certificate files are relative to its folder.
    ///
    /// # Errors
    /// If a file cannot be read, or a line is invalid.
    pub fn load(path: &Path) -> Result<Self, PeersError> {
        let failed = |error| PeersError::Read(path.into(), error);
        let (opened, _) = file::open(path).map_err(failed)?;
        let text = String::from_utf8(file::contents(&opened).map_err(failed)?);
        let text = text.map_err(|_| failed(io::Error::other("not UTF-8")))?;
        Self::parse(&text, path)
    }

    /// Parses the `text` of the file `path`.
    fn parse(text: &str, path: &Path) -> Result<Self, PeersError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let (mut lines, mut keys) = (Vec::new(), HashSet::new());
        for (index, text) in text.lines().enumerate() {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let mistake = |what| PeersError::Line(path.into(), index + 1, what);
            let mut line = Line::parse(text, folder).map_err(mistake)?;
            if !keys.insert(line.key.clone()) {
                return Err(mistake("an earlier line has the same key".into()));
            }
            if let Key::Certificate { authority, .. } = &line.key {
                line.roots =
                    roots(authority).map_err(|error| PeersError::Read(authority.clone(), error))?;
            }
            lines.push(line);
        }
        Ok(Self { lines })
    }

    /// One peer with all rights, in no file.
    pub fn only(name: &str, fingerprint: Fingerprint) -> Self {
        let text = format!("{name} {fingerprint} use,move,probe,status,serve");
        let line = Line::parse(&text, Path::new("")).expect("a valid line");
        Self { lines: vec![line] }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no key is accepted.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The files of the authorities that lines name with `ca=`.
    pub(crate) fn authorities(&self) -> impl Iterator<Item = &Path> {
        self.lines.iter().filter_map(|line| match &line.key {
            Key::Certificate { authority, .. } => Some(&**authority),
            Key::Fingerprint(_) => None,
        })
    }

    /// Whether a line requires a certificate.
    pub(crate) fn need_certificates(&self) -> bool {
        self.authorities().next().is_some()
    }

    /// The identity of a peer that presents a key or certificate, at `now` in seconds since 1970.
    pub(crate) fn identify(&self, peer: &Presented<'_>, now: i64) -> Result<Identity, Refusal> {
        let mut refusal = Refusal::Unknown(peer.fingerprint);
        for line in &self.lines {
            match line.matches(peer, now) {
                Ok(true) => return line.identity(peer.fingerprint, now),
                Ok(false) => {}
                Err(why) => refusal = Refusal::Certificate(peer.fingerprint, why),
            }
        }
        Err(refusal)
    }

    /// Whether the file still gives `identity` the same rights, at `now` in seconds since 1970.
    ///
    /// # Errors
    /// Why not.
    pub fn confirm(&self, identity: &Identity, now: i64) -> Result<(), Refusal> {
        let line = self.lines.iter().find(|line| line.key == identity.key);
        let unknown = || Refusal::Unknown(identity.fingerprint);
        let line = line.ok_or_else(unknown)?;
        let present = line.identity(identity.fingerprint, now)?;
        if let Some(chain) = &identity.chain {
            let bad = |why: String| Refusal::Certificate(identity.fingerprint, why);
            let certificate = webpki::EndEntityCert::try_from(&chain.certificates[0]);
            let certificate = certificate.map_err(|why| bad(why.to_string()))?;
            let certificate = Some((certificate, &chain.certificates[1..], chain.usage()));
            let peer = Presented { fingerprint: identity.fingerprint, certificate };
            line.matches(&peer, now).map_err(bad)?;
        }
        let same = (&present.name, &present.rights, present.serves, present.status)
            == (&identity.name, &identity.rights, identity.serves, identity.status);
        if same { Ok(()) } else { Err(unknown()) }
    }
}

/// The Host Identifier that a drive has for the host of this name in the file of peers: the first
/// 16 bytes of SHA-256 of the name. Keys with the same name are the same host.
pub fn host_identifier(name: &str) -> [u8; 16] {
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    *digest.as_ref().first_chunk().expect("it has 32 bytes")
}

impl Line {
    /// Parses `NAME KEY RIGHTS [groups=LIST] [controllers=LIST] [not-before=TIME] [not-after=TIME]`.
    fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut next = |what: &str| words.next().ok_or_else(|| format!("expected {what}"));
        let name = next("NAME KEY RIGHTS [OPTION=VALUE ...]")?;
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._@".contains(&byte);
        if name.len() > 64 || !name.bytes().all(letter) {
            return Err(format!(
                "invalid name '{name}': expected up to 64 letters, digits and characters of -._@"
            ));
        }
        let key = next("a key after the name: SHA256:... or ca=FILE,san=NAME")?;
        let key = parse_key(key, folder)?;
        let (mut rights, mut serves, mut status) = (Rights::default(), false, false);
        for right in next("rights after the key: use, move, probe, status or serve")?.split(',') {
            match right {
                "use" => rights.attach = Groups::Any,
                "move" => rights.move_device = true,
                "probe" => rights.probe = true,
                "status" => status = true,
                "serve" => serves = true,
                _ => {
                    return Err(format!(
                        "invalid right '{right}': expected use, move, probe, status or \
                         serve"
                    ));
                }
            }
        }
        let (mut not_before, mut not_after) = (i64::MIN, i64::MAX);
        for option in words {
            match option.split_once('=') {
                Some(("not-before", time)) => not_before = parse_time(time)?,
                Some(("not-after", time)) => not_after = parse_time(time)?,
                Some(("groups", list)) if rights.attach != Groups::None => {
                    rights.attach = Groups::Listed(parse_list("group", 0, list)?);
                }
                Some(("controllers", list)) if rights.attach != Groups::None => {
                    rights.controllers = Some(parse_list("controller", 1, list)?);
                }
                Some((option @ ("groups" | "controllers"), _)) => {
                    return Err(format!("'{option}' applies only to the right use"));
                }
                _ => {
                    return Err(format!(
                        "unknown option '{option}': expected groups=, controllers=, not-before= \
                         or not-after="
                    ));
                }
            }
        }
        let roots = RootCertStore::empty();
        Ok(Self { name: name.into(), key, roots, rights, serves, status, not_before, not_after })
    }

    /// Whether the line describes `peer`. Fails with the reason if the certificate has the name
    /// but is invalid.
    fn matches(&self, peer: &Presented<'_>, now: i64) -> Result<bool, String> {
        match (&self.key, &peer.certificate) {
            (Key::Fingerprint(own), _) => Ok(*own == peer.fingerprint),
            (Key::Certificate { name, .. }, Some((certificate, intermediates, usage))) => {
                // Names are compared literally: a wildcard certificate stands for no peer.
                let is_name = |found: &str| found.eq_ignore_ascii_case(name);
                if !certificate.valid_dns_names().any(is_name) {
                    return Ok(false);
                }
                let now = std::time::Duration::from_secs(now.max(0) as u64);
                let time = rustls::pki_types::UnixTime::since_unix_epoch(now);
                let algorithms =
                    rustls::crypto::ring::default_provider().signature_verification_algorithms.all;
                let roots = &self.roots.roots;
                let verified = certificate.verify_for_usage(
                    algorithms,
                    roots,
                    intermediates,
                    time,
                    *usage,
                    None,
                    None,
                );
                verified.map(|_| true).map_err(|why| format!("{why} ({name})"))
            }
            (Key::Certificate { .. }, None) => Ok(false),
        }
    }

    /// The identity of a peer with this key, if the line is valid at `now`.
    fn identity(&self, fingerprint: Fingerprint, now: i64) -> Result<Identity, Refusal> {
        let Self { name, key, not_before, not_after, .. } = self;
        if now < *not_before {
            return Err(Refusal::NotYetValid(name.clone(), fingerprint, *not_before));
        }
        if now >= *not_after {
            return Err(Refusal::Expired(name.clone(), fingerprint, *not_after));
        }
        Ok(Identity {
            name: name.clone(),
            fingerprint,
            rights: self.rights.clone(),
            serves: self.serves,
            status: self.status,
            key: key.clone(),
            chain: None,
        })
    }
}

/// Parses a fingerprint, or `ca=FILE,san=NAME`.
fn parse_key(text: &str, folder: &Path) -> Result<Key, String> {
    let Some(rest) = text.strip_prefix("ca=") else {
        return text.parse().map(Key::Fingerprint);
    };
    let (file, name) = rest.rsplit_once(",san=").unwrap_or((rest, ""));
    if file.is_empty() || ServerName::try_from(name).is_err() {
        return Err(format!("invalid key '{text}': expected ca=FILE,san=NAME with a DNS name"));
    }
    Ok(Key::Certificate { name: name.into(), authority: folder.join(file) })
}

/// The certificates of a file in PEM form, at least one.
fn roots(path: &Path) -> io::Result<RootCertStore> {
    let text = file::contents(&file::open(path)?.0)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| io::Error::other(error.to_string()))?;
        roots.add(certificate).map_err(io::Error::other)?;
    }
    match roots.is_empty() {
        true => Err(io::Error::other("no certificate in PEM form found")),
        false => Ok(roots),
    }
}

fn parse_list(what: &str, least: u16, text: &str) -> Result<Vec<u16>, String> {
    let number = |text: &str| {
        let number = text.parse().ok().filter(|number| *number >= least);
        number.ok_or_else(|| format!("invalid {what} '{text}': expected {least} to 65535"))
    };
    text.split(',').map(number).collect()
}

/// Seconds since 1970, of a date (its start in UTC) or a time by RFC 3339.
fn parse_time(text: &str) -> Result<i64, String> {
    if let Ok(date) = text.parse::<NaiveDate>() {
        return Ok(date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp());
    }
    DateTime::parse_from_rfc3339(text).map(|time| time.timestamp()).map_err(|_| {
        format!("invalid time '{text}': expected 2027-01-31 or 2027-01-31T12:00:00Z (UTC)")
    })
}

/// A time in seconds since 1970 by RFC 3339.
fn utc(seconds: i64) -> String {
    let time = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "SHA256:oekVYFTgT6yJmunydRMs3Ael28TqLCrTof/G4NJTaB8";
    const OTHER: &str = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    fn parse(text: &str) -> Result<Peers, String> {
        Peers::parse(text, Path::new("peers")).map_err(|error| error.to_string())
    }

    fn presented(key: &str) -> Presented<'static> {
        Presented { fingerprint: key.parse().unwrap(), certificate: None }
    }

    #[test]
    fn line_gives_name_rights_and_groups() {
        let text =
            format!("# two hosts\n\nhost-a {KEY} use,probe groups=1,7\nops {OTHER} move # x");
        let peers = parse(&text).unwrap();
        let host = peers.identify(&presented(KEY), 0).unwrap();
        assert_eq!((&*host.name, host.fingerprint.to_string()), ("host-a", KEY.into()));
        assert!(host.rights.probe && !host.rights.move_device && !host.serves);
        let allowed = [0, 1, 2, 7].map(|group| host.rights.attach.contain(group));
        assert_eq!(allowed, [false, true, false, true]);
        let ops = peers.identify(&presented(OTHER), 0).unwrap();
        assert!(ops.rights.move_device && !ops.rights.attach.contain(0));
        let stranger = Fingerprint::new(b"another");
        let peer = Presented { fingerprint: stranger, certificate: None };
        assert_eq!(peers.identify(&peer, 0), Err(Refusal::Unknown(stranger)));
    }

    #[test]
    fn key_is_valid_from_not_before_until_not_after() {
        let text = format!("a {KEY} use not-before=1970-01-02 not-after=1970-01-03T00:00:10Z");
        let peers = parse(&text).unwrap();
        let day = 24 * 3600;
        let at = |now| peers.identify(&presented(KEY), now);
        assert!(matches!(at(day - 1), Err(Refusal::NotYetValid(_, _, at)) if at == day));
        assert!(at(day).is_ok() && at(2 * day + 9).is_ok());
        let expired = at(2 * day + 10).unwrap_err();
        assert!(expired.to_string().ends_with("not valid after 1970-01-03T00:00:10Z"), "{expired}");
        let identity = at(day).unwrap();
        assert_eq!(peers.confirm(&identity, 2 * day), Ok(()));
        assert_eq!(peers.confirm(&identity, 2 * day + 10), Err(expired));
    }

    #[test]
    fn removed_key_and_changed_rights_are_not_confirmed() {
        let before = parse(&format!("a {KEY} use,move")).unwrap();
        let identity = before.identify(&presented(KEY), 0).unwrap();
        for (text, kept) in [
            (format!("b {OTHER} probe\na {KEY} use,move"), true),
            (format!("a {KEY} use"), false),
            (format!("b {KEY} use,move"), false),
            (format!("a {OTHER} use,move"), false),
            (String::new(), false),
        ] {
            assert_eq!(parse(&text).unwrap().confirm(&identity, 0).is_ok(), kept, "{text}");
        }
    }

    #[test]
    fn mistakes_name_file_line_and_word() {
        for (text, words) in [
            ("a", "peers:1: expected a key"),
            ("\na SHA256:x use", "peers:2: invalid key 'SHA256:x'"),
            (&format!("a {KEY}"), "expected rights"),
            (&format!("a {KEY} use,mvoe"), "invalid right 'mvoe'"),
            (&format!("a/b {KEY} use"), "invalid name 'a/b'"),
            (&format!("a {KEY} probe groups=1"), "'groups' applies only"),
            (&format!("a {KEY} use groups=x"), "invalid group 'x'"),
            (&format!("a {KEY} use controllers=0"), "invalid controller '0': expected 1 to 65535"),
            (&format!("a {KEY} use until=1"), "unknown option 'until=1'"),
            (&format!("a {KEY} use not-after=soon"), "invalid time 'soon'"),
            (&format!("a {KEY} use\nb {KEY} use"), "peers:2: an earlier line has the same key"),
            ("a ca=x.pem use", "expected ca=FILE,san=NAME"),
            ("a ca=none.pem,san=a.example use", "cannot read none.pem"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
