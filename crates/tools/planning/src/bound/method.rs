//! Methods of bounds.

use std::ops::BitOr;

/// How latencies of streams are bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Total flow analysis, with staircases as arrival curves.
    Tfa,
    /// Separated flow analysis of the hops where it applies, total flow analysis of the others.
    Sfa,
    /// The polynomial linear programme, likewise.
    Plp,
    /// The least bound of every part of a path.
    #[default]
    Best,
}

impl Method {
    /// A sentence part for documents.
    pub fn description(self) -> &'static str {
        match self {
            Self::Tfa => "total flow analysis with line shaping",
            Self::Sfa => "separated flow analysis where it applies, else total flow analysis",
            Self::Plp => "polynomial linear programme where it applies, else total flow analysis",
            Self::Best => {
                "the least of total flow analysis with line shaping, separated flow analysis and \
                 polynomial linear programme"
            }
        }
    }

    /// Whether a bound that `used` some methods is one of this method, which may have `refused` the
    /// network.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn accepts(self, used: Used, refused: Option<&String>) -> Result<(), String> {
        let name = match self {
            Self::Sfa if used.0 & Used::SFA.0 == 0 => "sfa",
            Self::Plp if used.0 & Used::PLP.0 == 0 => "plp",
            _ => return Ok(()),
        };
        Err(refused.cloned().unwrap_or_else(|| {
            format!("{name} covers no two hops of its path, or their network is too large")
        }))
    }
}

/// The methods behind a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used(u8);

impl Used {
    /// Total flow analysis.
    pub const TFA: Self = Self(1);
    /// Separated flow analysis.
    pub const SFA: Self = Self(2);
    /// The polynomial linear programme.
    pub const PLP: Self = Self(4);

    /// The names with `+` between them; none without a bound.
    pub fn names(self) -> Option<String> {
        let all = [(Self::TFA, "tfa"), (Self::SFA, "sfa"), (Self::PLP, "plp")];
        let names = all.into_iter().filter(|(one, _)| self.0 & one.0 != 0);
        let names: Vec<&str> = names.map(|(_, name)| name).collect();
        (!names.is_empty()).then(|| names.join("+"))
    }
}

impl BitOr for Used {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
