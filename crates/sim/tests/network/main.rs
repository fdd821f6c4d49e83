//! The network part of the simulator, machine by machine and put together.

mod tcp;
mod world;
