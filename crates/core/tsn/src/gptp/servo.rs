//! The PI servo of linuxptp (`pi.c`, and `servo.c` for the first update), in integers.
//!
//! Offsets are in picoseconds, frequencies in parts per 10^12. In these units a gain, in 1/s, has
//! the same value as in linuxptp, which uses nanoseconds and parts per 10^9.

use wire::Duration;

/// A gain of 1; gains are multiples of 10^-12.
const ONE: i128 = 1_000_000_000_000;

/// 2^(k/10) for k from 0 to 9, times 10^12, rounded.
const ROOTS: [i128; 10] = [
    1_000_000_000_000,
    1_071_773_462_536,
    1_148_698_354_997,
    1_231_144_413_345,
    1_319_507_910_773,
    1_414_213_562_373,
    1_515_716_566_510,
    1_624_504_792_713,
    1_741_101_126_592,
    1_866_065_983_074,
];

/// Where time stamps are taken. linuxptp uses other gains for software time stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamping {
    /// At the MAC.
    #[default]
    Hardware,
    /// In software, above the queues.
    Software,
}

impl Stamping {
    /// `HWTS_KP_SCALE` and `HWTS_KI_SCALE` of `pi.c`, or `SWTS_KP_SCALE` and `SWTS_KI_SCALE`,
    /// times 10^12.
    const fn scales(self) -> (i128, i128) {
        match self {
            Self::Hardware => (7 * ONE / 10, 3 * ONE / 10),
            Self::Software => (ONE / 10, ONE / 1_000),
        }
    }
}

/// The gains of a servo, in 10^-12 per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gains {
    /// Gain of the offset.
    pub proportional: i64,
    /// Gain of the sum of offsets.
    pub integral: i64,
}

impl Gains {
    /// min(kp_scale * s^-0.3, 0.7 / s) and min(ki_scale * s^0.4, 0.3 / s) for a sync interval of
    /// s = 2^`log_interval` seconds (ptp4l(8): `pi_proportional_exponent`, `pi_integral_exponent`
    /// and both `_norm_max` of linuxptp's default configuration). `log_interval` is -20 to 20.
    pub fn new(stamping: Stamping, log_interval: i8) -> Self {
        let log = i32::from(log_interval.clamp(-20, 20));
        let (kp, ki) = stamping.scales();
        let norm = |most: i128| shifted(most, -log);
        let proportional = (kp * power(-3 * log) / ONE).min(norm(7 * ONE / 10));
        let integral = (ki * power(4 * log) / ONE).min(norm(3 * ONE / 10));
        Self { proportional: proportional as i64, integral: integral as i64 }
    }
}

/// 2^(tenths/10), times 10^12.
fn power(tenths: i32) -> i128 {
    shifted(ROOTS[tenths.rem_euclid(10) as usize], tenths.div_euclid(10))
}

fn shifted(value: i128, by: i32) -> i128 {
    if by < 0 { value >> -by } else { value << by }
}

/// The parameters of a servo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServoConfig {
    /// The gains.
    pub gains: Gains,
    /// The largest correction of the frequency, in parts per 10^12 (`max_adj` of the clock).
    pub max_ppt: i64,
    /// The first update corrects a larger offset by a step. Zero: the first update never steps.
    /// Default of linuxptp: 20 us (`first_step_threshold`).
    pub first_step: Duration,
    /// Any update corrects a larger offset by a step. Zero, the default of linuxptp: no update
    /// steps for this reason (`step_threshold`).
    pub step: Duration,
    /// The servo has settled when ten offsets in a row are within this time
    /// (`servo_offset_threshold`). Zero, the default of linuxptp: when the servo starts to steer.
    pub settled: Duration,
}

/// `servo_num_offset_values` of linuxptp.
const SETTLED_OFFSETS: u8 = 10;

impl ServoConfig {
    /// The defaults of linuxptp for a sync interval of 2^`log_interval` seconds, on a clock like
    /// the clocks of igb and igc (`max_adj` 62 499 999 ppb). With hardware time stamps, `settled`
    /// is 1 us (IEEE 802.1AS-2020, B.3); with software time stamps, zero.
    pub fn new(stamping: Stamping, log_interval: i8) -> Self {
        Self {
            gains: Gains::new(stamping, log_interval),
            max_ppt: 62_499_999_000,
            first_step: Duration::from_us(20),
            step: Duration::ZERO,
            settled: match stamping {
                Stamping::Hardware => Duration::from_us(1),
                Stamping::Software => Duration::ZERO,
            },
        }
    }

    /// Duration of the first frequency estimate: 0.016 / ki, at most 1000 s (`freq_est_interval` of
    /// `pi.c`).
    pub fn estimate(&self) -> Duration {
        let ps = 16 * ONE / 1000 * ONE / i128::from(self.gains.integral.max(1));
        Duration::from_ps(ps.min(1_000 * ONE) as u64)
    }
}

/// A correction of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// No correction: the servo is still estimating (`SERVO_UNLOCKED`).
    None,
    /// Set the frequency relative to the oscillator, in parts per 10^12 (`SERVO_LOCKED`).
    Frequency(i64),
    /// Set the frequency, in parts per 10^12, and step by the second value, in picoseconds
    /// (`SERVO_JUMP`).
    Step(i64, i64),
}

/// The servo.
#[derive(Clone, Debug)]
pub struct Servo {
    config: ServoConfig,
    /// Frequency error of the oscillator, in 10^-24: parts per 10^12 times the gains' 10^-12.
    drift: i128,
    /// The first sample of the estimate, if any.
    first: Option<(i64, i64)>,
    locked: bool,
    updated: bool,
    /// Number of offsets that must still be within [`ServoConfig::settled`].
    unsettled: u8,
}

impl Servo {
    /// A servo before its first estimate.
    pub fn new(config: ServoConfig) -> Self {
        let unsettled = SETTLED_OFFSETS;
        Self { config, drift: 0, first: None, locked: false, updated: false, unsettled }
    }

    /// The parameters of the servo.
    pub fn config(&self) -> &ServoConfig {
        &self.config
    }

    /// Restarts the frequency estimate, as after a change of the grandmaster (`pi_reset`).
    pub fn reset(&mut self) {
        (self.first, self.locked, self.unsettled) = (None, false, SETTLED_OFFSETS);
    }

    /// Whether the servo has estimated the frequency and steers.
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// Whether the servo has settled since its last reset (`SERVO_LOCKED_STABLE`).
    pub fn is_settled(&self) -> bool {
        self.locked && (self.unsettled == 0 || self.config.settled == Duration::ZERO)
    }

    /// Processes a measurement: the clock was `offset_ps` ahead of its master when the clock showed
    /// `local_ps`. Returns the correction of the clock.
    pub fn sample(&mut self, offset_ps: i64, local_ps: i64) -> Correction {
        let beyond =
            |most: Duration| most > Duration::ZERO && offset_ps.unsigned_abs() > most.as_ps();
        if self.locked {
            if beyond(self.config.step) {
                self.reset();
                return Correction::None;
            }
            if self.unsettled > 0 {
                let outside = beyond(self.config.settled);
                self.unsettled = if outside { SETTLED_OFFSETS } else { self.unsettled - 1 };
            }
            return Correction::Frequency(-self.steer(offset_ps));
        }
        let Some((first, since)) = self.first.filter(|(_, since)| *since < local_ps) else {
            self.first = self.first.xor(Some((offset_ps, local_ps)));
            return Correction::None;
        };
        let passed = i128::from(local_ps) - i128::from(since);
        // FREQ_EST_MARGIN of 0.001.
        if passed + passed / 1000 < i128::from(self.config.estimate().as_ps()) {
            return Correction::None;
        }
        let gained = i128::from(offset_ps) - i128::from(first);
        let most = i128::from(self.config.max_ppt) * ONE;
        // (10^9 - drift) * gained / passed, in 10^-24.
        let per_passed = (ONE - self.drift / ONE) * gained.clamp(-passed, passed) / passed;
        self.drift = (self.drift + per_passed * ONE).clamp(-most, most);
        let jumps = !self.updated && beyond(self.config.first_step) || beyond(self.config.step);
        (self.locked, self.updated, self.first) = (true, true, None);
        let frequency = -((self.drift / ONE) as i64);
        match jumps {
            true => Correction::Step(frequency, -offset_ps),
            false => Correction::Frequency(frequency),
        }
    }

    /// The required correction of the frequency, in parts per 10^12.
    fn steer(&mut self, offset_ps: i64) -> i64 {
        let Gains { proportional, integral } = self.config.gains;
        let integral = i128::from(integral) * i128::from(offset_ps);
        let sum = i128::from(proportional) * i128::from(offset_ps) + self.drift + integral;
        let most = i128::from(self.config.max_ppt) * ONE;
        if sum.abs() <= most {
            self.drift += integral;
        }
        (sum.clamp(-most, most) / ONE) as i64
    }
}
