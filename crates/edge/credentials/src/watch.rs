//! The present peers of a node, read again when their file changes.

use crate::tls::provider;
use crate::{Cipher, Identity, NodeKey, Peers, PeersError, Refusal};
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
    key: NodeKey,
    /// The file of peers, if they come from a file.
    path: Option<PathBuf>,
    peers: RwLock<Arc<Peers>>,
    provider: Arc<CryptoProvider>,
    checks: AtomicU64,
}

impl Credentials {
    /// Reads the file of peers of a node with the key `key`. A node with `cipher` connects only
    /// with this cipher.
    ///
    /// # Errors
    /// As [`Peers::load`], and if a line requires a certificate that `key` does not have.
    pub fn load(key: NodeKey, path: &Path, cipher: Option<Cipher>) -> Result<Self, PeersError> {
        let peers = load(&key, path)?;
        Ok(Self { path: Some(path.into()), ..Self::new(key, peers, cipher) })
    }

    /// The credentials of a node whose peers never change.
    pub fn new(key: NodeKey, peers: Peers, cipher: Option<Cipher>) -> Self {
        let (peers, checks) = (RwLock::new(peers.into()), AtomicU64::new(0));
        Self { key, path: None, peers, provider: provider(cipher, None).into(), checks }
    }

    /// Changes the traffic keys of connections after `records` records. Without this, rustls changes
    /// the keys of AES-GCM after 2^24 records, and never those of ChaCha20-Poly1305.
    #[must_use]
    pub fn with_records_per_key(mut self, records: u64) -> Self {
        self.provider = provider(None, Some(records)).into();
        self
    }

    /// The key of this node.
    pub fn key(&self) -> &NodeKey {
        &self.key
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
        let peers = load(&self.key, path)?;
        *self.peers.write().unwrap_or_else(PoisonError::into_inner) = peers.into();
        Ok(())
    }

    /// The files that [`reload`](Self::reload) reads: the file of peers, and those of authorities
    /// that it names at present.
    pub fn files(&self) -> Vec<PathBuf> {
        let peers = self.peers();
        self.path.iter().cloned().chain(peers.authorities().map(Path::to_owned)).collect()
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
    if peers.need_certificates() && !key.has_certificate {
        let why = "a line has ca=, but the key file of this node has no certificate";
        return Err(PeersError::Read(path.into(), std::io::Error::other(why)));
    }
    Ok(peers)
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// A thread that reads the file of peers again within a second of each change. It ends when this
/// value is dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the file of `credentials`, and reads it also when `requested` is set. Passes the
    /// result of each reading to `report`: the number of keys, or the error.
    pub fn start(
        credentials: Arc<Credentials>,
        requested: Arc<AtomicBool>,
        report: impl Fn(Result<usize, PeersError>) + Send + 'static,
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
                if requested.swap(false, Ordering::AcqRel) || changed {
                    read = version;
                    report(credentials.reload().map(|()| credentials.peers().len()));
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
