//! Fuzz targets: each takes bytes and panics if a promise is broken.
//!
//! # Modules
//!
//! - `tlp`: the TLP codec
//! - `frames`: a tunnel end with a hostile peer
//! - `push`: the push codec, and a device's store with hostile ends
//! - `handshake`: the TLS handshake of a listening node with a hostile peer
//! - `raw`: the raw Ethernet codec, and an endpoint with a hostile peer
//! - `session`: random messages to a vfio-user server
//! - `endpoint`: an endpoint that receives arbitrary TLPs
//! - `mpacket`: mPackets of a hostile sender
//! - `trace`: arbitrary trace files
//! - `world`: arbitrary operations on a fabric of nodes
//! - `corpora`: every stored input as a test

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "corpora are files")]
mod corpora;
mod endpoint;
mod frames;
mod handshake;
mod mpacket;
mod push;
mod raw;
mod session;
mod tlp;
mod trace;
#[allow(dead_code, missing_docs, unused_imports, reason = "the tests of `node` use the rest of it")]
#[path = "../../core/node/tests/fabric/world/mod.rs"]
mod world;

/// Names and functions of the targets, and for each a test of its corpus.
macro_rules! targets {
    ($($name:ident: $run:path,)*) => {
        const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $run)),*];

        #[cfg(test)]
        mod corpus {
            use super::*;

            $(#[test]
            fn $name() {
                crate::corpora::run(stringify!($name), $run);
            })*
        }
    };
}

targets! {
    tlp: tlp::run,
    frames: frames::run,
    handshake: handshake::run,
    mpacket: mpacket::run,
    push: push::run,
    raw: raw::run,
    fabric: world::operations::run_operations,
    slot: run_slots,
    endpoint: endpoint::run,
    nvme: testkit::nvme::run_operations,
    vfio_user: session::run,
    trace: trace::run,
}

fn run_slots(bytes: &[u8]) {
    world::slot_operations::run_operations(bytes);
}

/// The target `name`.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}

/// All targets.
pub fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|(name, _)| *name).collect()
}
