//! Systems that synchronise over several hops.

use super::world::World;
use proptest::prelude::*;
use tsn::gptp::{
    ClockConfig, ClockIdentity, DomainConfig, NodeConfig, Role, ServoConfig, Stamping,
    SystemIdentity, Walk,
};
use wire::{Duration, Instant};

const LINK: Duration = Duration::from_ns(500);

fn node(number: usize, priorities: &[u8]) -> NodeConfig {
    let clock = ClockIdentity(number as u64 + 1);
    let domain = |(domain, priority): (usize, &u8)| {
        DomainConfig::new(domain as u8, SystemIdentity::new(*priority, clock))
    };
    NodeConfig {
        clock,
        domains: priorities.iter().enumerate().map(domain).collect(),
        log_delay: 0,
        most_delay: Duration::from_ns(800),
        servo: ServoConfig::new(Stamping::Hardware, -3),
    }
}

fn clock(number: usize, offset_ps: i64, drift_ppm: i64) -> ClockConfig {
    ClockConfig {
        offset_ps,
        drift_ppt: drift_ppm * 1_000_000,
        // The frequency changes by at most 0.2 ppm/s. The servo follows a ramp R with an error of
        // R * s / ki (s: sync interval). Two clocks that diverge at 400 ppb/s: 400 * 0.125 / 0.1305
        // = 383 ns.
        walk: Some(Walk {
            step_ppt: 20_000,
            every: Duration::from_ms(100),
            limit_ppt: 100_000_000,
        }),
        seed: number as u64,
        ..ClockConfig::default()
    }
}

fn seconds(count: u64) -> Instant {
    Instant::from_ns(count * 1_000_000_000)
}

/// A chain whose first system has the best priority.
fn chain(drifts: &[i64], priorities: impl Fn(usize) -> Vec<u8>) -> World {
    let systems = drifts.iter().enumerate().map(|(number, drift)| {
        let offset = number as i64 * 1_000_000_000;
        (clock(number, offset, *drift), node(number, &priorities(number)))
    });
    let links: Vec<_> = (1..drifts.len()).map(|to| (to - 1, to, LINK)).collect();
    World::new(systems.collect(), &links)
}

/// 1 us over 7 hops (IEEE 802.1AS-2020, annex B, B.3) with oscillators at ±100 ppm.
#[test]
fn a_microsecond_over_seven_hops() {
    let mut world = chain(&[100, -100, 50, -50, 100, 0, -100, 100], |number| {
        vec![if number == 0 { 100 } else { 248 }]
    });
    world.run_until(seconds(20));
    for tenth in 0..200 {
        world.run_until(seconds(20) + Duration::from_ms(100 * tenth));
        for at in 1..8 {
            let offset = world.offset(at, 0);
            assert!(offset.abs() < 1_000_000, "{at} hops: {offset} ps");
        }
    }
    let end = &world.systems[7];
    assert!(end.node.is_synced(end.clock.free().local(seconds(40))));
    assert_eq!(world.systems[3].node.role(0), Role::Slave);
    assert_eq!(world.systems[3].node.role(1), Role::Master);
    let delay = world.systems[3].node.link(0).delay().unwrap();
    assert!(delay.abs_diff(500_000) <= 8_000, "a stamp's grain at most: {delay} ps");
}

/// Without its master a clock keeps the last frequency, and only the walk of its oscillator adds to
/// the error. Then the next best system becomes grandmaster.
#[test]
fn the_next_best_takes_over() {
    let mut world = chain(&[50, -30, 80], |number| vec![[100, 255, 200][number]]);
    world.run_until(seconds(20));
    assert_eq!(world.systems[2].node.domain().grandmaster(), Some(ClockIdentity(1)));
    world.down.insert(0);
    let before = world.offset(2, 0);
    world.run_until(seconds(20) + Duration::from_ms(1_000));
    // Holdover of 1 s at less than 1 ppm, not at 30 ppm.
    assert!(world.offset(2, 0).abs_diff(before) < 1_000_000, "{}", world.offset(2, 0));
    world.run_until(seconds(40));
    assert!(world.systems[2].node.domain().is_grandmaster());
    assert_eq!(world.systems[1].node.domain().grandmaster(), Some(ClockIdentity(3)));
    assert!(world.offset(1, 2).abs() < 200_000, "{} ps", world.offset(1, 2));
    // After its return the best system is grandmaster again.
    world.down.clear();
    world.run_until(seconds(60));
    assert_eq!(world.systems[2].node.domain().grandmaster(), Some(ClockIdentity(1)));
    assert!(world.offset(2, 0).abs() < 400_000, "{} ps", world.offset(2, 0));
}

/// With hot standby the second domain has the same time, so its takeover changes no clock.
#[test]
fn hot_standby_takes_over_within_its_timeout() {
    let priorities = [vec![100, 255], vec![255, 255], vec![255, 100], vec![255, 255]];
    let mut world = chain(&[50, -30, 80, -90], |number| priorities[number].clone());
    world.run_until(seconds(20));
    assert_eq!(world.systems[3].node.using(), 0);
    world.down.insert(0);
    let mut worst = 0;
    for step in 0..100 {
        world.run_until(seconds(20) + Duration::from_ms(step * 50));
        worst = worst.max(world.offset(3, 2).abs()).max(world.offset(1, 2).abs());
    }
    assert_eq!(world.systems[3].node.using(), 1);
    assert_eq!(world.systems[1].node.using(), 1);
    assert!(worst < 1_000_000, "{worst} ps");
}

#[test]
fn a_link_that_is_too_long_is_not_used() {
    let systems = (0..2).map(|at| (clock(at, 0, 10), node(at, &[100 + at as u8])));
    let mut world = World::new(systems.collect(), &[(0, 1, Duration::from_us(1))]);
    world.run_until(seconds(10));
    assert_eq!(world.systems[1].node.role(0), Role::Disabled);
    assert!(world.systems[1].node.domain().is_grandmaster());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// In random trees all systems select the best grandmaster. Offsets stay below the sum of the
    /// walk's error (383 ns) and of time stamps of 8 ns over six hops.
    #[test]
    fn random_trees_agree(
        shape in prop::collection::vec((any::<u16>(), -100i64..100, -1_000_000_000i64..1_000_000_000, 1u64..700), 1..7),
        best in any::<u16>(),
    ) {
        let count = shape.len() + 1;
        let best = usize::from(best) % count;
        let mut systems = vec![(clock(0, 0, 40), node(0, &[if best == 0 { 1 } else { 240 }]))];
        let mut links = Vec::new();
        for (number, (parent, drift, offset, delay)) in shape.iter().enumerate() {
            let number = number + 1;
            let priority = if best == number { 1 } else { 240 };
            systems.push((clock(number, *offset, *drift), node(number, &[priority])));
            links.push((usize::from(*parent) % number, number, Duration::from_ns(*delay)));
        }
        let mut world = World::new(systems, &links);
        world.run_until(seconds(30));
        for step in 0..20 {
            world.run_until(seconds(30) + Duration::from_ms(step * 130));
            for at in 0..count {
                let offset = world.offset(at, best);
                prop_assert!(offset.abs() < 600_000, "system {}: {} ps", at, offset);
                let gm = world.systems[at].node.domain().grandmaster();
                prop_assert_eq!(gm, Some(ClockIdentity(best as u64 + 1)));
            }
        }
    }
}
