//! System calls without a safe wrapper in rustix: the only module with unsafe code.

mod receive;

pub use receive::receive;
