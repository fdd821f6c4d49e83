//! The present key and peers of a node, read again when their files change.

use crate::tls::provider;
use crate::{Cipher, Fingerprint, Identity, KeyError, NodeKey, Peers, PeersError, Refusal};
use rustls::crypto::CryptoProvider;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

/// How often the file of peers and the validity of keys are checked.
const INTERVAL: Duration = Duration::from_millis(300);

/// The key of a node, and its peers.
#[derive(Debug)]
pub struct Credentials {
    /// The key file, if the key comes from a file.
    key_path: Option<PathBuf>,
    key: RwLock<NodeKey>,
    /// The file of peers, if they come from a file.
    path: Option<PathBuf>,
    peers: RwLock<Arc<Peers>>,
    provider: Arc<CryptoProvider>,
    checks: AtomicU64,
}

impl Credentials {
    /// Reads the key of a node and its file of peers. A node with `cipher` connects only with this
    /// cipher.
    ///
    /// # Errors
    /// As [`NodeKey::load`] and [`Peers::load`], and if a line requires a certificate that the key
    /// does not have.
    pub fn load(key: &Path, path: &Path, cipher: Option<Cipher>) -> Result<Self, LoadError> {
        let own = NodeKey::load(key)?;
        let peers = load(&own, path)?;
        let files = (Some(key.into()), Some(path.into()));
        Ok(Self { key_path: files.0, path: files.1, ..Self::new(own, peers, cipher) })
    }

    /// The credentials of a node whose peers never change.
    pub fn new(key: NodeKey, peers: Peers, cipher: Option<Cipher>) -> Self {
        let (peers, checks) = (RwLock::new(peers.into()), AtomicU64::new(0));
        let (provider, key) = (provider(cipher, None).into(), RwLock::new(key));
        Self { key_path: None, key, path: None, peers, provider, checks }
    }

    /// Changes the traffic keys of connections after `records` records. Without this, rustls changes
    /// the keys of AES-GCM after 2^24 records, and never those of ChaCha20-Poly1305.
    #[must_use]
    pub fn with_records_per_key(mut self, records: u64) -> Self {
        self.provider = provider(None, Some(records)).into();
        self
    }

    /// The key of this node as last read.
    pub fn key(&self) -> NodeKey {
        self.key.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn provider(&self) -> &Arc<CryptoProvider> {
        &self.provider
    }

    /// The peers as last read.
    pub fn peers(&self) -> Arc<Peers> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of checks so far. After each, [`confirm`](Self::confirm) may return another result.
    pub fn checks(&self) -> u64 {
        self.checks.load(Ordering::Acquire)
    }

    /// Whether `identity` still has its rights.
    ///
    /// # Errors
    /// Why not.
    pub fn confirm(&self, identity: &Identity) -> Result<(), Refusal> {
        self.peers().confirm(identity, now())
    }

    /// Reads the file of peers again. After an error the earlier peers stay.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn reload(&self) -> Result<(), PeersError> {
        let Some(path) = &self.path else { return Ok(()) };
        let peers = load(&self.key(), path)?;
        *self.peers.write().unwrap_or_else(PoisonError::into_inner) = peers.into();
        Ok(())
    }

    /// Reads the key of this node again, for further connections. After an error the earlier key
    /// stays. Returns whether it changed.
    ///
    /// # Errors
    /// As [`NodeKey::load`], and if the new one lacks the certificate that a peer requires.
    pub fn reload_key(&self) -> Result<bool, LoadError> {
        let Some(path) = &self.key_path else { return Ok(false) };
        let key = NodeKey::load(path)?;
        if self.peers().need_certificates() {
            has_certificate(&key, path)?;
        }
        let changed = key.fingerprint() != self.key().fingerprint();
        *self.key.write().unwrap_or_else(PoisonError::into_inner) = key;
        Ok(changed)
    }

    /// The files that are read again: the key, the file of peers, and those of authorities that it
    /// names at present.
    pub fn files(&self) -> Vec<PathBuf> {
        let (peers, own) = (self.peers(), [&self.key_path, &self.path]);
        let own = own.into_iter().flatten().cloned();
        own.chain(peers.authorities().map(Path::to_owned)).collect()
    }

    /// Device, inode, size and change time of the file; `None` without a file.
    fn version(&self) -> Option<(u64, u64, u64, i64, i64)> {
        let status = std::fs::metadata(self.path.as_ref()?).ok()?;
        let (seconds, nanoseconds) = (status.ctime(), status.ctime_nsec());
        Some((status.dev(), status.ino(), status.len(), seconds, nanoseconds))
    }
}

fn load(key: &NodeKey, path: &Path) -> Result<Peers, PeersError> {
    let peers = Peers::load(path)?;
    if peers.need_certificates() {
        has_certificate(key, path)?;
    }
    Ok(peers)
}

/// Fails, with the file `path`, unless the key has a certificate.
fn has_certificate(key: &NodeKey, path: &Path) -> Result<(), PeersError> {
    let why = "a line has ca=, but the key file of this node has no certificate";
    let missing = || PeersError::Read(path.into(), std::io::Error::other(why));
    key.has_certificate.then_some(()).ok_or_else(missing)
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Why a key or a file of peers cannot be used; the texts name the file.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The file of peers.
    #[error(transparent)]
    Peers(#[from] PeersError),
}

/// What a [`Watch`] has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Another key of this node.
    Key(Fingerprint),
    /// The file of peers, which has this number of keys.
    Peers(usize),
}

/// A thread that reads the file of peers again within a second of each change. It ends when this
/// value is dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the file of peers of `credentials`; reads it and the node's key also when `requested`
    /// is set. Passes the result of each reading to `report`.
    pub fn start(
        credentials: Arc<Credentials>,
        requested: Arc<AtomicBool>,
        report: impl Fn(Result<Reading, LoadError>) + Send + 'static,
    ) -> Self {
        let (stop, stopped) = mpsc::channel();
        let mut read = credentials.version();
        let mut last = read;
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let version = credentials.version();
                // A file that is still being written changes between two checks.
                let changed = version != read && version == last;
                last = version;
                let requested = requested.swap(false, Ordering::AcqRel);
                if requested {
                    match credentials.reload_key() {
                        Ok(false) => {}
                        Ok(true) => report(Ok(Reading::Key(credentials.key().fingerprint()))),
                        Err(error) => report(Err(error)),
                    }
                }
                if requested || changed {
                    read = version;
                    let peers = credentials.reload().map_err(LoadError::from);
                    report(peers.map(|()| Reading::Peers(credentials.peers().len())));
                }
                credentials.checks.fetch_add(1, Ordering::Release);
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
