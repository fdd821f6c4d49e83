//! Tests of the controller and the host driver through public interfaces.

extern crate farlane_nvme as nvme;

mod controller;
mod model;
mod operations;
mod support;
