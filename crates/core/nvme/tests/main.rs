//! The controller and the host driver, from outside.

mod controller;
mod model;
mod operations;
mod support;
