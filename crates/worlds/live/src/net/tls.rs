//! TCP connections under TLS 1.3.

use super::connection::Connection;
use super::settings::LinkSettings;
use bytes::{Bytes, BytesMut};
use credentials::{Credentials, Handshake, Identity};
use rustls::{AlertDescription, CertificateError, Error};
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use wire::Instant;

/// Plaintext bytes of the largest record (RFC 8446, 5.1).
const RECORD: usize = 16 << 10;
/// The first byte of alert and handshake records (RFC 8446, 5.1). Anything else at the start of a
/// connection is no TLS.
const FIRST_BYTES: [u8; 2] = [21, 22];
/// A fatal alert, `handshake_failure` (RFC 8446, 6). It shows a far side without TLS that this end
/// uses TLS.
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// A TCP connection under TLS, before or after its handshake.
#[derive(Debug)]
pub struct TlsConnection {
    pub(super) tcp: Connection,
    handshake: Handshake,
    credentials: Arc<Credentials>,
    /// [`Credentials::checks`] at the last confirmation of the far side's rights.
    checks: u64,
    /// Whether nothing was received so far.
    first: bool,
    /// Why TLS ended the connection.
    failure: Option<String>,
    /// Whether one end refused the key of the other.
    refused: bool,
    plain: BytesMut,
    cipher: Vec<u8>,
}

impl TlsConnection {
    /// Begins to connect; [`established`](Self::established) returns the outcome. With `peer`, only
    /// to the peer of this name.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn connect(
        address: SocketAddr,
        peer: Option<Arc<str>>,
        settings: &LinkSettings,
        credentials: &Arc<Credentials>,
    ) -> io::Result<Self> {
        let handshake = Handshake::connect(credentials, peer).map_err(io::Error::other)?;
        Ok(Self::new(Connection::connect(address, settings)?, handshake, credentials))
    }

    /// The listening end of the accepted connection `tcp`.
    pub(super) fn accept(tcp: Connection, credentials: &Arc<Credentials>) -> Result<Self, Error> {
        Ok(Self::new(tcp, Handshake::accept(credentials)?, credentials))
    }

    fn new(tcp: Connection, mut handshake: Handshake, credentials: &Arc<Credentials>) -> Self {
        // `room` limits what waits: everything encrypted goes to `tcp` at once.
        handshake.tls.set_buffer_limit(None);
        Self {
            tcp,
            handshake,
            credentials: credentials.clone(),
            checks: credentials.checks(),
            first: true,
            failure: None,
            refused: false,
            plain: BytesMut::new(),
            cipher: Vec::new(),
        }
    }

    /// Whether both ends have proved their identity.
    ///
    /// # Errors
    /// Why the connection failed.
    pub fn established(&mut self, now: Instant) -> io::Result<bool> {
        if !self.tcp.established()? {
            return Ok(false);
        }
        let advanced = self.advance(now);
        let sent = self.transmit(now);
        advanced.and(sent)?;
        Ok(!self.handshake.tls.is_handshaking() && self.identity().is_some())
    }

    /// The far side, once it has proved its identity.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        self.handshake.peer()?.as_ref().ok()
    }

    /// Whether one end refused the key of the other, so that a further connection would fail too.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Why TLS ended the connection; returned once.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Handles what was received, until the end of the handshake.
    fn advance(&mut self, now: Instant) -> io::Result<()> {
        while self.handshake.tls.is_handshaking() {
            match self.tcp.receive()? {
                None => return Ok(()),
                Some(bytes) if bytes.is_empty() => return Err(self.closed()),
                Some(bytes) => self.decrypt(now, &bytes)?,
            }
        }
        Ok(())
    }

    fn closed(&self) -> io::Error {
        io::Error::other(match self.first {
            true if self.connects() => {
                "the far side closed the connection before its first byte: it runs without --key, or \
                 it exits"
            }
            true => "the far side closed the connection before its first byte",
            false => "the far side closed the connection during the TLS handshake",
        })
    }

    fn connects(&self) -> bool {
        matches!(self.handshake.tls, rustls::Connection::Client(_))
    }

    /// Decrypts `bytes`; the plaintext goes to `plain`.
    fn decrypt(&mut self, now: Instant, mut bytes: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.first) && !FIRST_BYTES.contains(&bytes[0]) {
            let _ = self.tcp.send_at(now, Bytes::from_static(&ALERT));
            let why =
                "the far side sent plain text instead of TLS: start it with --key and --peers";
            return Err(self.fail(why.into(), false));
        }
        while !bytes.is_empty() {
            let tls = &mut self.handshake.tls;
            // Behind the alert `close_notify`, rustls reads nothing.
            if tls.read_tls(&mut bytes)? == 0 {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let state = match tls.process_new_packets() {
                Ok(state) => state,
                Err(error) => return Err(self.fail(self.describe(&error), refuses_key(&error))),
            };
            let mut rest = state.plaintext_bytes_to_read();
            let mut reader = tls.reader();
            while rest > 0 {
                let record = reader.fill_buf()?;
                self.plain.extend_from_slice(record);
                let length = record.len();
                reader.consume(length);
                rest -= length;
            }
        }
        Ok(())
    }

    /// Remembers why TLS ended the connection, and whether one end `refused` the key of the other.
    fn fail(&mut self, why: String, refused: bool) -> io::Error {
        (self.failure, self.refused) = (Some(why.clone()), refused);
        io::Error::other(why)
    }

    /// A sentence about `error`, which ended the connection.
    fn describe(&self, error: &Error) -> String {
        use CertificateError::{ApplicationVerificationFailure, Expired};
        // These errors follow the proof that the far side owns the key.
        let proved =
            matches!(error, Error::InvalidCertificate(Expired | ApplicationVerificationFailure));
        if let Some(Err(refusal)) = self.handshake.peer().filter(|_| proved) {
            return refusal.to_string();
        }
        match error {
            Error::AlertReceived(AlertDescription::CertificateExpired) => {
                "the far side refuses the key of this node: the key is expired or not yet valid"
                    .into()
            }
            Error::AlertReceived(AlertDescription::AccessDenied) => {
                "the far side refuses the key of this node: the key is unknown there or lacks the \
                 right"
                    .into()
            }
            Error::AlertReceived(AlertDescription::HandshakeFailure)
            | Error::PeerIncompatible(_)
            | Error::AlertReceived(AlertDescription::UnsupportedCertificate) => format!(
                "no common way to authenticate: {error}; both key files need certificates, or none"
            ),
            _ => format!("TLS: {error}"),
        }
    }

    /// Encrypts what waits, and sends what the kernel accepts.
    fn transmit(&mut self, now: Instant) -> io::Result<()> {
        let tls = &mut self.handshake.tls;
        while tls.wants_write() {
            tls.write_tls(&mut self.cipher)?;
        }
        if self.cipher.is_empty() {
            return self.tcp.flush_at(now);
        }
        let bytes = std::mem::take(&mut self.cipher).into();
        self.tcp.send_at(now, bytes)
    }

    /// Passes received bytes to `take`, at most `reads` reads of the socket; returns whether the
    /// connection has ended.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        reads: usize,
        mut take: impl FnMut(Bytes),
    ) -> bool {
        let received = self.confirm().and_then(|()| self.read(now, reads, &mut take));
        // Answers to requests for new traffic keys.
        let sent = self.transmit(now);
        let ended = received.and_then(|ended| sent.map(|()| ended));
        ended.unwrap_or(true)
    }

    /// Fails if the file of peers no longer gives the far side its rights.
    fn confirm(&mut self) -> io::Result<()> {
        let checks = self.credentials.checks();
        if let Some(identity) = self.identity()
            && checks != self.checks
        {
            if let Err(why) = self.credentials.confirm(identity) {
                return Err(self.fail(format!("no longer accepted: {why}"), true));
            }
            self.checks = checks;
        }
        Ok(())
    }

    fn read(
        &mut self,
        now: Instant,
        reads: usize,
        take: &mut impl FnMut(Bytes),
    ) -> io::Result<bool> {
        for _ in 0..reads {
            let received = match self.tcp.receive() {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                // The far side's end of the connection, as without TLS.
                Err(_) => return Ok(true),
            };
            if received.is_empty() {
                self.deliver(take);
                return Ok(true);
            }
            let decrypted = self.decrypt(now, &received);
            self.deliver(take);
            decrypted?;
            if received.len() < super::connection::SHORT_READ {
                break;
            }
        }
        self.deliver(take);
        Ok(false)
    }

    /// Passes on the plaintext, also what arrived with the end of the handshake.
    fn deliver(&mut self, take: &mut impl FnMut(Bytes)) {
        if !self.plain.is_empty() {
            take(self.plain.split().freeze());
        }
    }

    /// Encrypts and sends bytes.
    ///
    /// # Errors
    /// As `send(2)`.
    pub(super) fn send_at(&mut self, now: Instant, bytes: &[u8]) -> io::Result<()> {
        for record in bytes.chunks(RECORD) {
            self.handshake.tls.writer().write_all(record)?;
        }
        self.transmit(now)
    }
}

/// Whether `error` means that one end refuses the key of the other.
fn refuses_key(error: &Error) -> bool {
    use AlertDescription::{
        AccessDenied, CertificateExpired, HandshakeFailure, UnsupportedCertificate,
    };
    match error {
        Error::AlertReceived(alert) => {
            [AccessDenied, CertificateExpired, HandshakeFailure, UnsupportedCertificate]
                .contains(alert)
        }
        Error::InvalidCertificate(_) | Error::PeerIncompatible(_) => true,
        _ => false,
    }
}

impl AsFd for TlsConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::Listener;
    use super::*;
    use credentials::{NodeKey, Peers};
    use std::net::TcpStream;

    /// Credentials with which two ends accept each other.
    fn credentials(records: Option<u64>) -> Arc<Credentials> {
        let key = NodeKey::generate().unwrap();
        let peers = Peers::only("peer", key.fingerprint());
        let credentials = Credentials::new(key, peers, None);
        match records {
            Some(records) => credentials.with_records_per_key(records).into(),
            None => credentials.into(),
        }
    }

    fn listener() -> Listener {
        Listener::bind("127.0.0.1:0".parse().unwrap(), LinkSettings::default()).unwrap()
    }

    /// The listening end of the next connection.
    fn accept(listener: &Listener, credentials: &Arc<Credentials>) -> TlsConnection {
        loop {
            if let Some(tcp) = listener.accept() {
                return TlsConnection::accept(tcp, credentials).unwrap();
            }
        }
    }

    /// A connection after its handshake: the end that connected, and the other.
    fn pair(credentials: &Arc<Credentials>) -> [TlsConnection; 2] {
        let listener = listener();
        let (address, settings) = (listener.address().unwrap(), LinkSettings::default());
        let mut near = TlsConnection::connect(address, None, &settings, credentials).unwrap();
        let mut far = accept(&listener, credentials);
        while !(near.established(Instant::ZERO).unwrap() & far.established(Instant::ZERO).unwrap())
        {
        }
        [near, far]
    }

    #[test]
    fn bytes_behind_a_close_alert_end_the_handshake() {
        let (listener, credentials) = (listener(), credentials(None));
        let mut stream = TcpStream::connect(listener.address().unwrap()).unwrap();
        let mut far = accept(&listener, &credentials);
        // An alert of level warning, `close_notify`, then more.
        stream.write_all(b"\x15\x03\x03\x00\x02\x01\x00 and more").unwrap();
        let error = loop {
            match far.established(Instant::ZERO) {
                Ok(established) => assert!(!established),
                Err(error) => break error,
            }
        };
        assert!(!error.to_string().is_empty());
    }

    /// Sends `bytes` bytes in frames of many sizes, up to the largest offer; returns whether they
    /// arrive unchanged.
    fn stream_is_whole([near, far]: &mut [TlsConnection; 2], bytes: usize) -> bool {
        let byte = |at: usize| (at * 7 + at / 251) as u8;
        let (mut sent, mut received, mut right) = (0, 0, true);
        while received < bytes {
            near.tcp.flush_at(Instant::ZERO).unwrap();
            if sent < bytes && near.tcp.room() > 0 {
                let size = [1, 100, 4_400, 16_384, 16_385, 65_536][sent % 6].min(bytes - sent);
                let frame: Vec<u8> = (sent..sent + size).map(byte).collect();
                near.send_at(Instant::ZERO, &frame).unwrap();
                sent += size;
            }
            let ended = far.receive(Instant::ZERO, 4, |plain| {
                right &= plain.iter().enumerate().all(|(at, b)| *b == byte(received + at));
                received += plain.len();
            });
            assert!(!ended, "{:?}", far.failure);
        }
        right && received == bytes
    }

    #[test]
    fn stream_is_whole_also_where_traffic_keys_change() {
        for records in [None, Some(8)] {
            let mut ends = pair(&credentials(records));
            for _ in 0..2 {
                assert!(stream_is_whole(&mut ends, 3 << 20));
                ends.reverse();
            }
        }
    }
}
