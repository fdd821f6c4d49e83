//! Names that a plan chooses.

use crate::unknown;
use std::collections::BTreeMap;
use std::ops::{Deref, Range};

/// Names in the order of the plan, with an index by name.
#[derive(Clone, Debug, Default)]
pub struct Names {
    all: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Names {
    /// Adds a name; returns false if it exists already.
    pub fn add(&mut self, name: String) -> bool {
        let new = self.numbers.insert(name.clone(), self.all.len()).is_none();
        self.all.push(name);
        new
    }

    /// Returns the index of a name within the range `among`.
    ///
    /// # Errors
    /// If no name in the range equals `name`. The message lists the names in the range.
    pub fn find(&self, among: Range<usize>, kind: &str, name: &str) -> Result<usize, String> {
        let known = || self.all[among.clone()].iter().map(String::as_str).collect::<Vec<_>>();
        let found = self.numbers.get(name).copied().filter(|at| among.contains(at));
        found.ok_or_else(|| unknown(kind, name, &known()))
    }
}

impl Deref for Names {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.all
    }
}

impl FromIterator<String> for Names {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        let mut all = Self::default();
        for name in names {
            all.add(name);
        }
        all
    }
}
