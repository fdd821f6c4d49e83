//! The client against servers.
