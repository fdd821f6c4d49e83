//! Fuzz targets: each takes bytes and panics if a promise is broken.

mod endpoint;
mod frames;
mod raw;
pub mod seeds;
mod tlp;
mod trace;
#[allow(dead_code)]
#[path = "../../crates/switch/tests/fabric/world/mod.rs"]
mod world;

/// Names and functions.
const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("tlp", tlp::run),
    ("frames", frames::run),
    ("raw", raw::run),
    ("fabric", world::operations::run_operations),
    ("endpoint", endpoint::run),
    ("nvme", nvme::testing::run_operations),
    ("vfio_user", live::vfio_user::testing::run_messages),
    ("trace", trace::run),
];

/// The target `name`.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}

/// All targets.
pub fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|(name, _)| *name).collect()
}
