//! TLS 1.3 (RFC 8446) with raw public keys (RFC 7250) or certificates, for both ends.

use crate::peers::{Chain, MAX_INTERMEDIATES, Presented};
use crate::{Credentials, Fingerprint, Identity, Refusal};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, verify_tls13_signature, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::SingleCertAndKey;
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, Connection,
    DigitallySignedStruct, DistinguishedName, Error, ServerConfig, ServerConnection,
    SignatureScheme, StreamOwned, SupportedCipherSuite, version,
};
use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

/// The protocol's name (ALPN, RFC 7301): a connection for another protocol is refused.
const PROTOCOL: &[u8] = b"farlane";
/// The protocol's name of the state of a node.
const HTTP: &[u8] = b"http/1.1";

/// The listening end of a connection for the state of a node.
pub type StatusServer<S> = StreamOwned<ServerConnection, S>;
/// The connecting end of a connection for the state of a node.
pub type StatusClient<S> = StreamOwned<ClientConnection, S>;

/// The encryption of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cipher {
    /// AES-GCM with 128-bit keys; fast where the processor has instructions for AES.
    #[default]
    Aes128Gcm,
    /// AES-GCM with 256-bit keys.
    Aes256Gcm,
    /// ChaCha20-Poly1305; fast without instructions for AES.
    ChaCha20Poly1305,
}

impl Cipher {
    fn suite(self) -> CipherSuite {
        match self {
            Self::Aes128Gcm => CipherSuite::TLS13_AES_128_GCM_SHA256,
            Self::Aes256Gcm => CipherSuite::TLS13_AES_256_GCM_SHA384,
            Self::ChaCha20Poly1305 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }
}

/// The cryptography of all connections. A connecting node offers only `cipher`. With `records`,
/// traffic keys change after this number of records instead of rustls's limit (RFC 8446, 5.5).
pub(crate) fn provider(cipher: Option<Cipher>, records: Option<u64>) -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    if let Some(cipher) = cipher {
        provider.cipher_suites.retain(|suite| suite.suite() == cipher.suite());
    } else {
        let first = Cipher::default().suite();
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != first);
    }
    if let Some(records) = records {
        for suite in &mut provider.cipher_suites {
            let SupportedCipherSuite::Tls13(tls13) = *suite;
            let mut limited = rustls::Tls13CipherSuite {
                common: rustls::crypto::CipherSuiteCommon { ..tls13.common },
                ..*tls13
            };
            limited.common.confidentiality_limit = records;
            // rustls takes only suites that live as long as the process.
            *suite = SupportedCipherSuite::Tls13(Box::leak(limited.into()));
        }
    }
    provider
}

/// The TLS connection of one end, and what its handshake found out about the far side.
#[derive(Debug)]
pub struct Handshake {
    /// The connection.
    pub tls: Connection,
    verifier: Arc<Verifier>,
}

impl Handshake {
    /// The end that listens.
    ///
    /// # Errors
    /// If the key does not fit TLS 1.3.
    pub fn accept(credentials: &Arc<Credentials>) -> Result<Self, Error> {
        let (verifier, config) = server(credentials, End::Accepts, PROTOCOL)?;
        let tls = ServerConnection::new(config)?.into();
        Ok(Self { tls, verifier })
    }

    /// The end that connects; with `peer`, only to the peer of this name.
    ///
    /// # Errors
    /// If the key does not fit TLS 1.3.
    pub fn connect(credentials: &Arc<Credentials>, peer: Option<Arc<str>>) -> Result<Self, Error> {
        let (verifier, config) = client(credentials, peer, PROTOCOL)?;
        let tls = ClientConnection::new(config, name())?.into();
        Ok(Self { tls, verifier })
    }

    /// The far side's identity, or why it is refused; `None` before it has sent its key.
    pub fn peer(&self) -> Option<&Result<Arc<Identity>, Refusal>> {
        self.verifier.peer.get()
    }
}

/// The listening end over `stream`, for peers with the right `status`.
///
/// # Errors
/// If the key does not fit TLS 1.3.
pub fn accept_status<S: Read + Write>(
    credentials: &Arc<Credentials>,
    stream: S,
) -> Result<StatusServer<S>, Error> {
    let (_, config) = server(credentials, End::Shows, HTTP)?;
    Ok(StreamOwned::new(ServerConnection::new(config)?, stream))
}

/// The connecting end over `stream`, to a peer with the right `serve`.
///
/// # Errors
/// If the key does not fit TLS 1.3.
pub fn connect_status<S: Read + Write>(
    credentials: &Arc<Credentials>,
    stream: S,
) -> Result<StatusClient<S>, Error> {
    let (_, config) = client(credentials, None, HTTP)?;
    Ok(StreamOwned::new(ClientConnection::new(config, name())?, stream))
}

fn server(
    credentials: &Arc<Credentials>,
    end: End,
    protocol: &[u8],
) -> Result<(Arc<Verifier>, Arc<ServerConfig>), Error> {
    let verifier = Verifier::new(credentials, end);
    let key = credentials.key();
    let builder = ServerConfig::builder_with_provider(credentials.provider().clone())
        .with_protocol_versions(&[&version::TLS13])?
        .with_client_cert_verifier(verifier.clone());
    let mut config = match key.has_certificate {
        true => builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(key.certified()))),
        false => builder
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key.certified()))),
    };
    // No session is resumed: each connection proves its key, and nothing can be replayed.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.alpn_protocols = vec![protocol.into()];
    Ok((verifier, config.into()))
}

fn client(
    credentials: &Arc<Credentials>,
    peer: Option<Arc<str>>,
    protocol: &[u8],
) -> Result<(Arc<Verifier>, Arc<ClientConfig>), Error> {
    let verifier = Verifier::new(credentials, End::Connects(peer));
    let key = credentials.key();
    let builder = ClientConfig::builder_with_provider(credentials.provider().clone())
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone());
    let mut config = match key.has_certificate {
        true => {
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key.certified())))
        }
        false => builder.with_client_cert_resolver(Arc::new(
            AlwaysResolvesClientRawPublicKeys::new(key.certified()),
        )),
    };
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config.alpn_protocols = vec![protocol.into()];
    Ok((verifier, config.into()))
}

/// The name of any server: the verifier looks only at keys.
fn name() -> ServerName<'static> {
    ServerName::try_from("farlane").expect("a DNS name")
}

#[derive(Debug)]
enum End {
    Accepts,
    /// Accepts, and shows the state.
    Shows,
    Connects(Option<Arc<str>>),
}

/// Checks one far side. rustls calls `verify_*_cert` with the key, then `verify_tls13_signature`
/// with the proof that the far side owns the key. The answer waits for this proof, so that a
/// stranger does not learn which public keys are listed.
#[derive(Debug)]
struct Verifier {
    credentials: Arc<Credentials>,
    end: End,
    peer: OnceLock<Result<Arc<Identity>, Refusal>>,
}

impl Verifier {
    fn new(credentials: &Arc<Credentials>, end: End) -> Arc<Self> {
        Self { credentials: credentials.clone(), end, peer: OnceLock::new() }.into()
    }

    fn has_certificates(&self) -> bool {
        self.credentials.key().has_certificate
    }

    /// Remembers the identity of the far side, or why it is refused.
    fn identify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let mut peer = Presented { fingerprint: Fingerprint::new(end_entity), certificate: None };
        let mut chain = None;
        if self.has_certificates() {
            if intermediates.len() > MAX_INTERMEDIATES {
                return Err(CertificateError::BadEncoding.into());
            }
            let all = [end_entity].into_iter().chain(intermediates);
            let certificates = all.map(|certificate| certificate.clone().into_owned()).collect();
            let is_client = !matches!(self.end, End::Connects(_));
            let found = chain.insert(Arc::new(Chain { certificates, is_client }));
            let bad = |_| Error::from(CertificateError::BadEncoding);
            let certificate = webpki::EndEntityCert::try_from(end_entity).map_err(bad)?;
            peer.fingerprint = Fingerprint::new(&certificate.subject_public_key_info());
            peer.certificate = Some((certificate, intermediates, found.usage()));
        }
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let found = self.credentials.peers().identify(&peer, now);
        let found = found.map(|identity| identity.with_chain(chain));
        let _ = self.peer.set(found.and_then(|identity| self.admit(identity)).map(Arc::new));
        Ok(())
    }

    /// Refuses a known peer without a right that this end needs.
    fn admit(&self, identity: Identity) -> Result<Identity, Refusal> {
        let Identity { name, fingerprint, rights, serves, status, .. } = &identity;
        let no_right = |right| Err(Refusal::NoRight(name.clone(), *fingerprint, right));
        match &self.end {
            End::Accepts if !rights.any() => no_right("use, move or probe"),
            End::Shows if !status => no_right("status"),
            End::Connects(_) if !serves => no_right("serve"),
            End::Connects(Some(expected)) if expected != name => {
                Err(Refusal::AnotherPeer(name.clone(), *fingerprint, expected.clone()))
            }
            _ => Ok(identity),
        }
    }

    fn verify(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.credentials.provider().signature_verification_algorithms;
        let valid = if self.has_certificates() {
            verify_tls13_signature(message, key, signature, algorithms)?
        } else {
            let key = SubjectPublicKeyInfoDer::from(key.as_ref());
            verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)?
        };
        match self.peer.get() {
            Some(Ok(_)) => Ok(valid),
            // The alert `certificate_expired` goes only to the owner of a listed key.
            Some(Err(Refusal::Expired(..) | Refusal::NotYetValid(..))) => {
                Err(CertificateError::Expired.into())
            }
            _ => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.credentials.provider().signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.identify(end_entity, intermediates, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        !self.has_certificates()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.identify(end_entity, intermediates, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        !self.has_certificates()
    }
}
