//! Private keys of nodes and their files.

use crate::{Fingerprint, file};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a key file cannot be used; the texts name the file.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read key file {path}: {1}", path = .0.display())]
    Read(PathBuf, io::Error),
    /// The file cannot be created.
    #[error("cannot create key file {path}: {1}", path = .0.display())]
    Create(PathBuf, io::Error),
    /// Other users can read the file. Has the permission bits.
    #[error(
        "key file {path} has mode {1:04o}, so other users can read it; run `chmod 600 {path}` and \
         consider the key stolen",
        path = .0.display()
    )]
    Readable(PathBuf, u32),
    /// The file has no private key.
    #[error(
        "{path}: no private key in PEM form (PKCS#8) found; `farlane key new FILE` makes one",
        path = .0.display()
    )]
    NoKey(PathBuf),
    /// The private key has an unknown type, or does not belong to the first certificate.
    #[error("{path}: {1}", path = .0.display())]
    Invalid(PathBuf, rustls::Error),
}

/// What precedes the 32 bytes of an Ed25519 private key in PKCS#8 (RFC 8410, section 7). OpenSSL
/// reads this version, 1, but not version 2, which ring would write.
const ED25519: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The private key of a node, with certificates if its file has some.
#[derive(Clone, Debug)]
pub struct NodeKey {
    certified: Arc<CertifiedKey>,
    /// Whether the node proves its identity with a certificate instead of a raw public key.
    pub(crate) has_certificate: bool,
    fingerprint: Fingerprint,
}

impl NodeKey {
    /// Creates a file with a new Ed25519 key that only its owner can read.
    ///
    /// # Errors
    /// If the file exists, or cannot be written.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let failed = |error| KeyError::Create(path.into(), error);
        let text = new_pem().map_err(failed)?;
        let options = OpenOptions::new().write(true).create_new(true).mode(0o600).clone();
        let mut file = options.open(path).map_err(failed)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if let Err(error) = written {
            let _ = fs::remove_file(path);
            return Err(failed(error));
        }
        Self::load(path)
    }

    /// Reads a file in PEM form: a private key (PKCS#8, also SEC 1 and PKCS#1), and optionally the
    /// certificate chain of this key, the node's own certificate first.
    ///
    /// # Errors
    /// If the file cannot be read, others can read it, or its contents are not a usable key.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        Self::parse(&read_private(path)?, path)
    }

    /// A new Ed25519 key that is in no file.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let path = Path::new("memory");
        let text = new_pem().map_err(|error| KeyError::Create(path.into(), error))?;
        Self::parse(text.as_bytes(), path)
    }

    /// Parses the `text` of the file `path`.
    fn parse(text: &[u8], path: &Path) -> Result<Self, KeyError> {
        let key = PrivateKeyDer::from_pem_slice(text);
        let key = key.map_err(|_| KeyError::NoKey(path.into()))?;
        let invalid = |error| KeyError::Invalid(path.into(), error);
        let key = any_supported_type(&key).map_err(invalid)?;
        let public = key.public_key().expect("keys of ring have a public key").into_owned();
        let fingerprint = Fingerprint::new(&public);
        let mut chain = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(text) {
            let bad = |_| invalid(rustls::CertificateError::BadEncoding.into());
            chain.push(certificate.map_err(bad)?);
        }
        let has_certificate = !chain.is_empty();
        if !has_certificate {
            // RFC 7250, section 3: the public key takes the place of the certificate.
            chain.push(CertificateDer::from(public.to_vec()));
        }
        let certified = CertifiedKey::new(chain, key);
        if has_certificate {
            certified.keys_match().map_err(invalid)?;
        }
        Ok(Self { certified: certified.into(), has_certificate, fingerprint })
    }

    /// The key and the chain that the node presents.
    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.clone()
    }

    /// The fingerprint of the public key.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// The contents of a file that only its owner can read.
fn read_private(path: &Path) -> Result<Vec<u8>, KeyError> {
    let failed = |error| KeyError::Read(path.into(), error);
    let (opened, status) = file::open(path).map_err(failed)?;
    if status.mode() & 0o077 != 0 {
        return Err(KeyError::Readable(path.into(), status.mode() & 0o7777));
    }
    file::contents(&opened).map_err(failed)
}

/// A new Ed25519 key in PEM form.
fn new_pem() -> io::Result<String> {
    let mut seed = [0; 32];
    let no_entropy = |_| io::Error::other("the system provides no random numbers");
    SystemRandom::new().fill(&mut seed).map_err(no_entropy)?;
    Ok(pem("PRIVATE KEY", &[&ED25519[..], &seed].concat()))
}

/// The textual encoding of `der` (RFC 7468, section 2).
fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("ASCII"));
    let lines = lines.collect::<Vec<_>>().join("\n");
    format!("-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn created_key_loads_with_the_same_fingerprint_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.key");
        let key = NodeKey::create(&path).unwrap();
        assert_eq!(key.fingerprint(), NodeKey::load(&path).unwrap().fingerprint());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let text = key.fingerprint().to_string();
        assert_eq!(text.parse::<Fingerprint>().unwrap(), key.fingerprint());
        let again = NodeKey::create(&path).unwrap_err().to_string();
        assert!(again.contains("node.key") && again.contains("exists"), "{again}");
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(
                matches!(NodeKey::load(&path), Err(KeyError::Readable(_, found)) if found == mode)
            );
        }
    }

    /// The key pair of RFC 8410, section 10.3, with the fingerprint that `openssl pkey -pubout
    /// -outform der | openssl dgst -sha256 -binary | base64` prints.
    #[test]
    fn fingerprint_is_the_one_of_openssl() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rfc8410.key");
        let text = "-----BEGIN PRIVATE KEY-----\n\
            MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
            -----END PRIVATE KEY-----\n";
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let fingerprint = NodeKey::load(&path).unwrap().fingerprint().to_string();
        assert_eq!(fingerprint, "SHA256:oekVYFTgT6yJmunydRMs3Ael28TqLCrTof/G4NJTaB8");
    }

    #[test]
    fn files_that_are_no_keys_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        assert!(matches!(NodeKey::load(&path), Err(KeyError::Read(..))));
        fs::write(&path, "no key").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(NodeKey::load(&path), Err(KeyError::NoKey(_))));
        let error = NodeKey::load(&path).unwrap_err().to_string();
        assert!(error.contains("notes.txt"), "{error}");
        fs::File::create(&path).unwrap().set_len(2 << 20).unwrap();
        let error = NodeKey::load(&path).unwrap_err().to_string();
        assert!(error.ends_with("longer than 1 MiB"), "{error}");
    }
}
