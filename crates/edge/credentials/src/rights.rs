//! What a key may do.

use std::fmt;

/// The rights that a line of the file of peers gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Use the device as a host: the groups as which the host may attach.
    pub attach: Groups,
    /// Move the device to another group of hosts.
    pub move_device: bool,
    /// Measure the link with `farlane ping`.
    pub probe: bool,
    /// Be the far side of a connection that this node opens.
    pub serve: bool,
}

/// Groups of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Groups {
    /// No group: the key may not attach.
    #[default]
    None,
    /// Any group.
    Any,
    /// These groups.
    Listed(Vec<u16>),
}

impl Groups {
    /// Whether a host of `group` is allowed.
    pub fn contain(&self, group: u16) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Listed(groups) => groups.contains(&group),
        }
    }
}

impl Rights {
    /// Whether a connection from this key is of any use to a node that listens.
    pub fn may_connect(&self) -> bool {
        self.attach != Groups::None || self.move_device || self.probe
    }

    /// Adds the right `word`: use, move, probe or serve.
    pub(crate) fn add(&mut self, word: &str) -> Result<(), String> {
        match word {
            "use" => self.attach = Groups::Any,
            "move" => self.move_device = true,
            "probe" => self.probe = true,
            "serve" => self.serve = true,
            _ => return Err(format!("invalid right '{word}': expected use, move, probe or serve")),
        }
        Ok(())
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.attach != Groups::None, "use"),
            (self.move_device, "move"),
            (self.probe, "probe"),
            (self.serve, "serve"),
        ];
        let given: Vec<_> = all.into_iter().filter(|(given, _)| *given).map(|all| all.1).collect();
        f.write_str(&given.join(","))
    }
}
