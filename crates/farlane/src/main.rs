//! The `farlane` program.
fn main() {}
