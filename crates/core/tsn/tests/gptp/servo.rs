//! Compares the servo with the constants of linuxptp and with values calculated by hand.

use tsn::gptp::servo::Correction;
use tsn::gptp::{Gains, Servo, ServoConfig, Stamping};
use wire::Duration;

const MS: i64 = 1_000_000_000;

/// At 0.125 s: 0.7 * 0.125^-0.3 = 1.306246 and 0.3 * 0.125^0.4 = 0.130583. Software time stamps use
/// 0.1 and 0.001 instead of 0.7 and 0.3. At 1 s the gains equal these factors.
#[test]
fn gains_are_those_of_linuxptp() {
    let gains_of = |stamping, log| {
        let gains = Gains::new(stamping, log);
        [gains.proportional, gains.integral].map(|gain| gain / 100_000_000)
    };
    assert_eq!(gains_of(Stamping::Hardware, 0), [7_000, 3_000]);
    assert_eq!(gains_of(Stamping::Software, 0), [1_000, 10]);
    assert_eq!(gains_of(Stamping::Hardware, -3), [13_062, 1_305]);
    assert_eq!(gains_of(Stamping::Software, -3), [1_866, 4]);
    // At longer intervals s, 0.7 / s and 0.3 / s limit the gains. At 4 s, 0.7 * 4^-0.3 = 0.4618 >
    // 0.175 and 0.3 * 4^0.4 = 0.5223 > 0.075.
    assert_eq!(gains_of(Stamping::Hardware, 2), [1_750, 750]);
}

/// The estimate takes 0.016 / ki. With a sync interval of 1 s: 0.053 s with hardware and 16 s with
/// software time stamps. With 0.125 s: 0.123 s and 36.8 s.
#[test]
fn the_first_estimate_takes_as_long_as_in_linuxptp() {
    let ms = |stamping, log| ServoConfig::new(stamping, log).estimate().as_ps() / 1_000_000_000;
    assert_eq!(ms(Stamping::Hardware, 0), 53);
    assert_eq!(ms(Stamping::Software, 0), 16_000);
    assert_eq!(ms(Stamping::Hardware, -3), 122);
    assert_eq!(ms(Stamping::Software, -3), 36_758);
}

/// A clock is 50 ppm fast and 1 ms ahead; the sync interval is 1 s. In the first second the offset
/// grows by 50 us, a drift of 50 000 ppb. The offset of 1.05 ms is above 20 us, so the servo steps.
/// Then an offset of 1 us gives kp * 1 us + drift + ki * 1 us = 700 + 50 000 + 300 ppb, and the
/// integral is 50 300 ppb.
#[test]
fn steps_by_hand() {
    let mut servo = Servo::new(ServoConfig::new(Stamping::Hardware, 0));
    assert_eq!(servo.sample(MS, 1_000 * MS), Correction::None);
    let step = Correction::Step(-50_000_000, -(MS + MS / 20));
    assert_eq!(servo.sample(MS + MS / 20, 2_000 * MS), step);
    assert_eq!(servo.sample(1_000_000, 3_000 * MS), Correction::Frequency(-51_000_000));
    assert_eq!(servo.sample(0, 4_000 * MS), Correction::Frequency(-50_300_000));
    // Only the first update may step.
    assert!(matches!(servo.sample(MS, 5_000 * MS), Correction::Frequency(_)));
}

#[test]
fn the_frequency_is_limited_and_the_integral_does_not_wind_up() {
    let config = ServoConfig { max_ppt: 1_000_000, ..ServoConfig::new(Stamping::Hardware, 0) };
    let mut servo = Servo::new(config);
    servo.sample(0, 0);
    assert_eq!(servo.sample(0, 1_000 * MS), Correction::Frequency(0));
    for second in 2..100 {
        assert_eq!(servo.sample(MS, second * 1_000 * MS), Correction::Frequency(-1_000_000));
    }
    assert_eq!(servo.sample(0, 100_000 * MS), Correction::Frequency(0));
}

/// The first estimate needs its full duration, and begins again if time goes back.
#[test]
fn estimates_wait_and_begin_again() {
    let mut servo = Servo::new(ServoConfig::new(Stamping::Software, 0));
    assert_eq!(servo.sample(0, 0), Correction::None);
    // With the margin of 0.001, 15.985 s are enough.
    assert_eq!(servo.sample(1_000_000, 15_980 * MS), Correction::None);
    assert_eq!(servo.sample(1_000_000, -MS), Correction::None);
    assert_eq!(servo.sample(1_000_000, 16_000 * MS), Correction::None);
    assert!(matches!(servo.sample(0, 32_000 * MS), Correction::Frequency(_)));
}

/// An offset beyond the step threshold begins a new estimate. The clock steps at the end of the
/// estimate.
#[test]
fn later_steps_need_a_threshold() {
    let config = ServoConfig::new(Stamping::Hardware, 0);
    let mut servo = Servo::new(ServoConfig { step: Duration::from_ms(1), ..config });
    servo.sample(0, 0);
    servo.sample(0, 1_000 * MS);
    assert_eq!(servo.sample(5 * MS, 2_000 * MS), Correction::None);
    assert_eq!(servo.sample(5 * MS, 3_000 * MS), Correction::None);
    assert_eq!(servo.sample(5 * MS, 4_000 * MS), Correction::Step(0, -5 * MS));
}
