//! Systems of linear equations, exactly.

use crate::curve::Rational;
use num_traits::Zero;
use std::collections::BTreeMap;

/// A row of a sparse matrix, without zeros.
pub(crate) type Row = BTreeMap<usize, Rational>;

/// The solution of `rows * x = right`, by Gaussian elimination; `None` if there is not exactly one.
/// Rows with few entries are eliminated first, so that few entries appear.
pub(crate) fn solve(mut rows: Vec<Row>, mut right: Vec<Rational>) -> Option<Vec<Rational>> {
    let size = rows.len();
    let mut pivots: Vec<(usize, usize)> = Vec::with_capacity(size);
    let mut left: Vec<usize> = (0..size).collect();
    while !left.is_empty() {
        let (at, &row) = left.iter().enumerate().min_by_key(|(_, row)| rows[**row].len())?;
        left.swap_remove(at);
        let uses =
            |column: usize| left.iter().filter(|&&it| rows[it].contains_key(&column)).count();
        let column = rows[row].keys().copied().min_by_key(|&column| uses(column))?;
        let pivot = rows[row][&column].clone();
        for &other in &left {
            let Some(entry) = rows[other].remove(&column) else { continue };
            let factor = entry / &pivot;
            let (from, to) = two(&mut rows, row, other);
            for (&at, value) in from.iter().filter(|(at, _)| **at != column) {
                let sum = to.remove(&at).unwrap_or_else(Rational::zero) - &factor * value;
                if !sum.is_zero() {
                    to.insert(at, sum);
                }
            }
            let change = &factor * &right[row];
            right[other] -= change;
        }
        pivots.push((row, column));
    }
    let mut solution = vec![Rational::zero(); size];
    for &(row, column) in pivots.iter().rev() {
        let others = rows[row].iter().filter(|(at, _)| **at != column);
        let known: Rational = others.map(|(&at, value)| value * &solution[at]).sum();
        solution[column] = (&right[row] - known) / &rows[row][&column];
    }
    Some(solution)
}

/// One row to read and another to change.
fn two(rows: &mut [Row], read: usize, change: usize) -> (&Row, &mut Row) {
    let [read, change] = rows.get_disjoint_mut([read, change]).expect("two different rows");
    (read, change)
}
