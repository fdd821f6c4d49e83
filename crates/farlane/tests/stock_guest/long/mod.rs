//! Tests that take long: `./test long`.

mod cuts;
mod huge_pages;
mod push;
mod reboot;
