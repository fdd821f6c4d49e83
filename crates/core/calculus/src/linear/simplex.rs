//! The simplex method: floating point finds a basis, exact arithmetic proves it.
//!
//! A basis is the best if its variables fulfil all constraints, and its prices those of the dual
//! programme, exactly. Otherwise floating point starts again from the exact numbers of the basis
//! (Gleixner, Steffy and Wolter, "Iterative Refinement for Linear Programming", INFORMS Journal on
//! Computing 28(3), 2016), and in the end exact steps follow.

use super::float;
use super::program::{Basis, Program};
use crate::curve::{Bound, Rational, to_f64};
use crate::exact::{Row, solve};
use num_traits::{One, Signed, Zero};
use std::collections::BTreeMap;

/// How often floating point starts.
const STARTS: usize = 12;

/// The largest value of a variable; `None` if it has none.
pub(super) fn maximum(program: &Program, objective: usize) -> Bound {
    let mut exact = Exact { program, objective, basis: Basis::default() };
    let mut point = exact.point()?;
    for _ in 0..STARTS {
        if point.is_best() {
            return point.value(objective);
        }
        let number = |of: &BTreeMap<Column, Rational>, column| of.get(&column).map_or(0.0, to_f64);
        let values = |column| number(&point.values, column);
        let gains = |column| number(&point.gains, column);
        let basis = float::improved(program, &exact.basis, values, gains);
        let Some(basis) = basis.filter(|basis| *basis != exact.basis) else { break };
        let next = Exact { basis, ..exact };
        let Some(at) = next.point() else { break };
        (exact, point) = (next, at);
    }
    exact.run()
}

/// Below the number of variables a variable, else the slack of a constraint.
type Column = usize;

struct Exact<'a> {
    program: &'a Program,
    objective: usize,
    basis: Basis,
}

/// The corner of a basis.
struct Point {
    /// Basic variables and slacks.
    values: BTreeMap<Column, Rational>,
    /// What a unit of each free variable or slack adds to the objective.
    gains: BTreeMap<Column, Rational>,
}

impl Point {
    fn entering(&self) -> Option<Column> {
        self.gains.iter().find(|(_, gain)| gain.is_positive()).map(|(&column, _)| column)
    }

    fn broken(&self) -> Option<Column> {
        self.values.iter().find(|(_, value)| value.is_negative()).map(|(&column, _)| column)
    }

    fn is_best(&self) -> bool {
        self.broken().is_none() && self.entering().is_none()
    }

    fn value(&self, objective: usize) -> Bound {
        Some(self.values.get(&objective).cloned().unwrap_or_else(Rational::zero))
    }
}

impl Exact<'_> {
    /// Steps to the best corner, by the primal or the dual method. The first candidate is taken
    /// (Bland's rule), so that no corner comes twice.
    fn run(mut self) -> Bound {
        loop {
            let point = self.point()?;
            let (enter, leave) = match (point.broken(), point.entering()) {
                (None, None) => return point.value(self.objective),
                (None, Some(enter)) => (enter, self.leaving(&point, enter)?),
                (Some(leave), _) => (self.entering(&point, leave)?, leave),
            };
            self.swap(enter, leave);
        }
    }

    fn swap(&mut self, enter: Column, leave: Column) {
        match enter.checked_sub(self.program.scales.len()) {
            None => self.basis.variables.insert(enter),
            Some(row) => self.basis.rows.remove(&row),
        };
        match leave.checked_sub(self.program.scales.len()) {
            None => self.basis.variables.remove(&leave),
            Some(row) => self.basis.rows.insert(row),
        };
    }

    fn slack_of(&self, row: usize) -> Column {
        self.program.scales.len() + row
    }

    /// The matrix of tight rows and basic variables, by position in both sets, or its transpose.
    fn matrix(&self, transposed: bool) -> Vec<Row> {
        let position: BTreeMap<_, _> =
            self.basis.variables.iter().enumerate().map(|(at, &variable)| (variable, at)).collect();
        let mut matrix = vec![Row::new(); self.basis.rows.len()];
        for (at, &row) in self.basis.rows.iter().enumerate() {
            for (variable, value) in &self.program.rows[row].coefficients {
                let Some(&column) = position.get(variable) else { continue };
                let (row, column) = if transposed { (column, at) } else { (at, column) };
                matrix[row].insert(column, value.clone());
            }
        }
        matrix
    }

    /// A sum over the basic variables.
    fn dot(&self, row: usize, values: &BTreeMap<usize, Rational>) -> Rational {
        let coefficients = &self.program.rows[row].coefficients;
        coefficients.iter().filter_map(|(it, value)| Some(value * values.get(it)?)).sum()
    }

    /// For each variable, the sum of tight rows with `prices`.
    fn priced(&self, prices: &[Rational]) -> Vec<Rational> {
        let mut sums = vec![Rational::zero(); self.program.scales.len()];
        for (&row, price) in
            self.basis.rows.iter().zip(prices).filter(|(_, price)| !price.is_zero())
        {
            for (&variable, value) in &self.program.rows[row].coefficients {
                sums[variable] += price * value;
            }
        }
        sums
    }

    fn point(&self) -> Option<Point> {
        if self.basis.variables.len() != self.basis.rows.len() {
            return None;
        }
        let limits =
            self.basis.rows.iter().map(|&row| self.program.rows[row].limit.clone()).collect();
        let solution = solve(self.matrix(false), limits)?;
        let mut values: BTreeMap<_, _> =
            self.basis.variables.iter().copied().zip(solution).collect();
        let free = (0..self.program.rows.len()).filter(|row| !self.basis.rows.contains(row));
        let slack = |row: usize| self.program.rows[row].limit.clone() - self.dot(row, &values);
        let slacks: Vec<_> = free.map(|row| (self.slack_of(row), slack(row))).collect();
        values.extend(slacks);

        let unit = |&variable: &usize| {
            if variable == self.objective { Rational::one() } else { Rational::zero() }
        };
        let prices = solve(self.matrix(true), self.basis.variables.iter().map(unit).collect())?;
        let sums = self.priced(&prices);
        let others = (0..self.program.scales.len()).filter(|it| !self.basis.variables.contains(it));
        let mut gains: BTreeMap<_, _> =
            others.map(|variable| (variable, unit(&variable) - &sums[variable])).collect();
        gains.extend(
            self.basis.rows.iter().zip(prices).map(|(&row, price)| (self.slack_of(row), -price)),
        );
        Some(Point { values, gains })
    }

    /// Which variable or slack becomes 0 first if `enter` grows.
    fn leaving(&self, point: &Point, enter: Column) -> Option<Column> {
        let variables = self.program.scales.len();
        let column = |&row: &usize| {
            let coefficients = &self.program.rows[row].coefficients;
            match enter.checked_sub(variables) {
                None => coefficients.get(&enter).cloned().unwrap_or_else(Rational::zero),
                Some(slack) if slack == row => Rational::one(),
                Some(_) => Rational::zero(),
            }
        };
        let changes =
            solve(self.matrix(false), self.basis.rows.iter().map(|row| -column(row)).collect())?;
        let changes: BTreeMap<_, _> = self.basis.variables.iter().copied().zip(changes).collect();
        let change = |basic: Column| match basic.checked_sub(variables) {
            None => changes.get(&basic).cloned().unwrap_or_else(Rational::zero),
            Some(row) => -(column(&row) + self.dot(row, &changes)),
        };
        let ratios = point.values.iter().filter_map(|(&basic, value)| {
            let change = change(basic);
            change.is_negative().then(|| (value / -change, basic))
        });
        ratios.min().map(|(_, basic)| basic)
    }

    /// Which free variable or slack repairs `leave`, which is negative, at the least cost.
    fn entering(&self, point: &Point, leave: Column) -> Option<Column> {
        let variables = self.program.scales.len();
        let slack = leave.checked_sub(variables);
        let right = |&variable: &usize| match slack {
            None if variable == leave => Rational::one(),
            None => Rational::zero(),
            Some(row) => {
                self.program.rows[row].coefficients.get(&variable).cloned().unwrap_or_default()
            }
        };
        let prices = solve(self.matrix(true), self.basis.variables.iter().map(right).collect())?;
        let sums = self.priced(&prices);
        let prices: BTreeMap<_, _> = self.basis.rows.iter().copied().zip(prices).collect();
        let zero = Rational::zero();
        // What a unit of a free variable or slack adds to `leave`.
        let effect = |free: Column| {
            let (effect, own) = match free.checked_sub(variables) {
                None => (sums[free].clone(), slack.map(|row| right_of(self.program, row, free))),
                Some(row) => (prices[&row].clone(), None),
            };
            if slack.is_some() { effect - own.unwrap_or_default() } else { -effect }
        };
        let ratios = point.gains.iter().filter_map(|(&free, gain)| {
            let effect = effect(free);
            // A positive gain is for the primal method, which follows.
            effect.is_positive().then(|| ((-gain).max(zero.clone()) / effect, free))
        });
        ratios.min().map(|(_, free)| free)
    }
}

fn right_of(program: &Program, row: usize, variable: usize) -> Rational {
    program.rows[row].coefficients.get(&variable).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::program::Sum;
    use super::*;
    use proptest::prelude::*;

    /// Constraints with small whole numbers, and a limit for each variable.
    fn programs() -> impl Strategy<Value = Program> {
        let row = (prop::collection::vec(-2..4_i32, 4), 0..3_i32);
        prop::collection::vec(row, 1..7).prop_map(|rows| {
            let mut program = Program { scales: vec![1.0; 4], rows: Vec::new() };
            let whole = |number: i32| Rational::from_integer(number.into());
            for (coefficients, limit) in rows {
                let mut sum = Sum::default();
                for (variable, value) in coefficients.into_iter().enumerate() {
                    sum.add(&whole(value), Some(variable));
                }
                program.at_most(sum, whole(limit));
            }
            for variable in 0..4 {
                program.at_most(Sum::difference(Some(variable), None), whole(10));
            }
            program
        })
    }

    proptest! {
        #[test]
        fn guess_and_exact_steps_from_zero_agree(program in programs()) {
            prop_assert_eq!(maximum(&program, 0), Exact { program: &program, objective: 0, basis: Basis::default() }.run());
        }

        /// The best basis for other limits, which the dual method repairs.
        #[test]
        fn best_basis_of_other_limits_leads_to_the_same_value(program in programs(), more in 1..9_i32) {
            let mut other = program.clone();
            for (at, row) in other.rows.iter_mut().enumerate() {
                row.limit += Rational::from_integer((more * at as i32 % 5).into());
            }
            let value = |_: usize| 1.0;
            let gain = |column: usize| if column == 0 { 1.0 } else { 0.0 };
            let basis = float::improved(&other, &Basis::default(), value, gain).expect("a limit");
            let exact = Exact { program: &program, objective: 0, basis };
            prop_assume!(exact.point().is_some());
            prop_assert_eq!(exact.run(), maximum(&program, 0));
        }
    }

    #[test]
    fn objective_without_limit_has_no_maximum() {
        let mut program = Program { scales: vec![1.0; 2], rows: Vec::new() };
        program.at_most(Sum::difference(Some(0), Some(1)), Rational::one());
        assert_eq!(maximum(&program, 0), None);
    }
}
