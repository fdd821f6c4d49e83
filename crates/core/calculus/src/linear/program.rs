//! A linear programme: the largest value of a linear function under constraints.

use crate::curve::{Bound, Rational};
use num_traits::{One, Zero};
use std::collections::{BTreeMap, BTreeSet};

/// `coefficients * x <= limit`, with `limit` at least 0.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub coefficients: BTreeMap<usize, Rational>,
    pub limit: Rational,
}

/// Constraints on variables that are at least 0. All variables at 0 fulfil them.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    /// A usual value of each variable.
    pub scales: Vec<f64>,
    pub rows: Vec<Constraint>,
}

/// A basis: which variables are above 0, and which constraints hold with equality. As many of both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Basis {
    pub variables: BTreeSet<usize>,
    pub rows: BTreeSet<usize>,
}

/// A sum of variables with coefficients.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum(pub BTreeMap<usize, Rational>);

impl Sum {
    /// Adds `factor` times a variable; `None` is the constant 0.
    pub(super) fn add(&mut self, factor: &Rational, variable: Option<usize>) {
        let Some(variable) = variable else { return };
        let sum = self.0.remove(&variable).unwrap_or_else(Rational::zero) + factor;
        if !sum.is_zero() {
            self.0.insert(variable, sum);
        }
    }

    /// `plus - minus`.
    pub(super) fn difference(plus: Option<usize>, minus: Option<usize>) -> Self {
        let mut sum = Self::default();
        sum.add(&Rational::one(), plus);
        sum.add(&-Rational::one(), minus);
        sum
    }
}

impl Program {
    pub(super) fn variable(&mut self, scale: f64) -> usize {
        self.scales.push(scale);
        self.scales.len() - 1
    }

    /// Requires `sum <= limit`, unless it says nothing.
    pub(super) fn at_most(&mut self, sum: Sum, limit: Rational) {
        let bounds = sum.0.values().any(|coefficient| *coefficient > Rational::zero());
        if bounds {
            self.rows.push(Constraint { coefficients: sum.0, limit });
        }
    }

    /// The largest value of a variable; `None` if it has none.
    pub(super) fn maximum(&self, variable: usize) -> Bound {
        super::simplex::maximum(self, variable)
    }
}
