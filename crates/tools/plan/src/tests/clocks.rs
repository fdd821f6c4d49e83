//! Plans with clocks.

use super::{built, fails};
use tsn::StepPolicy;
use tsn::gptp::Stamping;
use wire::{Duration, Instant};

/// Two stations and a bridge without hosts, followed by `more`.
fn plan(more: &str) -> String {
    format!(
        "runtime = \"1s\"\n[nodes.a]\n[nodes.b]\n[bridges.s]\n[link]\nrate = \"1G\"\n{more}\
         [traffic.t]\nfrom = \"a\"\nto = \"b\"\ninterval = \"1ms\"\n"
    )
}

#[test]
fn keys_reach_the_clocks() {
    let text = plan(
        "clock_drift = \"20ppm\"\nclock_walk = \"10ppb\"\nstamp_grain = \"1ns\"\n\
         clock_steps = [\"1ms +5us\", \"3ms -1ms\"]\non_step = \"frozen\"\nstamping = \"software\"\n\
         stamp_noise = \"2us\"\n[clocks]\nsync_interval = \"250ms\"\nclass = 6\nstep = \"1s\"\n\
         standby = \"on\"\n[hosts]\n",
    );
    let text =
        text.replace("[hosts]\n", "").replace("[nodes.a]\n", "[nodes.a]\nclock_priority = 1\n");
    let text = text.replace("[nodes.b]\n", "[nodes.b]\nstandby_priority = 2\n");
    let time = built(&text).config.network.time.unwrap();
    let [a, b] = [&time.stations[0], &time.stations[1]];
    assert_eq!((a.class, a.stamping, a.on_step), (6, Stamping::Software, StepPolicy::Frozen));
    assert_eq!((a.clock.drift_ppt, a.noise), (20_000_000, Duration::from_us(2)));
    assert_eq!(a.clock.walk.unwrap().step_ppt, 10_000);
    let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
    assert_eq!(a.steps, [(at(1), 5_000_000), (at(3), -1_000_000_000)]);
    let values = |node: &sim::network::ClockNode| {
        let domains = &node.node.as_ref().unwrap().domains;
        [domains[0].own.priority1, domains[1].own.priority1]
    };
    assert_eq!([values(a), values(b), values(&time.bridges[0])], [[1, 255], [255, 2], [255, 255]]);
    let part = a.node.as_ref().unwrap();
    assert_eq!((part.domains[0].log_sync, part.servo.step), (-2, Duration::from_ms(1_000)));
    // Bridges take no defaults from [link].
    assert_eq!(time.bridges[0].stamping, Stamping::Hardware);
    assert!(built(&plan("")).config.network.time.is_none());
}

#[test]
fn clock_key_errors_have_a_line() {
    fails(&plan("clock_walk = \"1ppm\"\n"), "p.toml:7:14: 'clock_walk' requires [clocks]");
    fails(
        &plan("clock_steps = [\"2ms +1us\", \"1ms +1us\"]\n[clocks]\n"),
        "p.toml:7:28: clock_steps: expected each step later than the one before",
    );
    fails(
        &plan("[clocks]\nsync_interval = \"100ms\"\n"),
        "p.toml:8:17: sync_interval: expected a power of two of seconds such as 125ms or 2s, \
         7.8125ms to 128s; found '100ms'",
    );
    fails(
        &plan("[clocks]\nstandby = \"on\"\n"),
        "p.toml:7:2: no clock can be grandmaster of domain 0: clock_priority below 255 at one of \
         them (802.1AS-2020, 8.6.2.1)",
    );
}

/// Only gates, asynchronous shapers and `[clocks]` use the clock of a node.
#[test]
fn unused_clock_is_remarked() {
    let idle = |more: &str| {
        let text = plan(more).replace("[nodes.b]\n", "[nodes.b]\nclock_drift = \"2ppm\"\n");
        let text = text.replace("[bridges.s]\n", "[bridges.s]\nclock_offset = \"1us\"\n");
        let remarks = built(&text).remarks.into_iter().map(|remark| remark.sentence());
        remarks.filter(|text| text.contains("have no effect")).collect::<Vec<_>>()
    };
    let [text] = &idle("")[..] else { panic!() };
    assert!(text.starts_with("clock of b, s: clock_offset and clock_drift have no effect: no"));
    let list = "[schedules.l]\nentries = [\"S ff 1ms\"]\n";
    let [text] = &idle(&format!("schedule = \"l\"\n{list}"))[..] else { panic!() };
    assert!(text.starts_with("clock of s: "), "stations have gates");
    let ats = "[shapers.l]\nalgorithm = \"ats\"\nrate = \"1MB/s\"\nburst = \"2kB\"\n";
    let [text] = &idle(&format!("shapers = [\"6 l\"]\n{ats}"))[..] else { panic!() };
    assert!(text.starts_with("clock of s: "), "stations have a shaper");
    assert_eq!(idle("[clocks]\n"), [""; 0]);
}

#[test]
fn harmful_clock_settings_are_remarked() {
    let text = plan(
        "schedule = \"l\"\nclock_drift = \"200ppm\"\nstamp_grain = \"1us\"\n[clocks]\n\
         [schedules.l]\nentries = [\"S 80 100us\", \"S 7f 400us\"]\n",
    );
    let sentences: Vec<_> = built(&text).remarks.iter().map(super::Remark::sentence).collect();
    for part in [
        "closed for up to 400us: messages wait (802.1Q-2022, 8.6.8.4), and stamps do not see that",
        "above the 100 ppm of 802.1AS-2020, B.1.1",
        "coarser than the 40 ns of 802.1AS-2020, B.1.2",
    ] {
        assert!(
            sentences.iter().any(|sentence| sentence.contains(part)),
            "{part} in {sentences:?}"
        );
    }
    let text = text.replace("S 80", "S 7f").replace("S 7f 400us", "S 3f 400us");
    let sentences: Vec<_> = built(&text).remarks.iter().map(super::Remark::sentence).collect();
    assert!(
        sentences.iter().any(|sentence| sentence.contains("its messages stay here")),
        "{sentences:?}"
    );
}
