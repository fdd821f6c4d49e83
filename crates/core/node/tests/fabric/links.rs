//! Links over their lifetime: a test sets how far sides treat connections.

use crate::fabric::world::{Fabric, Happened, Manner, Parent, Plan, RAM, Shape, State, bar, dma};
use bytes::Bytes;
use node::link_state::{CONNECT_TIMEOUT, FRAME, LinkEvent, RETRY_PAUSE};
use node::path::Input;
use node::switch::{Output, SwitchNode};
use pcie::dma_test::driver;
use pcie::enumerate::Hierarchy;
use proptest::prelude::*;
use switch::congestion::Rate;
use switch::tunnel::Cause;
use wire::frame::Reject;
use wire::{Duration, Instant};

const MS: Duration = Duration::from_ms(1);

fn ms(count: u64) -> Duration {
    Duration::from_ms(count)
}

/// A host with `links` device nodes at time 0, over paths without delay.
fn world(links: u8, limit: Option<Rate>) -> Fabric {
    Plan { limit, shape: Shape::AT_ONCE, ..Plan::default() }.unpolled((0..links).map(dma))
}

/// A fabric with all links up, and the hierarchy.
fn up(links: u8, limit: Option<Rate>) -> (Fabric, Hierarchy) {
    let mut world = world(links, limit);
    world.pass(MS);
    let hierarchy = world.enumerate();
    (world, hierarchy)
}

fn switch(world: &mut Fabric) -> &mut SwitchNode {
    world.switch(Parent::Top)
}

fn stall(world: &mut Fabric, link: usize, stalled: bool) {
    let link = &mut world.links[link];
    (link.down.stalled, link.up.stalled) = (stalled, stalled);
}

/// The events, with their times in milliseconds.
fn events(world: &Fabric) -> Vec<(u64, LinkEvent)> {
    let event = |(at, output): &(Instant, Output)| match output {
        Output::Event(event) => Some((at.as_ns() / 1_000_000, event.clone())),
        _ => None,
    };
    world.log.iter().filter_map(event).collect()
}

/// The attempts to connect: time in milliseconds, link, and number.
fn attempts(world: &Fabric) -> Vec<(u64, usize, usize)> {
    let attempt = |(at, output): &(Instant, Output)| match output {
        Output::Connect { link, lane: 0, attempt } => {
            Some((at.as_ns() / 1_000_000, *link, *attempt))
        }
        _ => None,
    };
    world.log.iter().filter_map(attempt).collect()
}

#[test]
fn links_come_up_at_once() {
    let mut world = world(3, None);
    world.settle();
    assert_eq!(attempts(&world), [(0, 0, 0), (0, 1, 0), (0, 2, 0)]);
    assert!((0..3).all(|link| switch(&mut world).is_up(link)));
    let up = events(&world).into_iter().filter(|(at, event)| {
        *at == 0
            && matches!(event, LinkEvent::Up(link, hello) if hello.instance == 10 + *link as u64)
    });
    assert_eq!(up.count(), 3);
    // Links that stay up cause no events.
    world.pass(ms(5_000));
    assert_eq!(events(&world).len(), 3);
}

#[test]
fn a_refused_attempt_is_made_again_after_a_pause() {
    let mut world = world(1, None);
    world.links[0].manner = Manner::Refuses;
    world.pass(RETRY_PAUSE + RETRY_PAUSE + MS);
    assert_eq!(attempts(&world), [(0, 0, 0), (200, 0, 1), (400, 0, 2)]);
    let failed =
        |attempt| LinkEvent::Failed { link: 0, attempt, why: "refused".into(), permanent: false };
    assert_eq!(events(&world), [(0, failed(0)), (200, failed(1)), (400, failed(2))]);
    world.links[0].manner = Manner::Serves;
    world.pass(RETRY_PAUSE);
    assert!(switch(&mut world).is_up(0));
}

#[test]
fn an_attempt_without_answer_is_given_up() {
    let mut world = world(1, None);
    world.links[0].manner = Manner::Silent;
    world.pass(CONNECT_TIMEOUT + RETRY_PAUSE + MS);
    let why = "the connection attempt timed out".into();
    let failed = LinkEvent::Failed { link: 0, attempt: 0, why, permanent: false };
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    assert_eq!(
        world.log,
        [
            (at(0), Output::Connect { link: 0, lane: 0, attempt: 0 }),
            (at(2_000), Output::Close { link: 0, lane: 0, cause: None }),
            (at(2_000), Output::Event(failed)),
            (at(2_200), Output::Connect { link: 0, lane: 0, attempt: 1 }),
        ]
    );
}

#[test]
fn rejected_link_is_reported_once_and_retried() {
    let mut world = world(1, None);
    world.links[0].manner = Manner::TurnsAway;
    world.pass(ms(1_000));
    let cause = Cause::Rejected(Reject::Group(Some((7, 0))));
    let failed = LinkEvent::Failed { link: 0, attempt: 0, why: cause.to_string(), permanent: true };
    assert_eq!(events(&world), [(0, failed)]);
    assert_eq!(attempts(&world).len(), 6);
    let close = Output::Close { link: 0, lane: 0, cause: Some(cause) };
    let closed = |(_, output): &&(Instant, Output)| *output == close;
    assert_eq!(world.log.iter().filter(closed).count(), 6);
    world.links[0].manner = Manner::Serves;
    world.pass(RETRY_PAUSE);
    assert!(switch(&mut world).is_up(0));
    // It is reported again after it was up.
    world.links[0].manner = Manner::TurnsAway;
    world.breaks(0);
    world.pass(RETRY_PAUSE);
    let again = |(_, event): &&(u64, LinkEvent)| matches!(event, LinkEvent::Failed { .. });
    assert_eq!(events(&world).iter().filter(again).count(), 2);
}

#[test]
fn a_link_is_lost_and_comes_back() {
    let (mut world, hierarchy) = up(2, None);
    let buses = world.top().buses(0);
    assert!(buses.contains(&hierarchy.endpoints()[0].bdf.bus()));
    stall(&mut world, 0, true);
    let before = world.now;
    world.pass(ms(801));
    let down = LinkEvent::Down { link: 0, cause: Cause::Lost, buses };
    assert_eq!(events(&world).last().unwrap().1, down);
    assert!(!switch(&mut world).is_up(0) && switch(&mut world).is_up(1));
    let close = |(_, output): &&(Instant, Output)| matches!(output, Output::Close { .. });
    let (at, output) = world.log.iter().rfind(close).unwrap();
    assert_eq!(*output, Output::Close { link: 0, lane: 0, cause: Some(Cause::Lost) });
    assert!(*at - before <= ms(800), "{}", *at - before);
    stall(&mut world, 0, false);
    world.pass(RETRY_PAUSE);
    assert!(switch(&mut world).is_up(0));
}

#[test]
fn a_path_that_ends_is_made_anew() {
    let (mut world, _) = up(1, None);
    world.breaks(0);
    world.pass(MS);
    let last = events(&world).pop().unwrap().1;
    assert!(matches!(last, LinkEvent::Down { cause: Cause::Disconnected, .. }), "{last:?}");
    world.pass(RETRY_PAUSE);
    assert!(switch(&mut world).is_up(0));
}

/// The host node does not run for longer than the loss limit.
fn sleeps(hears: bool) -> bool {
    let (mut world, _) = up(1, None);
    world.now += ms(5_000);
    // The far side sent bytes meanwhile, which now arrive.
    if hears {
        let bytes = keepalive(&mut world);
        world.upper(0, Input::Received(bytes));
    }
    world.move_switch(Parent::Top);
    switch(&mut world).is_up(0)
}

/// The keepalive that the far side of link 0 sends when idle.
fn keepalive(world: &mut Fabric) -> Bytes {
    let (node, path) = (&mut world.nodes[0], world.links[0].path.unwrap());
    node.handle(world.now, path, Input::Received(Bytes::new()));
    node.handle(world.now, path, Input::Room(1 << 16));
    match node.poll(world.now) {
        node::device::Output::Transmit { bytes, .. } => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn late_node_keeps_link_if_bytes_have_arrived() {
    assert!(sleeps(true));
    assert!(!sleeps(false));
}

#[test]
fn links_share_the_rate_evenly_whatever_their_frames() {
    let (mut world, hierarchy) = up(2, Some("1G".parse().unwrap()));
    world.links[1].down.width = 5_000;
    let taken = |world: &Fabric| [0, 1].map(|link: usize| world.links[link].down.taken);
    let (start, before) = (world.now, taken(&world));
    for node in hierarchy.endpoints() {
        world.enable(node, 1);
        driver::start_copy(&world.bus, bar(node), RAM, RAM + 400_000, 400_000);
    }
    world.pass(ms(3));
    let after = taken(&world);
    let sent = [after[0] - before[0], after[1] - before[1]];
    assert!(sent[0].abs_diff(sent[1]) <= 2 * FRAME, "{sent:?}");
    let total: usize = sent.iter().sum();
    let most = ((world.now - start).as_ns() / 8) as usize + FRAME;
    assert!(total <= most && total > most / 2, "{total} of {most} bytes at 1 Gb/s");
}

#[test]
fn goodbye_is_said_on_every_link_and_no_path_is_made_any_more() {
    let mut world = world(3, None);
    world.links[2].manner = Manner::Silent;
    world.settle();
    let now = world.now;
    switch(&mut world).close(now);
    world.settle();
    let goodbye = |link| Happened::DeviceDown(link, Cause::Goodbye);
    assert!(world.happened.ends_with(&[goodbye(0), goodbye(1)]));
    assert!(world.links.iter().all(|link| link.state == State::None));
    let before = attempts(&world).len();
    world.pass(ms(5_000));
    assert_eq!(attempts(&world).len(), before);
}

/// A random step on one link.
#[derive(Clone, Debug)]
enum Step {
    /// Sets how the far side treats connections from now on.
    Manner(Manner),
    /// Sets how many bytes the path takes at once from now on.
    Width(usize),
    /// Nothing passes, without an error.
    Stall(bool),
    /// The path ends.
    Break,
    /// Invalid bytes arrive.
    Nonsense(Vec<u8>),
    /// An event of a path that was closed arrives.
    Stray(u8),
    /// The owner measures the round trip.
    Echo(u64),
    /// Time passes in milliseconds, with the node called at its timers or not.
    Pass(u64),
    Sleep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let manner = prop::sample::select(vec![
        Manner::Serves,
        Manner::Serves,
        Manner::Refuses,
        Manner::Silent,
        Manner::TurnsAway,
    ]);
    prop_oneof![
        manner.prop_map(Step::Manner),
        prop::sample::select(vec![0, 1, 60, 300, 64 << 10]).prop_map(Step::Width),
        any::<bool>().prop_map(Step::Stall),
        Just(Step::Break),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(Step::Nonsense),
        (0u8..5).prop_map(Step::Stray),
        any::<u64>().prop_map(Step::Echo),
        (1u64..300).prop_map(Step::Pass),
        (1u64..3_000).prop_map(Step::Sleep),
    ]
}

fn take(world: &mut Fabric, link: usize, step: Step) {
    let state = world.links[link].state;
    match step {
        Step::Manner(manner) => world.links[link].manner = manner,
        Step::Width(bytes) => world.links[link].down.width = bytes,
        Step::Stall(stalled) => stall(world, link, stalled),
        Step::Break => world.breaks(link),
        Step::Nonsense(bytes) if state == State::Open => {
            world.upper(link, Input::Received(bytes.into()));
        }
        Step::Stray(kind) if state == State::None => {
            let inputs = [
                Input::Connected,
                Input::Failed("late".into()),
                Input::Received(vec![1; 20].into()),
                Input::Room(1 << 20),
                Input::Closed,
            ];
            world.upper(link, inputs[usize::from(kind)].clone());
        }
        Step::Echo(number) => switch(world).echo(link, number),
        Step::Pass(span) => world.pass(ms(span)),
        Step::Sleep(span) => world.now += ms(span),
        Step::Nonsense(_) | Step::Stray(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// [`Fabric`] checks that each path is requested once, is used only while it exists and within
    /// its limit, and that timers are in the future.
    #[test]
    fn paths_are_used_correctly_for_random_steps(
        steps in prop::collection::vec((0usize..2, step(), any::<bool>()), 1..60),
        limited: bool,
    ) {
        let limit = limited.then(|| "10M".parse().unwrap());
        let mut world = world(2, limit);
        for (link, step, settles) in steps {
            take(&mut world, link, step);
            if settles {
                world.settle();
            }
        }
        for link in 0..2 {
            (world.links[link].manner, world.links[link].down.width) = (Manner::Serves, 64 << 10);
            stall(&mut world, link, false);
        }
        world.pass(CONNECT_TIMEOUT + RETRY_PAUSE + ms(1_000));
        prop_assert!((0..2).all(|link| switch(&mut world).is_up(link)), "{:?}", world.log);
        let (mut up, mut down) = ([0; 2], [0; 2]);
        for (_, event) in events(&world) {
            match event {
                LinkEvent::Up(link, _) => up[link] += 1,
                LinkEvent::Down { link, .. } => down[link] += 1,
                _ => {}
            }
        }
        prop_assert_eq!(up, down.map(|count| count + 1), "no link goes down that is not up");
    }
}
