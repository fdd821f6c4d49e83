//! Tests that take long: `./test long`.

mod cuts;
mod huge_pages;
mod killed;
mod push;
mod reboot;
mod reservations;
