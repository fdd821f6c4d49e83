//! Tests that take long: `./test long`.

mod huge_pages;
mod push;
mod reboot;
