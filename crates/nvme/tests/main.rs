//! The controller and the host driver, from outside.

mod controller;
mod operations;
mod support;
