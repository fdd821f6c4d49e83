use super::*;
use pcie::root::ROOT_PORT;
use pcie::{Bus, Ports, Ready};
use wire::Duration;
use wire::tlp::Packet;

/// Records the inputs from above; a test can make it accept nothing.
#[derive(Default)]
struct Below {
    seen: Vec<pcie::Input>,
    full: bool,
}

impl Function for Below {
    fn handle(&mut self, _: Instant, input: pcie::Input) {
        self.seen.push(input);
    }

    fn poll(&mut self, _: Instant, _: Ready) -> pcie::Output {
        pcie::Output::Wait(Wait::default())
    }

    fn ready(&self) -> Ready {
        if self.full { Ready::NONE } else { Ready::ALL }
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

const START: Instant = Instant::ZERO;

/// All outputs of the host at `now`, and its timer.
fn drain(host: &mut HostNode<Below>, now: Instant) -> (Vec<Output>, Option<Instant>) {
    let mut all = Vec::new();
    loop {
        match host.poll(now) {
            Output::Wait(wait) => return (all, wait.until),
            output => all.push(output),
        }
    }
}

#[test]
fn a_hot_reset_of_the_root_port_reaches_what_is_below() {
    let mut host = HostNode::new(Settings::default(), Below::default());
    // Secondary Bus Reset in Bridge Control.
    let write = |value| Request::ConfigWrite { target: ROOT_PORT, offset: 0x3e, size: 2, value };
    host.handle(START, Input::Request(1, write(1 << 6)));
    let answered = |(outputs, _): (Vec<Output>, _)| {
        matches!(&outputs[..], [Output::Host(HostOutput::Answer(..))])
    };
    assert!(answered(drain(&mut host, START)));
    assert_eq!(host.below().seen, [pcie::Input::HotReset]);
    host.handle(START, Input::Request(2, write(0)));
    assert!(answered(drain(&mut host, START)));
    assert_eq!(host.below().seen.len(), 1, "its end is no reset");
}

#[test]
fn unanswered_request_fails_after_completion_timeout() {
    let mut host = HostNode::new(Settings::default(), Below::default());
    let target = wire::Bdf::new(1, 0, 0);
    let buses = Request::ConfigWrite { target: ROOT_PORT, offset: 0x18, size: 4, value: 0x10100 };
    host.handle(START, Input::Request(1, buses));
    host.handle(START, Input::Request(2, Request::ConfigRead { target, offset: 0, size: 4 }));
    let (outputs, timer) = drain(&mut host, START);
    assert!(matches!(outputs[..], [Output::Host(HostOutput::Answer(1, _))]), "{outputs:?}");
    assert!(
        matches!(&host.below().seen[..], [pcie::Input::Tlp(tlp)] if matches!(tlp.packet, Packet::ConfigRead(_)))
    );
    let end = START + Settings::default().completion_timeout;
    assert_eq!(timer, Some(end));
    assert_eq!(drain(&mut host, end).0, [Output::Host(HostOutput::Answer(2, None))]);
}

#[test]
fn request_waits_while_node_below_is_full() {
    let mut host = HostNode::new(Settings::default(), Below { full: true, ..Below::default() });
    let target = wire::Bdf::new(1, 0, 0);
    let buses = Request::ConfigWrite { target: ROOT_PORT, offset: 0x18, size: 4, value: 0x10100 };
    host.handle(START, Input::Request(1, buses));
    drain(&mut host, START);
    assert_eq!(host.poll(START), Output::Wait(Wait::default()));
    host.handle(START, Input::Request(2, Request::ConfigRead { target, offset: 0, size: 4 }));
    let until = Some(START + Settings::default().completion_timeout);
    assert_eq!(host.poll(START), Output::Wait(Wait { until, receiver: true }));
    host.below_mut().full = false;
    assert_eq!(host.poll(START), Output::Wait(Wait::until(until)));
    assert_eq!(host.below().seen.len(), 1);
}

/// Software that sleeps, then reads.
fn task(bus: &Bus, span: Duration) -> pcie::software::Task<u64> {
    let inner = bus.clone();
    pcie::software::Task::new(bus, async move {
        inner.sleep(span).await;
        inner.read(0x1000, 8).await
    })
}

#[test]
fn each_bus_gets_the_answers_to_its_own_requests() {
    let mut buses = Buses::default();
    let [first, second] = [buses.new_bus(), buses.new_bus()];
    let us = Duration::from_us;
    let mut tasks = [task(&first, us(2)), task(&second, us(1))];
    tasks.iter_mut().for_each(|task| assert_eq!(task.poll(START), None));
    assert_eq!(buses.next_request(START, |_| true), None, "sleeps are no requests");
    assert_eq!(buses.timer(), Some(START + us(1)));
    assert!(!buses.wake(START));
    let now = START + us(2);
    assert!(buses.wake(now));
    assert_eq!(buses.timer(), None);
    tasks.iter_mut().for_each(|task| assert_eq!(task.poll(now), None));
    let names = [
        buses.next_request(now, |_| true).unwrap().0,
        buses.next_request(now, |_| true).unwrap().0,
    ];
    buses.answer(names[1], Some(22));
    buses.answer(names[0], None);
    assert_eq!(tasks.each_mut().map(|task| task.poll(now)), [Some(u64::MAX), Some(22)]);
}
