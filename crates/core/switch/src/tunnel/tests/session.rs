//! Sequence numbers and credits that wrap.

use super::*;

#[test]
fn sequence_numbers_and_credits_wrap() {
    let mut link = Link::joined(|settings| settings.survive = Duration::from_ms(10_000));
    link.ends.iter_mut().for_each(|end| end.session.age(u32::MAX - 20));
    for fill in 0..200 {
        if fill % 7 == 0 {
            link.ends.iter_mut().for_each(|end| end.handle(Instant::ZERO, Input::Disconnected));
            link.settle(1000);
            link.connect();
        }
        for from in 0..2 {
            link.ends[from].push(write(fill, 4096));
            link.settle(1000);
            assert_eq!(link.ends[1 - from].pop(Ready::ALL), Some(write(fill, 4096)), "{fill}");
        }
    }
    assert!(link.ends.iter().all(Tunnel::is_up));
}
