//! A scripted shell drives the links.

use super::*;
use crate::links::RETRY;
use crate::path::Input;
use crate::world::{Manner, RAM, State, What, World};
use ::switch::tunnel::Cause;
use pcie::dma_test::driver;
use pcie::enumerate::{self, Hierarchy};
use proptest::prelude::*;
use wire::Duration;
use wire::frame::Reject;

const MS: Duration = Duration::from_ms(1);

fn ms(count: u64) -> Duration {
    Duration::from_ms(count)
}

fn bar(hierarchy: &Hierarchy, number: usize) -> u64 {
    hierarchy.endpoints()[number].bar(0).unwrap().address
}

#[test]
fn links_come_up_at_once() {
    let mut world = World::new(3, None);
    world.settle();
    assert_eq!(world.attempts(), [(0, 0, 0), (0, 1, 0), (0, 2, 0)]);
    assert!((0..3).all(|link| world.switch().is_up(link)));
    let up = world.events().into_iter().filter(|(at, event)| {
        *at == 0
            && matches!(event, LinkEvent::Up(link, hello) if hello.instance == 10 + *link as u64)
    });
    assert_eq!(up.count(), 3);
    // Nobody hears of links that stand.
    world.pass(ms(5_000));
    assert_eq!(world.events().len(), 3);
}

#[test]
fn a_refused_attempt_is_made_again_after_a_pause() {
    let mut world = World::new(1, None);
    world.far[0].manner = Manner::Refuses;
    world.pass(RETRY + RETRY + MS);
    assert_eq!(world.attempts(), [(0, 0, 0), (200, 0, 1), (400, 0, 2)]);
    let failed =
        |attempt| LinkEvent::Failed { link: 0, attempt, why: "refused".into(), again: false };
    assert_eq!(world.events(), [(0, failed(0)), (200, failed(1)), (400, failed(2))]);
    world.far[0].manner = Manner::Serves;
    world.pass(RETRY);
    assert!(world.switch().is_up(0));
}

#[test]
fn an_attempt_without_answer_is_given_up() {
    let mut world = World::new(1, None);
    world.far[0].manner = Manner::Silent;
    world.pass(CONNECTING + RETRY + MS);
    let why = "timed out".into();
    let failed = LinkEvent::Failed { link: 0, attempt: 0, why, again: false };
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    assert_eq!(
        world.log,
        [
            (at(0), What::Connect(0, 0)),
            (at(2_000), What::Close(0, None)),
            (at(2_000), What::Event(failed)),
            (at(2_200), What::Connect(0, 1)),
        ]
    );
}

#[test]
fn who_turns_us_away_is_told_of_once_and_asked_again() {
    let mut world = World::new(1, None);
    world.far[0].manner = Manner::TurnsAway;
    world.pass(ms(1_000));
    let cause = Cause::Rejected(Reject::Busy);
    let told = LinkEvent::Failed { link: 0, attempt: 0, why: cause.to_string(), again: true };
    assert_eq!(world.events(), [(0, told)]);
    assert_eq!(world.attempts().len(), 6);
    let closed = |(_, what): &&(Instant, What)| *what == What::Close(0, Some(cause.clone()));
    assert_eq!(world.log.iter().filter(closed).count(), 6);
    world.far[0].manner = Manner::Serves;
    world.pass(RETRY);
    assert!(world.switch().is_up(0));
    // It is told again after it was up.
    world.far[0].manner = Manner::TurnsAway;
    world.breaks(0);
    world.pass(RETRY);
    let again = |(_, event): &&(u64, LinkEvent)| matches!(event, LinkEvent::Failed { .. });
    assert_eq!(world.events().iter().filter(again).count(), 2);
}

#[test]
fn a_link_is_lost_and_comes_back() {
    let (mut world, hierarchy) = World::up(2, None);
    let upstream = world.switch().upstream();
    let buses = upstream.buses(0);
    assert!(buses.contains(&hierarchy.endpoints()[0].bdf.bus()));
    world.far[0].cut = true;
    let before = world.now;
    world.pass(ms(801));
    let down = LinkEvent::Down { link: 0, cause: Cause::Lost, buses };
    assert_eq!(world.events().last().unwrap().1, down);
    assert!(!world.switch().is_up(0) && world.switch().is_up(1));
    let (at, what) = world.log.iter().rfind(|(_, what)| matches!(what, What::Close(..))).unwrap();
    assert_eq!(*what, What::Close(0, Some(Cause::Lost)));
    assert!(*at - before <= ms(800), "{}", *at - before);
    world.far[0].cut = false;
    world.pass(RETRY);
    assert!(world.switch().is_up(0));
}

#[test]
fn a_path_that_ends_is_made_anew() {
    let (mut world, _) = World::up(1, None);
    world.breaks(0);
    world.pass(MS);
    let last = world.events().pop().unwrap().1;
    assert!(matches!(last, LinkEvent::Down { cause: Cause::Disconnected, .. }), "{last:?}");
    world.pass(RETRY);
    assert!(world.switch().is_up(0));
}

/// A node that got no processor for longer than the loss limit.
fn sleeps(hears: bool) -> bool {
    let (mut world, _) = World::up(1, None);
    world.now += ms(5_000);
    // The far side spoke meanwhile, and is heard at last.
    if hears {
        let bytes = keepalive(&mut world);
        let now = world.now;
        world.switch().handle_link(now, 0, Input::Received(bytes));
    }
    world.drain(&mut false);
    world.switch().is_up(0)
}

/// What the far side of link 0 says when it has nothing to say.
fn keepalive(world: &mut World) -> Bytes {
    let end = &mut world.far[0].end;
    end.handle(world.now, ::switch::tunnel::Input::Received(Bytes::new()));
    end.handle(world.now, ::switch::tunnel::Input::CanTransmit { bytes: 1 << 16 });
    let mut frames = BytesMut::new();
    match end.poll(world.now, &mut frames) {
        ::switch::downstream::Output::Transmit(_) => frames.freeze(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_has_arrived_keeps_the_link_of_a_node_that_is_late() {
    assert!(sleeps(true));
    assert!(!sleeps(false));
}

#[test]
fn links_share_the_rate_evenly_whatever_their_frames() {
    let (mut world, hierarchy) = World::up(2, Some("1G".parse().unwrap()));
    world.far[1].width = 5_000;
    let (start, before) = (world.now, [world.far[0].received, world.far[1].received]);
    for number in 0..2 {
        let (bus, bar) = (world.bus.clone(), bar(&hierarchy, number));
        let bdf = hierarchy.endpoints()[number].bdf;
        world.run(async move {
            enumerate::enable_bus_master(&bus, bdf, true).await;
            driver::start_copy(&bus, bar, RAM, RAM + 400_000, 400_000);
        });
    }
    world.pass(ms(3));
    let sent = [world.far[0].received - before[0], world.far[1].received - before[1]];
    assert!(sent[0].abs_diff(sent[1]) <= 2 * FRAME, "{sent:?}");
    let total: usize = sent.iter().sum();
    let most = ((world.now - start).as_ns() / 8) as usize + FRAME;
    assert!(total <= most && total > most / 2, "{total} of {most} bytes at 1 Gb/s");
}

#[test]
fn goodbye_is_said_on_every_link_and_no_path_is_made_any_more() {
    let mut world = World::new(3, None);
    world.far[2].manner = Manner::Silent;
    world.settle();
    let now = world.now;
    world.switch().close(now);
    world.settle();
    assert_eq!(
        (&world.far[0].ends[..], &world.far[1].ends[..]),
        (&[Cause::Goodbye][..], &[Cause::Goodbye][..])
    );
    assert!(world.far.iter().all(|far| far.state == State::None));
    let attempts = world.attempts().len();
    world.pass(ms(5_000));
    assert_eq!(world.attempts().len(), attempts);
}

/// What may happen, to one link.
#[derive(Clone, Debug)]
enum Step {
    /// The far side meets whoever connects in this way from now on.
    Manner(Manner),
    /// The path takes so many bytes at once from now on.
    Width(usize),
    /// Nothing passes and nobody is told.
    Cut(bool),
    /// The path ends.
    Break,
    /// Nonsense comes.
    Nonsense(Vec<u8>),
    /// Something comes of a path that is no more.
    Stray(u8),
    /// The owner measures.
    Echo(u64),
    /// Time passes with the shell awake, and without; in milliseconds.
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
        any::<bool>().prop_map(Step::Cut),
        Just(Step::Break),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(Step::Nonsense),
        (0u8..5).prop_map(Step::Stray),
        any::<u64>().prop_map(Step::Echo),
        (1u64..300).prop_map(Step::Pass),
        (1u64..3_000).prop_map(Step::Sleep),
    ]
}

fn take(world: &mut World, link: usize, step: Step) {
    let now = world.now;
    let open = world.far[link].state == State::Open;
    match step {
        Step::Manner(manner) => world.far[link].manner = manner,
        Step::Width(bytes) => world.far[link].width = bytes,
        Step::Cut(cut) => world.far[link].cut = cut,
        Step::Break if open => world.breaks(link),
        Step::Nonsense(bytes) if open => {
            world.switch().handle_link(now, link, Input::Received(bytes.into()));
        }
        Step::Stray(kind) if world.far[link].state == State::None => {
            let inputs = [
                Input::Connected,
                Input::Failed("late".into()),
                Input::Received(vec![1; 20].into()),
                Input::Room(1 << 20),
                Input::Gone,
            ];
            world.switch().handle_link(now, link, inputs[usize::from(kind)].clone());
        }
        Step::Echo(number) => world.switch().echo(link, number),
        Step::Pass(span) => world.pass(ms(span)),
        Step::Sleep(span) => world.now = now + ms(span),
        Step::Break | Step::Nonsense(_) | Step::Stray(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// [`World`] checks that each path is asked for once, gets no more than it
    /// takes and only while it stands, and that timers are in the future.
    #[test]
    fn whatever_happens_paths_are_used_as_they_are(
        steps in prop::collection::vec((0usize..2, step(), any::<bool>()), 1..60),
        limited: bool,
    ) {
        let limit = limited.then(|| "10M".parse().unwrap());
        let mut world = World::new(2, limit);
        for (link, step, settles) in steps {
            take(&mut world, link, step);
            if settles {
                world.settle();
            }
        }
        for far in &mut world.far {
            (far.manner, far.width, far.cut) = (Manner::Serves, 64 << 10, false);
        }
        world.pass(CONNECTING + RETRY + ms(1_000));
        prop_assert!((0..2).all(|link| world.switch().is_up(link)), "{:?}", world.log);
        let (mut up, mut down) = ([0; 2], [0; 2]);
        for (_, event) in world.events() {
            match event {
                LinkEvent::Up(link, _) => up[link] += 1,
                LinkEvent::Down { link, .. } => down[link] += 1,
                _ => {}
            }
        }
        prop_assert_eq!(up, down.map(|count| count + 1), "no link goes down that is not up");
    }
}
