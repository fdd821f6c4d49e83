//! Bounds of random networks against their simulation.

mod bounds;
mod commands;
mod methods;
mod mixed;
mod periodic;
mod plans;
