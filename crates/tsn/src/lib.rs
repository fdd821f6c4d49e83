//! Time-Sensitive Networking models. Empty until the simulator needs them.
