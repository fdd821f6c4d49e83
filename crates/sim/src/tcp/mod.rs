//! TCP hosts.
