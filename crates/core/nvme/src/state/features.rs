//! The record `features`: saved values.

use super::check::{self, Check, Problem};
use super::{MAX_CONTROLLER, MAX_NAMESPACES};
use crate::features;
use serde::{Deserialize, Serialize};

/// A value that a host has saved (Set Features with SV, NVMe 1.4, section 5.21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedFeature {
    /// CNTLID of the controller.
    pub controller: u16,
    /// Feature identifier, for which saving is allowed.
    pub feature: u8,
    /// NSID for a feature of namespaces, otherwise 0.
    pub nsid: u32,
    /// Command dword 11 of the Set Features command.
    pub value: u32,
}

impl SavedFeature {
    /// Whether both are values of the same feature, so that one replaces the other.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let key = |one: &Self| {
            let selector = features::selector(one.feature, one.value);
            (one.controller, one.feature, one.nsid, selector)
        };
        key(self) == key(other)
    }
}

impl Check for SavedFeature {
    fn check(&self) -> Result<(), Problem> {
        check::range("controller", self.controller, 1, MAX_CONTROLLER)?;
        if !features::is_saveable(self.feature) {
            return Err(format!("feature: {} cannot be saved", self.feature));
        }
        let most = if features::is_of_namespaces(self.feature) { MAX_NAMESPACES } else { 0 };
        check::range("nsid", self.nsid, most.min(1), most)?;
        if features::check(self.feature, self.value).is_err() {
            return Err(format!("value: invalid '{1}' for feature {0}", self.feature, self.value));
        }
        Ok(())
    }
}
