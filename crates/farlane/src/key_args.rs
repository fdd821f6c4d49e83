//! `--key`, `--peers` and `--cipher`: the key of a node and the keys that it accepts.

use crate::output::{note, warning};
use clap::{Args, ValueEnum};
use credentials::{Cipher, Credentials, NodeKey, Peers, Reading, Watch};
use live::Stop;
use live::net::Protection;
use report::{Failure, Outcome};
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of authentication and encryption.
#[derive(Args, Clone, Debug)]
pub struct KeyArgs {
    /// Private key of this node, made by `farlane key new`: links use TLS 1.3. docs/security.md
    /// describes keys
    #[arg(long, value_name = "FILE", requires = "peers")]
    key: Option<PathBuf>,
    /// Keys that this node accepts, one per line: NAME KEY RIGHTS [OPTION=VALUE ...]
    #[arg(long, value_name = "FILE", requires = "key")]
    peers: Option<PathBuf>,
    /// Encryption of the links that this node opens. By default AES-GCM with 128-bit keys
    #[arg(long, value_name = "CIPHER", requires = "key")]
    cipher: Option<CipherOption>,
    /// Allow addresses other than loopback: links are neither authenticated nor encrypted
    #[arg(long, conflicts_with = "key")]
    pub insecure: bool,
}

/// The value of `--cipher`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum CipherOption {
    /// AES-GCM with 128-bit keys
    Aes128Gcm,
    /// AES-GCM with 256-bit keys
    Aes256Gcm,
    /// For processors without instructions for AES
    Chacha20Poly1305,
}

impl From<CipherOption> for Cipher {
    fn from(option: CipherOption) -> Self {
        match option {
            CipherOption::Aes128Gcm => Self::Aes128Gcm,
            CipherOption::Aes256Gcm => Self::Aes256Gcm,
            CipherOption::Chacha20Poly1305 => Self::ChaCha20Poly1305,
        }
    }
}

impl KeyArgs {
    /// How the links are protected.
    pub fn protection(&self) -> Protection {
        match (&self.key, self.insecure) {
            (Some(_), _) => Protection::Keys,
            (None, true) => Protection::Insecure,
            (None, false) => Protection::Loopback,
        }
    }

    /// The key and the peers; `None` without `--key`. Fails as [`Credentials::load`].
    pub fn credentials(&self) -> Result<Option<Arc<Credentials>>, Failure> {
        let (Some(key), Some(peers)) = (&self.key, &self.peers) else { return Ok(None) };
        let credentials = Credentials::load(key, peers, self.cipher.map(Cipher::from));
        Ok(Some(credentials.map_err(failure)?.into()))
    }
}

impl KeyArgs {
    /// Checks the key and the peers as [`credentials`](Self::credentials) does, each on its own.
    pub fn checks(&self) -> Vec<Outcome> {
        let key = self.key.iter().map(|file| NodeKey::load(file).map(drop).map_err(failure));
        let peers = self.peers.iter().map(|file| Peers::load(file).map(drop).map_err(failure));
        let checks: Vec<_> = key.chain(peers).collect();
        // Both together: lines of peers can require a certificate of the key.
        match checks.iter().all(Result::is_ok) {
            true => vec![self.credentials().map(drop)],
            false => checks,
        }
    }
}

fn failure(error: impl Display) -> Failure {
    Failure(error.to_string())
}

/// Reads the file of peers again after its changes, and it and the key after SIGHUP, until the
/// returned value is dropped.
pub fn follow(credentials: Option<&Arc<Credentials>>, stop: &Stop) -> Option<Watch> {
    let credentials = credentials?;
    let report = |read| match read {
        Ok(Reading::Peers(count)) => {
            note(format_args!("read the file of peers again; keys: {count}"))
        }
        Ok(Reading::Key(key)) => {
            note(format_args!("further connections use this node's new key {key}"))
        }
        Err(error) => warning(format_args!("{error}; the earlier keys stay valid")),
    };
    Some(Watch::start(credentials.clone(), stop.reload.clone(), report))
}
