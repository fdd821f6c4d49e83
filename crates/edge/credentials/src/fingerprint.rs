//! Fingerprints of public keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::digest::{SHA256, digest};
use std::fmt;
use std::str::FromStr;

/// The prefix of the text form, as in OpenSSH.
const PREFIX: &str = "SHA256:";

/// The SHA-256 of a public key in its SubjectPublicKeyInfo form (DER, RFC 5280, 4.1.2.7). The text
/// form is `SHA256:` and 43 characters of base64 without padding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a SubjectPublicKeyInfo.
    pub fn new(public_key: &[u8]) -> Self {
        let digest = digest(&SHA256, public_key);
        Self(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || {
            format!(
                "invalid key '{text}': expected {PREFIX} and 43 characters of base64, as `farlane \
                 key show` prints"
            )
        };
        let text = text.strip_prefix(PREFIX).ok_or_else(invalid)?;
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| invalid())?;
        Ok(Self(bytes.try_into().map_err(|_| invalid())?))
    }
}
