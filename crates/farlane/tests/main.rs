//! The whole program, from outside. One binary, since each would link the
//! whole program again; `./test` tells its groups apart by the first part of a
//! test's name: `stock_guest` and `wireshark` need packages that it fetches.

mod cli;
mod hostile_client;
mod parity;
mod polled_client;
mod stock_guest;
mod support;
mod wireshark;
