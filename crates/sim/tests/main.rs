//! The simulator, from outside: whole simulations and the network alone.

mod congestion;
mod network;
mod simulation;
