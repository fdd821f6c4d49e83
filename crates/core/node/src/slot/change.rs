//! Changes of a slot that are reported to its user.

use pcie::enumerate::ContentsChange;
use std::fmt;

/// A change of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The function is attached again, with its former data.
    Reattached,
    /// The function is attached again with other data.
    ReattachedWithNewContents(ContentsChange),
    /// The function has other data, and stays detached until the client resets it.
    NewContents(ContentsChange),
    /// Another device, or no device, is present: the slot stays empty.
    Changed(String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reattached => f.write_str("attached again"),
            Self::ReattachedWithNewContents(loss) => {
                write!(f, "attached again with new contents: {loss}")
            }
            Self::NewContents(loss) => write!(
                f,
                "new contents: {loss}; it stays detached until its guest resets it: restart the \
                 guest, or in it write 1 to reset and then remove in \
                 /sys/bus/pci/devices/ADDRESS, and to /sys/bus/pci/rescan"
            ),
            Self::Changed(why) => write!(
                f,
                "has changed and stays detached: {why}; bring the one before back, or start the \
                 host again to use this one"
            ),
        }
    }
}
