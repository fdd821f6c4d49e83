//! Plans: what they come to, and what is wrong with them.
