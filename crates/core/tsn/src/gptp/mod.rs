//! Time on a network: drifting clocks, and their synchronisation by 802.1AS.
//!
//! - [`oscillator`]: a node's clocks and their time stamps;
//! - [`servo`]: the PI servo of linuxptp;
//! - [`message`]: the messages, byte by byte;
//! - [`link_delay`]: Pdelay: a link's delay, and the rate of the clock at the other end;
//! - [`best_master`]: selection of the grandmaster;
//! - [`domain`]: announcements, and the transfer of time from the grandmaster through relays;
//! - [`node`]: a time-aware system, with hot standby (IEEE 802.1ASdm) and holdover.
//!
//! A relay measures with its free-running oscillator, and passes on the rate of the grandmaster
//! relative to this oscillator. The servo steers a second clock, which the gates use (IEEE
//! 802.1AS-2020, 10.1.2, 11.1.3).

pub mod best_master;
pub mod domain;
pub mod link_delay;
pub mod message;
pub mod node;
pub mod oscillator;
mod ratio;
pub mod servo;

pub use best_master::{ClockIdentity, PortIdentity, Role, SystemIdentity};
pub use domain::DomainConfig;
pub use message::Message;
pub use node::{Node, NodeConfig, Output};
pub use oscillator::{ClockConfig, NodeClock, Stamp, Walk};
pub use ratio::RateRatio;
pub use servo::{Gains, Servo, ServoConfig, Stamping};
