//! The layers of the sandbox, and their names in options.

use std::fmt;
use std::str::FromStr;

/// The layers that are switched on. The text is `on`, `off` or a list of `capabilities`, `landlock`
/// and `seccomp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Drops capabilities.
    pub capabilities: bool,
    /// Restricts files and TCP ports.
    pub landlock: bool,
    /// Denies system calls.
    pub seccomp: bool,
}

impl Layers {
    /// All layers.
    pub const ON: Self = Self { capabilities: true, landlock: true, seccomp: true };
    /// No layer.
    pub const OFF: Self = Self { capabilities: false, landlock: false, seccomp: false };
}

impl FromStr for Layers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "on" => return Ok(Self::ON),
            "off" => return Ok(Self::OFF),
            _ => {}
        }
        let mut layers = Self::OFF;
        for name in text.split(',') {
            let layer = match name {
                "capabilities" => &mut layers.capabilities,
                "landlock" => &mut layers.landlock,
                "seccomp" => &mut layers.seccomp,
                _ => {
                    return Err(format!(
                        "invalid layer '{name}': expected on, off, or a list of capabilities, \
                         landlock and seccomp"
                    ));
                }
            };
            *layer = true;
        }
        Ok(layers)
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ON => return f.write_str("on"),
            Self::OFF => return f.write_str("off"),
            _ => {}
        }
        let layers = [
            (self.capabilities, "capabilities"),
            (self.landlock, "landlock"),
            (self.seccomp, "seccomp"),
        ];
        let names: Vec<_> = layers.iter().filter(|layer| layer.0).map(|layer| layer.1).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_printed() {
        for text in ["on", "off", "capabilities", "landlock,seccomp", "capabilities,seccomp"] {
            assert_eq!(text.parse::<Layers>().unwrap().to_string(), text);
        }
        assert_eq!("seccomp,landlock,capabilities".parse(), Ok(Layers::ON));
        for wrong in ["", "on,off", "landlock,", "selinux"] {
            assert!(wrong.parse::<Layers>().unwrap_err().contains("expected on, off"), "{wrong}");
        }
    }
}
