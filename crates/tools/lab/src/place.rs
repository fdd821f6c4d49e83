//! Names and addresses of the lab's network: talker – bridge – listener, a namespace each.

use std::path::PathBuf;
use std::str::FromStr;

/// Folder of the labs' journals and files. A restart of the machine empties it, and removes
/// everything else that labs create (Filesystem Hierarchy Standard 3.0, 3.15).
const FOLDER: &str = "/run/farlane-lab";

/// MAC address of the talker, locally administered (IEEE 802-2014, 8.2.2).
pub const NEAR_MAC: &str = "02:00:5e:10:00:01";
/// MAC address of the listener.
pub const FAR_MAC: &str = "02:00:5e:10:00:02";
/// IPv4 address of the talker without a VLAN tag, of a network for documentation (RFC 5737).
pub const NEAR: &str = "192.0.2.1";
/// IPv4 address of the listener without a VLAN tag.
pub const FAR: &str = "192.0.2.2";
/// IPv4 address of the talker with a VLAN tag.
pub const NEAR_TAGGED: &str = "198.51.100.1";
/// IPv4 address of the listener with a VLAN tag.
pub const FAR_TAGGED: &str = "198.51.100.2";

/// The name of a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(pub String);

impl Place {
    /// The talker's namespace.
    pub fn talker(&self) -> String {
        format!("{}-talker", self.0)
    }

    /// The bridge's namespace.
    pub fn bridge(&self) -> String {
        format!("{}-bridge", self.0)
    }

    /// The listener's namespace.
    pub fn listener(&self) -> String {
        format!("{}-listener", self.0)
    }

    /// All namespaces.
    pub fn namespaces(&self) -> [String; 3] {
        [self.talker(), self.bridge(), self.listener()]
    }

    /// The folder of the lab.
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(FOLDER).join(&self.0)
    }
}

impl FromStr for Place {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let fits = (1..=32).contains(&text.len());
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if fits && text.bytes().all(allowed) && !text.starts_with('-') {
            Ok(Self(text.to_owned()))
        } else {
            Err("a name is 1 to 32 letters, digits, - and _".into())
        }
    }
}
