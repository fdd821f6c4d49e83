//! The network part of the simulator, machine by machine and put together.

mod bridges;
mod cables;
mod frames;
mod hosts;
mod ports;
mod tcp;
mod world;
