//! Tests of the whole program from outside. All tests are in one binary, because each binary would
//! link the whole program. `./test` selects groups by the first part of the test names. The groups
//! `stock_guest` and `wireshark` need packages that `./test` fetches.

mod cli;
mod hostile_client;
mod parity;
mod polled_client;
mod stock_guest;
mod support;
mod wireshark;
