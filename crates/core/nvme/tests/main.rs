//! The controller and the host driver, from outside.

extern crate farlane_nvme as nvme;

mod controller;
mod model;
mod operations;
mod support;
