//! The mean of few independent values, such as the results of several seeds.

use std::f64::consts::FRAC_2_PI;

/// The mean of independent values with its 95 % confidence interval, which assumes that the values
/// are normally distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanEstimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation, with the divisor n - 1; 0 for one value.
    pub deviation: f64,
    /// Half of the interval's width; `None` for one value.
    pub half_width: Option<f64>,
}

impl MeanEstimate {
    /// Estimates the mean of the values; `None` without values.
    pub fn new(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        match n {
            0 => None,
            1 => Some(Self { mean, deviation: 0.0, half_width: None }),
            _ => {
                let deviation = (squares / (n - 1) as f64).sqrt();
                let half_width = Some(student_95(n - 1) * deviation / (n as f64).sqrt());
                Some(Self { mean, deviation, half_width })
            }
        }
    }
}

/// The probability that the absolute value of a number with Student's t distribution with `freedom`
/// degrees of freedom, at least 1, is at most `t` (Abramowitz and Stegun, "Handbook of Mathematical
/// Functions", 26.7.3 and 26.7.4).
fn student(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let (mut sum, mut power) = (0.0, if is_odd { 1 } else { 0 });
    while power + 2 <= freedom {
        sum += term;
        power += 2;
        term *= cosine * cosine * (power - 1) as f64 / power as f64;
    }
    if is_odd { FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// The value that the absolute value of a number with Student's t distribution exceeds with a
/// probability of 5 %, by bisection.
fn student_95(freedom: usize) -> f64 {
    // One degree of freedom has the largest value, 12.7.
    let (mut low, mut high) = (1.0, 13.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        *(if student(middle, freedom) < 0.95 { &mut low } else { &mut high }) = middle;
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Abramowitz and Stegun, table 26.10, column Q = 0.025.
    #[test]
    fn student_quantiles_match_published_values() {
        for (freedom, value) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (30, 2.042),
            (60, 2.000),
            (120, 1.980),
            (9_999, 1.960),
        ] {
            let found = student_95(freedom);
            assert!((found - value).abs() < 0.000_51, "{freedom}: {found}");
        }
    }

    #[test]
    fn interval_needs_two_values() {
        assert_eq!(MeanEstimate::new(&[]), None);
        let one = MeanEstimate::new(&[7.0]).unwrap();
        assert_eq!((one.mean, one.deviation, one.half_width), (7.0, 0.0, None));
        // Deviation 1, standard error 1 / sqrt 3.
        let three = MeanEstimate::new(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((three.mean, three.deviation), (2.0, 1.0));
        assert!((three.half_width.unwrap() - 4.302_653 / 3f64.sqrt()).abs() < 1e-5, "{three:?}");
    }
}
