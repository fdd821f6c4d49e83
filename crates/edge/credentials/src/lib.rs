//! The keys of nodes and the rights of their peers.
//!
//! A node proves its identity with a private key ([`NodeKey`]). A file of peers ([`Peers`]) lists the
//! keys that the node accepts, each with a name and rights. [`Credentials`] holds both, follows
//! changes of the file, and makes the TLS configuration of each connection.
//!
//! # Modules
//!
//! - `file`: reads small files
//! - `fingerprint`: the SHA-256 fingerprint of a public key
//! - `key`: private keys and their files
//! - `peers`: the file of peers
//! - `tls`: TLS 1.3 with raw public keys (RFC 7250) or certificates
//! - `watch`: the present key and peers, read again when their files change

mod file;
mod fingerprint;
mod key;
mod peers;
mod tls;
mod watch;

pub use fingerprint::Fingerprint;
pub use key::{KeyError, NodeKey};
pub use peers::{Identity, Peers, PeersError, Refusal, host_identifier};
pub use tls::{Cipher, Handshake, StatusClient, StatusServer, accept_status, connect_status};
pub use watch::{Credentials, LoadError, Reading, Watch};
