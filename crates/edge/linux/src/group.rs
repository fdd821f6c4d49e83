//! Groups of users.

use nix::unistd::Group;
use rustix::process::{getegid, getgroups};
use std::str::FromStr;

/// A group of users (group(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserGroup {
    /// Name of the group.
    pub name: String,
    /// Number of the group (GID).
    pub id: u32,
}

impl FromStr for UserGroup {
    type Err = String;

    /// Finds a group by its name.
    fn from_str(name: &str) -> Result<Self, String> {
        match Group::from_name(name) {
            Ok(Some(group)) => Ok(Self { name: group.name, id: group.gid.as_raw() }),
            Ok(None) => {
                Err(format!("unknown group '{name}': expected a name that `getent group` lists"))
            }
            Err(error) => Err(format!("group '{name}': {error}")),
        }
    }
}

impl UserGroup {
    /// Whether this process is a member: then it may give its files to the group (chown(2)).
    pub fn is_own(&self) -> bool {
        let own = getgroups().unwrap_or_default();
        own.iter().chain([&getegid()]).any(|group| group.as_raw() == self.id)
    }
}
