//! The simplex method in floating point: steps from one basis to a better one.

use super::program::{Basis, Program};
use num_traits::ToPrimitive;

/// Steps, as a multiple of variables and constraints.
const STEPS: usize = 20;

/// Below this, a pivot or a missing amount is noise.
const NOISE: f64 = 1e-9;

/// The tableau: a row for each constraint and the objective; a column for each variable, the limit
/// with noise, and the limit, after scaling.
struct Tableau {
    cells: Vec<Vec<f64>>,
    /// Below the number of variables a variable, else the slack of a constraint.
    basic: Vec<usize>,
    free: Vec<usize>,
    /// Size of a unit of each variable and slack.
    units: Vec<f64>,
    /// Below this, a gain is noise.
    no_gain: f64,
}

/// A basis at which the objective is probably larger than at `basis`, where variables and slacks
/// have exact `values`, and a unit of a free one adds `gains`. `None` if the objective seems to grow
/// without end.
///
/// Gains shrink with each server by the share of a stream in it, so the smallest would be noise in
/// the tableau; with exact ones at the start they are not.
pub(super) fn improved(
    program: &Program,
    basis: &Basis,
    values: impl Fn(usize) -> f64,
    gains: impl Fn(usize) -> f64,
) -> Option<Basis> {
    let mut tableau = Tableau::new(program);
    tableau.enter(basis);
    tableau.set(values, gains);
    tableau.improve()?;
    Some(tableau.basis())
}

impl Tableau {
    fn new(program: &Program) -> Self {
        let (variables, rows) = (program.scales.len(), program.rows.len());
        let mut cells = vec![vec![0.0; variables + 2]; rows + 1];
        let mut units = program.scales.clone();
        for (cells, row) in cells.iter_mut().zip(&program.rows) {
            for (&column, value) in &row.coefficients {
                cells[column] = value.to_f64().unwrap_or(0.0) * program.scales[column];
            }
            // The largest number of a row is 1.
            let most = cells.iter().fold(0.0_f64, |most, cell| most.max(cell.abs()));
            cells.iter_mut().for_each(|cell| *cell /= most.max(f64::MIN_POSITIVE));
            units.push(most);
        }
        let basic = (variables..variables + rows).collect();
        Self { cells, basic, free: (0..variables).collect(), units, no_gain: 0.0 }
    }

    /// Sets limits and objective.
    fn set(&mut self, values: impl Fn(usize) -> f64, gains: impl Fn(usize) -> f64) {
        let (last, objective) = (self.free.len(), self.basic.len());
        // Different small additions to the limits break ties, which would cost steps or cycle.
        let mut noise = 0.5_f64;
        for (row, &basic) in self.basic.iter().enumerate() {
            let value = values(basic) / self.units[basic];
            noise = (noise + 0.618_033_988_749_895).fract();
            self.cells[row][last] = value.max(0.0) + 1e-6 * (1.0 + noise);
            self.cells[row][last + 1] = value;
        }
        for (column, &free) in self.free.iter().enumerate() {
            self.cells[objective][column] = gains(free) * self.units[free];
        }
        let most = self.cells[objective][..last].iter().fold(0.0_f64, |most, &gain| most.max(gain));
        self.no_gain = most * NOISE;
    }

    /// Steps to the best basis. `None` if the objective seems to grow without end.
    fn improve(&mut self) -> Option<()> {
        let most = STEPS * (self.basic.len() + self.free.len());
        let mut steps = 0;
        while let Some(column) = self.entering().filter(|_| steps < most) {
            let row = self.leaving(column)?;
            self.pivot(row, column);
            steps += 1;
        }
        // What holds with noise in the limits may not hold without.
        while let Some(row) = self.broken().filter(|_| steps < most) {
            let Some(column) = self.repairing(row) else { break };
            self.pivot(row, column);
            steps += 1;
        }
        Some(())
    }

    /// Steps straight to a basis.
    fn enter(&mut self, basis: &Basis) {
        let variables = self.free.len();
        for &variable in &basis.variables {
            let left = basis.rows.iter().copied().filter(|&row| self.basic[row] == variables + row);
            let size = |row: usize| self.cells[row][variable].abs();
            let Some(row) = left.max_by(|&a, &b| size(a).total_cmp(&size(b))) else { continue };
            if size(row) > NOISE {
                self.pivot(row, variable);
            }
        }
    }

    fn basis(&self) -> Basis {
        let variables = self.free.len();
        let basic = self.basic.iter().copied().filter(|&it| it < variables);
        let tight = self.free.iter().filter_map(|it| it.checked_sub(variables));
        Basis { variables: basic.collect(), rows: tight.collect() }
    }

    /// The column whose variable raises the objective most per unit.
    fn entering(&self) -> Option<usize> {
        let objective = &self.cells[self.basic.len()];
        let columns = (0..self.free.len()).filter(|&column| objective[column] > self.no_gain);
        columns.max_by(|&a, &b| objective[a].total_cmp(&objective[b]))
    }

    /// The row that limits the variable of a column first; of those that nearly do, the one with the
    /// largest pivot (Harris).
    fn leaving(&self, column: usize) -> Option<usize> {
        let last = self.free.len();
        let pivot = |row: usize| self.cells[row][column];
        let ratio = |row: usize, more: f64| (self.cells[row][last] + more) / pivot(row);
        let rows = || (0..self.basic.len()).filter(|&row| pivot(row) > NOISE);
        let most = rows().map(|row| ratio(row, NOISE)).min_by(f64::total_cmp)?;
        let rows = rows().filter(|&row| ratio(row, 0.0) <= most);
        rows.max_by(|&a, &b| pivot(a).total_cmp(&pivot(b)))
    }

    /// The row whose value is below 0 without noise, most of all.
    fn broken(&self) -> Option<usize> {
        let value = |row: usize| self.cells[row][self.free.len() + 1];
        let rows = (0..self.basic.len()).filter(|&row| value(row) < -NOISE);
        rows.min_by(|&a, &b| value(a).total_cmp(&value(b)))
    }

    /// The column that repairs a row at the least cost.
    fn repairing(&self, row: usize) -> Option<usize> {
        let (objective, cells) = (&self.cells[self.basic.len()], &self.cells[row]);
        let ratio = |column: usize| objective[column].min(0.0) / cells[column];
        let columns = (0..self.free.len()).filter(|&column| cells[column] < -NOISE);
        columns.min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)))
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let mut pivot = std::mem::take(&mut self.cells[row]);
        let factor = 1.0 / pivot[column];
        pivot[column] = 1.0;
        pivot.iter_mut().for_each(|cell| *cell *= factor);
        for cells in self.cells.iter_mut().filter(|cells| !cells.is_empty()) {
            let times = std::mem::replace(&mut cells[column], 0.0);
            if times != 0.0 {
                for (cell, value) in cells.iter_mut().zip(&pivot) {
                    *cell -= times * value;
                }
            }
        }
        self.cells[row] = pivot;
        std::mem::swap(&mut self.basic[row], &mut self.free[column]);
    }
}
