//! Tests of `Session`: two paths without a `Tunnel`, and sequence numbers and credits that wrap.

use super::*;

#[test]
fn one_session_goes_over_two_paths_in_turn() {
    let settings = |role| Settings::new(role, 1);
    let (host, device) = (settings(Role::Host), settings(Role::Device));
    let (mut near, mut far) = (Session::new(host), Session::new(device));
    near.begin(device.window);
    let mut paths = [0, 1].map(|_| (Path::new(host), Path::new(device)));
    let mut account = Account::default();
    for fill in 0..10 {
        let (here, there) = &mut paths[usize::from(fill) % 2];
        near.queue.push(write(fill, 64));
        here.room = 100;
        let mut bytes = BytesMut::new();
        here.transmit(Instant::ZERO, &mut near, &mut account, &mut bytes);
        assert_eq!((bytes.len(), here.room), (frame::HEADER + 76, 12));
        let mut bytes = bytes.into();
        let (header, begin, payload) = there.next_frame(&mut bytes).unwrap().expect("a frame");
        assert_eq!((header.sequence, begin), (u32::from(fill), u64::from(fill / 2) * 88));
        far.receive(header, payload, &mut there.trace_ids, None, &mut account).unwrap();
        assert_eq!(far.pop(Ready::ALL), Some(write(fill, 64)));
    }
    // Received frames are acknowledged over either path.
    far.queue_acknowledgement(true);
    let (here, there) = &mut paths[1];
    far.control.push_back(Control::Acknowledge);
    there.room = 100;
    let mut bytes = BytesMut::new();
    there.transmit(Instant::ZERO, &mut far, &mut account, &mut bytes);
    let mut bytes = bytes.freeze();
    let (header, ..) = here.next_frame(&mut bytes).unwrap().expect("a frame");
    assert_eq!((header.kind, header.acknowledged), (Kind::Acknowledge, 10));
    assert_eq!(near.acknowledge(header.acknowledged), Ok(()));
    assert!(near.acknowledge(11).is_err(), "never sent");
}

#[test]
fn sequence_numbers_and_credits_wrap() {
    let mut link = Link::up();
    link.ends.iter_mut().for_each(|end| end.session.age(u32::MAX - 20));
    for fill in 0..200 {
        for from in 0..2 {
            link.ends[from].push(write(fill, 4096));
            link.settle(1000);
            assert_eq!(link.ends[1 - from].pop(Ready::ALL), Some(write(fill, 4096)), "{fill}");
        }
    }
    assert!(link.ends.iter().all(Tunnel::is_up));
}
