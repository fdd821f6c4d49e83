//! The world of virtual time. Empty until the simulator issue.
