//! What a node gives up once it has started. Each layer restricts the calling thread and the
//! threads that it starts later, so a program calls [`restrict`] before it starts any.
//!
//! # Modules
//!
//! - `layers`: the layers, and their names in options
//! - `needs`: what a node keeps
//! - `capabilities`: capabilities(7)
//! - `files`: files and TCP ports, by landlock(7)
//! - `calls`: system calls, by seccomp(2)

#![forbid(unsafe_code)]

mod calls;
mod capabilities;
mod files;
mod layers;
mod needs;

pub use layers::Layers;
pub use needs::{Access, Needs};

use std::fmt;
use std::io;

/// The restrictions in force, for one line of text. A layer is `None` if it is switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The names of the capabilities that are left.
    pub capabilities: Option<Vec<String>>,
    /// What Landlock restricts; as the error, why nothing.
    pub landlock: Option<Result<Ruleset, String>>,
    /// The number of system calls that fail for all arguments; as the error, why none does.
    pub seccomp: Option<Result<usize, String>>,
}

/// A Landlock ruleset in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruleset {
    /// The version of Landlock that the kernel has, at most 7. TCP ports need version 4.
    pub abi: i32,
    /// The folders that can be used, each with all files below it.
    pub folders: usize,
    /// The files that can be used in other folders.
    pub files: usize,
}

impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if (&self.capabilities, &self.landlock, &self.seccomp) == (&None, &None, &None) {
            return f.write_str("off");
        }
        match &self.capabilities {
            None => f.write_str("capabilities unchanged; ")?,
            Some(left) if left.is_empty() => f.write_str("capabilities none; ")?,
            Some(left) => write!(f, "capabilities {}; ", left.join(", "))?,
        }
        match &self.landlock {
            None => f.write_str("Landlock off; ")?,
            Some(Err(why)) => write!(f, "Landlock not available: {why}; ")?,
            Some(Ok(Ruleset { abi, folders, files })) => {
                let plural = if *folders == 1 { "" } else { "s" };
                write!(f, "Landlock ABI {abi}: {folders} folder{plural}")?;
                match files {
                    0 => f.write_str("; ")?,
                    1 => f.write_str(" and 1 file; ")?,
                    _ => write!(f, " and {files} files; ")?,
                }
            }
        }
        match &self.seccomp {
            None => f.write_str("seccomp off"),
            Some(Err(why)) => write!(f, "seccomp not available: {why}"),
            Some(Ok(calls)) => write!(f, "seccomp: {calls} system calls denied"),
        }
    }
}

/// Restricts the calling thread, and the threads that it starts later, for good. A layer that the
/// kernel lacks is left out.
///
/// # Errors
/// If the kernel refuses a change that it supports, or if a path of `needs` cannot be used without
/// the capabilities of the caller; the message names it.
pub fn restrict(layers: Layers, needs: &Needs) -> io::Result<InForce> {
    // Landlock first: it opens the paths, which may need capabilities. seccomp last: its filter
    // denies calls of the other layers.
    let landlock = layers.landlock.then(|| files::restrict(needs)).transpose()?;
    let capabilities = layers.capabilities.then(|| capabilities::restrict(needs)).transpose()?;
    let seccomp = layers.seccomp.then(|| calls::restrict(needs));
    Ok(InForce { capabilities, landlock, seccomp })
}

/// The number of threads of this process (proc_pid_task(5)). [`restrict`] misses all but one.
///
/// # Errors
/// As `open(2)`, if `/proc` is not mounted.
pub fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_states_each_layer() {
        let mut state = InForce { capabilities: None, landlock: None, seccomp: None };
        assert_eq!(state.to_string(), "off");
        state.capabilities = Some(vec![]);
        assert_eq!(state.to_string(), "capabilities none; Landlock off; seccomp off");
        state.landlock = Some(Ok(Ruleset { abi: 7, folders: 3, files: 0 }));
        state.seccomp = Some(Ok(90));
        assert_eq!(
            state.to_string(),
            "capabilities none; Landlock ABI 7: 3 folders; seccomp: 90 system calls denied"
        );
        state.capabilities = Some(vec!["CAP_NET_RAW".into(), "CAP_NET_ADMIN".into()]);
        state.landlock = Some(Ok(Ruleset { abi: 4, folders: 1, files: 1 }));
        state.seccomp = Some(Err("kernel without it".into()));
        assert_eq!(
            state.to_string(),
            "capabilities CAP_NET_RAW, CAP_NET_ADMIN; Landlock ABI 4: 1 folder and 1 file; seccomp \
             not available: kernel without it"
        );
        state.capabilities = None;
        state.landlock = Some(Err("kernel without it".into()));
        state.seccomp = None;
        assert_eq!(
            state.to_string(),
            "capabilities unchanged; Landlock not available: kernel without it; seccomp off"
        );
    }
}
