//! Congestion control on networks with a bottleneck.

mod fairness;
mod loss;
mod network;
mod rates;
mod steps;
