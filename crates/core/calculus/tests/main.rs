//! Integration tests, one module per subject.

mod networks;
mod properties;
mod published;
