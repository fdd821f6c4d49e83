//! The network part of the simulator, machine by machine and put together.

mod frames;
mod ports;
mod tcp;
mod world;
