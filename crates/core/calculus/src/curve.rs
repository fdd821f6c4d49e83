//! Arrival curves, service curves, and the operations of min-plus algebra on them.
//!
//! Sources: Le Boudec and Thiran, "Network Calculus" (2001), sections 1.2 to 1.4 and 6.2;
//! Bouillard, Boyer and Le Corronc, "Deterministic Network Calculus" (2018), chapters 4, 5 and 7.

use num_traits::{One, ToPrimitive, Zero};

/// An exact number of any size: seconds, bits, or bits per second.
pub type Rational = num_rational::BigRational;

/// The nearest number in floating point.
pub fn to_f64(value: &Rational) -> f64 {
    value.to_f64().unwrap_or(f64::NAN)
}

/// A bound: `None` if no finite bound exists.
pub type Bound = Option<Rational>;

/// A token bucket: at most `burst + rate * t` bits in any time `t` above 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Bits at once.
    pub burst: Rational,
    /// Bits per second.
    pub rate: Rational,
}

/// A rate-latency function: `rate * (t - latency)` bits, at least 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLatency {
    /// Bits per second.
    pub rate: Rational,
    /// Seconds.
    pub latency: Rational,
}

/// The minimum of token buckets: concave and piecewise linear. The bits that a flow sends in any
/// time `t` above 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalCurve(Vec<TokenBucket>);

/// The maximum of rate-latency functions: convex and piecewise linear. The bits that a server
/// serves in the time `t`. Without a function, the server may serve nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceCurve(Vec<RateLatency>);

/// A straight line: its value at 0 and its slope.
type Line = (Rational, Rational);

/// Where two lines of different slopes meet.
fn crossing(a: &Line, b: &Line) -> Rational {
    (&b.0 - &a.0) / (&a.1 - &b.1)
}

/// The lines of which the minimum for `t` above 0 consists, by rising value at 0.
fn envelope(mut lines: Vec<Line>) -> Vec<Line> {
    lines.sort();
    let mut hull: Vec<Line> = Vec::new();
    for line in lines {
        if hull.last().is_some_and(|last| line.1 >= last.1) {
            continue;
        }
        while let [.., before, last] = &hull[..]
            && crossing(before, last) >= crossing(last, &line)
        {
            hull.pop();
        }
        hull.push(line);
    }
    hull
}

impl ArrivalCurve {
    /// The minimum of `buckets`, of which there must be one or more.
    ///
    /// # Panics
    ///
    /// If `buckets` is empty.
    pub fn new(buckets: impl IntoIterator<Item = TokenBucket>) -> Self {
        let lines = buckets.into_iter().map(|bucket| (bucket.burst, bucket.rate)).collect();
        let hull = envelope(lines);
        assert!(!hull.is_empty(), "an arrival curve has a token bucket");
        Self(hull.into_iter().map(|(burst, rate)| TokenBucket { burst, rate }).collect())
    }

    /// No arrivals.
    pub(crate) fn zero() -> Self {
        Self(vec![TokenBucket { burst: Rational::zero(), rate: Rational::zero() }])
    }

    /// Its token buckets, by rising burst and falling rate, without those that bound nothing.
    pub fn buckets(&self) -> &[TokenBucket] {
        &self.0
    }

    /// Bits at once.
    pub fn burst(&self) -> &Rational {
        &self.0[0].burst
    }

    /// Bits per second in the long run.
    pub fn rate(&self) -> &Rational {
        &self.0[self.0.len() - 1].rate
    }

    fn is_zero(&self) -> bool {
        self.burst().is_zero() && self.0[0].rate.is_zero()
    }

    /// The sum of two curves: arrivals of both flows.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let (mut i, mut j) = (0, 0);
        let mut sums = Vec::new();
        loop {
            let (a, b) = (&self.0[i], &other.0[j]);
            sums.push(TokenBucket { burst: &a.burst + &b.burst, rate: &a.rate + &b.rate });
            match (self.corner(i + 1), other.corner(j + 1)) {
                (None, None) => return Self::new(sums),
                (Some(here), there) if there.as_ref().is_none_or(|there| here <= *there) => i += 1,
                _ => j += 1,
            }
        }
    }

    /// Sum of `curves`.
    pub(crate) fn sum<'a>(curves: impl IntoIterator<Item = &'a Self>) -> Self {
        curves.into_iter().fold(Self::zero(), |sum, curve| sum.plus(curve))
    }

    /// The minimum of both curves.
    pub(crate) fn min(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).cloned())
    }

    /// The minimum with one more token bucket.
    pub(crate) fn shaped(&self, bucket: &TokenBucket) -> Self {
        Self::new(self.0.iter().chain([bucket]).cloned())
    }

    /// The curve of a flow behind an element that delays it by 0 to `delay` seconds.
    pub(crate) fn delayed(&self, delay: &Rational) -> Self {
        let later = |bucket: &TokenBucket| TokenBucket {
            burst: &bucket.burst + &bucket.rate * delay,
            rate: bucket.rate.clone(),
        };
        Self::new(self.0.iter().map(later))
    }

    /// A curve of the departures from a server with `service`: each token bucket's deconvolution by
    /// `service`. `None` if the service is too slow.
    pub(crate) fn output(&self, service: &ServiceCurve) -> Option<Self> {
        let outputs: Vec<_> = self
            .0
            .iter()
            .filter_map(|bucket| {
                let alone = Self(vec![bucket.clone()]);
                Some(TokenBucket { burst: alone.backlog(service)?, rate: bucket.rate.clone() })
            })
            .collect();
        (!outputs.is_empty()).then(|| Self::new(outputs))
    }

    /// Where bucket `index` takes over from the one before.
    fn corner(&self, index: usize) -> Option<Rational> {
        let (before, bucket) = (&self.0[index - 1], self.0.get(index)?);
        Some((&bucket.burst - &before.burst) / (&before.rate - &bucket.rate))
    }

    /// 0 and the times of corners.
    fn corners(&self) -> impl Iterator<Item = Rational> {
        let bends = (1..self.0.len()).filter_map(|index| self.corner(index));
        [Rational::zero()].into_iter().chain(bends)
    }

    /// Bits in a time just above `time`.
    fn at(&self, time: &Rational) -> Rational {
        let bits = self.0.iter().map(|bucket| &bucket.burst + &bucket.rate * time);
        bits.min().unwrap_or_else(Rational::zero)
    }

    /// The shortest time in which `bits` may arrive, if any.
    fn inverse(&self, bits: &Rational) -> Option<Rational> {
        let mut longest = Rational::zero();
        for bucket in &self.0 {
            let beyond = bits - &bucket.burst;
            if beyond > Rational::zero() {
                if bucket.rate.is_zero() {
                    return None;
                }
                longest = longest.max(beyond / &bucket.rate);
            }
        }
        Some(longest)
    }

    /// The largest delay in a server that serves in order of arrival: the horizontal deviation.
    pub fn delay_fifo(&self, service: &ServiceCurve) -> Bound {
        if self.is_zero() {
            return Some(Rational::zero());
        }
        if self.rate() > service.rate()? {
            return None;
        }
        let heights = self.corners().map(|time| self.at(&time));
        let heights = heights.chain(service.corners().map(|time| service.at(&time)));
        heights.filter_map(|bits| Some(service.inverse(&bits)? - self.inverse(&bits)?)).max()
    }

    /// The largest delay in a server that serves in any order: the longest time until the service
    /// exceeds the arrivals.
    pub fn delay_arbitrary(&self, service: &ServiceCurve) -> Bound {
        let zero = Rational::zero();
        if self.is_zero() {
            return Some(zero);
        }
        let meet = |bucket: &TokenBucket, service: &RateLatency| {
            let left = &service.rate - &bucket.rate;
            let due = &bucket.burst + &service.rate * &service.latency;
            (left > zero).then(|| due / left)
        };
        let pairs = self.0.iter().flat_map(|bucket| service.0.iter().map(move |s| (bucket, s)));
        pairs.filter_map(|(bucket, service)| meet(bucket, service)).min()
    }

    /// The most bits in the server: the vertical deviation.
    pub fn backlog(&self, service: &ServiceCurve) -> Bound {
        if self.is_zero() {
            return Some(Rational::zero());
        }
        if self.rate() > service.rate()? {
            return None;
        }
        let times = self.corners().chain(service.corners());
        times.map(|time| self.at(&time) - service.at(&time)).max()
    }
}

impl ServiceCurve {
    /// The maximum of `functions`.
    pub fn new(functions: impl IntoIterator<Item = RateLatency>) -> Self {
        let line = |it: RateLatency| (&it.rate * it.latency, -it.rate);
        let nothing = (Rational::zero(), Rational::zero());
        let lines = functions.into_iter().map(line).chain([nothing]).collect();
        let back = |(due, slope): Line| RateLatency { latency: due / -&slope, rate: -slope };
        let serving = |line: &Line| !line.1.is_zero();
        Self(envelope(lines).into_iter().filter(serving).map(back).collect())
    }

    /// Its rate-latency functions, by rising latency and rate, without those that bound nothing.
    pub fn functions(&self) -> &[RateLatency] {
        &self.0
    }

    /// Bits per second in the long run; `None` if it may serve nothing.
    pub(crate) fn rate(&self) -> Option<&Rational> {
        self.0.last().map(|function| &function.rate)
    }

    /// The times of its corners: the latency first.
    fn corners(&self) -> impl Iterator<Item = Rational> {
        let line = |it: &RateLatency| (-(&it.rate * &it.latency), it.rate.clone());
        let bends = self.0.windows(2).map(move |pair| crossing(&line(&pair[0]), &line(&pair[1])));
        self.0.first().map(|function| function.latency.clone()).into_iter().chain(bends)
    }

    fn at(&self, time: &Rational) -> Rational {
        let bits = self.0.iter().map(|function| &function.rate * (time - &function.latency));
        bits.fold(Rational::zero(), Rational::max)
    }

    /// The time in which `bits` are served.
    fn inverse(&self, bits: &Rational) -> Option<Rational> {
        self.0.iter().map(|function| &function.latency + bits / &function.rate).min()
    }

    /// The service that remains for one flow if `cross` is served in order of arrival with it: the
    /// member of the left-over family with theta = the time in which a burst of `cross` is served,
    /// the choice of DNC and panco (Le Boudec and Thiran, proposition 6.2.1).
    pub(crate) fn left_over_fifo(&self, cross: &ArrivalCurve) -> Self {
        let Some(theta) = self.inverse(cross.burst()) else { return Self(Vec::new()) };
        self.less(cross, &theta)
    }

    /// The service that remains if `cross` may be served first (theorem 6.2.1).
    pub(crate) fn left_over_arbitrary(&self, cross: &ArrivalCurve) -> Self {
        self.less(cross, &Rational::zero())
    }

    /// `self(t) - cross(t - theta)`, at least 0. It must not be positive before `theta`.
    fn less(&self, cross: &ArrivalCurve, theta: &Rational) -> Self {
        let pairs = self.0.iter().flat_map(|s| cross.0.iter().map(move |bucket| (s, bucket)));
        Self::new(pairs.filter_map(|(service, bucket)| {
            let rate = &service.rate - &bucket.rate;
            let due = &service.rate * &service.latency + &bucket.burst - &bucket.rate * theta;
            (rate > Rational::zero()).then(|| RateLatency { latency: due / &rate, rate })
        }))
    }

    /// The service of both servers one after the other: the convolution. Segments of both curves
    /// follow each other by rising slope.
    pub(crate) fn then(&self, other: &Self) -> Self {
        let (Some(first), Some(second)) = (self.rate(), other.rate()) else {
            return Self(Vec::new());
        };
        let last = first.min(second).clone();
        let mut segments: Vec<_> = self.segments().chain(other.segments()).collect();
        segments.retain(|(slope, _)| *slope < last);
        segments.sort();
        let (mut time, mut bits) = (Rational::zero(), Rational::zero());
        let mut functions = Vec::new();
        for (slope, length) in segments.into_iter().chain([(last, Rational::one())]) {
            if slope > Rational::zero() {
                functions
                    .push(RateLatency { latency: &time - &bits / &slope, rate: slope.clone() });
            }
            bits += &slope * &length;
            time += length;
        }
        Self::new(functions)
    }

    /// The finite segments: slope and length in seconds.
    fn segments(&self) -> impl Iterator<Item = (Rational, Rational)> {
        let ends: Vec<_> = self.corners().collect();
        let slopes = [Rational::zero()].into_iter();
        let slopes = slopes.chain(self.0.iter().map(|function| function.rate.clone()));
        let starts = [Rational::zero()].into_iter().chain(ends.clone());
        slopes.zip(starts.zip(ends)).map(|(slope, (start, end))| (slope, end - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Rational {
        text.parse().expect("a fraction")
    }

    fn arrival(buckets: &[(&str, &str)]) -> ArrivalCurve {
        let bucket =
            |&(burst, rate): &(&str, &str)| TokenBucket { burst: exact(burst), rate: exact(rate) };
        ArrivalCurve::new(buckets.iter().map(bucket))
    }

    fn service(functions: &[(&str, &str)]) -> ServiceCurve {
        let function = |&(rate, latency): &(&str, &str)| RateLatency {
            rate: exact(rate),
            latency: exact(latency),
        };
        ServiceCurve::new(functions.iter().map(function))
    }

    #[test]
    fn functions_that_bound_nothing_are_left_out() {
        // The second touches the crossing of the others at t = 2, the third is above all.
        assert_eq!(
            arrival(&[("1", "4"), ("5", "2"), ("9", "3"), ("7", "1")]),
            arrival(&[("1", "4"), ("7", "1")])
        );
        assert_eq!(service(&[("4", "1"), ("2", "2"), ("1", "3")]), service(&[("4", "1")]));
    }

    #[test]
    fn deviations_of_curves_with_two_pieces() {
        // Arrivals bend at t = 2 from 9 bits on, service at t = 3 from 2 bits on.
        let arrival = arrival(&[("1", "4"), ("7", "1")]);
        let service = service(&[("1", "1"), ("5", "13/5")]);
        // Bit 2 of t = 1/4 leaves at 3; bit 9 of t = 2 already at 22/5.
        assert_eq!(arrival.delay_fifo(&service), Some(exact("11/4")));
        // At t = 3: 10 bits less 2; at t = 2: 9 less 1.
        assert_eq!(arrival.backlog(&service), Some(exact("8")));
        // 7 + t = 5 t - 13.
        assert_eq!(arrival.delay_arbitrary(&service), Some(exact("5")));
        assert_eq!(arrival.delay_fifo(&super::ServiceCurve::new([])), None);
    }

    #[test]
    fn sums_and_servers_in_a_row_join_pieces() {
        let sum = arrival(&[("1", "4"), ("7", "1")]).plus(&arrival(&[("0", "5"), ("3", "2")]));
        // Bends at t = 1 and t = 2.
        assert_eq!(sum, arrival(&[("1", "9"), ("4", "6"), ("10", "3")]));
        let row = service(&[("1", "1"), ("5", "13/5")]).then(&service(&[("3", "2")]));
        // Latency 3, then slope 1 for 2 s (the first server's first piece), then slope 3.
        assert_eq!(row, service(&[("1", "3"), ("3", "13/3")]));
    }

    #[test]
    fn left_over_service_is_later_in_any_order() {
        let (service, cross) = (service(&[("20", "20")]), arrival(&[("25", "5")]));
        let function = |curve: ServiceCurve| curve.functions()[0].clone();
        let left = function(service.left_over_fifo(&cross));
        assert_eq!((left.rate, left.latency), (exact("15"), exact("85/4")));
        let left = function(service.left_over_arbitrary(&cross));
        assert_eq!((left.rate, left.latency), (exact("15"), exact("85/3")));
        assert!(service.left_over_fifo(&arrival(&[("0", "20")])).functions().is_empty());
    }
}
