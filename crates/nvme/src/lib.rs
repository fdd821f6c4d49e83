//! The NVMe controller and a small host driver (the initiator), both state machines without I/O.
