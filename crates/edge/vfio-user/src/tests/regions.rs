//! Tests of region accesses: pieces, order, deadlines, shadowed bits.

use super::*;
use crate::session::access::ACCESS_DEADLINE;
use rustix::io::Errno;
use wire::Duration;

#[test]
fn configuration_space_is_read_whole_and_in_pieces() {
    let mut testbed = Testbed::new();
    let all = testbed.read(CONFIG, 0, 4096);
    assert_eq!(all[..4], testbed.config[..4]);
    assert_eq!(all[0x10..0x18], [4, 0, 0, 0, 0, 0, 0, 0]);
    let forwarded = testbed.take_actions().len();
    assert!((900..1024).contains(&forwarded), "{forwarded}");
    assert_eq!(testbed.read(CONFIG, 0x2d, 6), all[0x2d..0x33]);
    // The ROM register is shadowed.
    assert_eq!(testbed.take_accesses(), [(0x2d, 3)]);
}

#[test]
fn an_access_outside_a_region_is_refused() {
    let mut testbed = Testbed::new();
    for (region, offset, count) in [
        (0, 0x4000, 1),
        (0, 0x3fff, 2),
        (0, u64::MAX, 2),
        (1, 0, 4),
        (6, 0, 4),
        (CONFIG, 4095, 2),
        (8, 0, 1),
        (9, 0, 1),
        (u32::MAX, 0, 1),
    ] {
        let payload = access(region, offset, count, &[0; 4]);
        assert_eq!(testbed.errno(Command::RegionRead, &payload, &[]), Some(22));
        assert_eq!(testbed.errno(Command::RegionWrite, &payload, &[]), Some(22));
    }
    // A write with fewer data bytes than the count is refused.
    let payload = access(0, 0, 8, &[0; 7]);
    assert_eq!(testbed.errno(Command::RegionWrite, &payload, &[]), Some(22));
    assert_eq!(testbed.take_actions(), []);
    assert!(testbed.read(0, 0, 0).is_empty());
    testbed.write(0, 0, &[]);
}

#[test]
fn a_bar_access_is_cut_at_4_kib_and_at_the_msix_table() {
    let mut testbed = Testbed::new();
    let bytes = testbed.read(0, 0xffe, 0x3004 - 0xffe);
    assert_eq!(testbed.take_accesses(), [(0xffe, 2), (0x1000, 0x1000), (0x2040, 0xfc0)]);
    assert_eq!(bytes[..4], [0xfe, 0xff, 0, 1]);
    // The MSI-X table has four entries with the mask bit set, and no vector is pending.
    assert_eq!(bytes[0x2000 - 0xffe + 12], 1);
    assert_eq!(bytes[0x3000 - 0xffe..], [0; 4]);
    testbed.write(0, 0x203c, &[0, 0, 0, 0, 9, 9]);
    let [Action::BarWrite { offset: 0x2040, ref data, .. }] = testbed.take_actions()[..] else {
        panic!("only what lies behind the table");
    };
    assert_eq!(data[..], [9, 9]);
    testbed.write(0, 0x3000, &[0xff; 8]);
    assert_eq!(testbed.take_actions(), []);
    assert_eq!(testbed.read(0, 0x203c, 1), [0]);
}

#[test]
fn accesses_wait_for_each_other() {
    let mut testbed = Testbed::new();
    testbed.answer = false;
    let read = message(1, 9, &access(0, 0, 4, &[]), false);
    let write = message(2, 10, &access(CONFIG, 4, 2, &[6, 0]), false);
    testbed.send(&[read, write].concat(), &[]);
    let [Action::BarRead { token, .. }] = testbed.take_actions()[..] else { panic!() };
    assert!(testbed.client.is_quiet());
    // An answer with an unknown token is ignored.
    testbed.server.reply(testbed.now, token + 1000, Ok(&[1]));
    testbed.server.reply(testbed.now, token, Ok(&[1, 2, 3, 4]));
    testbed.pump();
    assert_eq!(testbed.client.receive().payload[16..], [1, 2, 3, 4]);
    let [Action::ConfigWrite { token, offset: 4, size: 2, value: 6 }] = testbed.take_actions()[..]
    else {
        panic!()
    };
    assert!(testbed.client.is_quiet());
    testbed.server.reply(testbed.now, token, Ok(&[]));
    assert_eq!(testbed.client.receive().header.id, 2);
}

#[test]
fn answers_may_come_in_any_order() {
    let mut testbed = Testbed::new();
    let [one, two] = testbed.ask(0xffc, 8)[..] else { panic!() };
    testbed.server.reply(testbed.now, two, Ok(&[5, 6, 7, 8]));
    assert!(testbed.client.is_quiet());
    testbed.server.reply(testbed.now, one, Ok(&[1, 2, 3, 4]));
    assert_eq!(testbed.client.receive().payload[16..], [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_failed_access_is_refused_and_never_with_errno_0() {
    let mut testbed = Testbed::new();
    let [token] = testbed.ask(0, 4)[..] else { panic!() };
    testbed.server.reply(testbed.now, token, Err(Errno::IO));
    assert_eq!(testbed.client.receive().header.error, Some(5));
}

#[test]
fn an_access_nobody_answers_reads_all_ones_before_qemu_gives_up() {
    let mut testbed = Testbed::new();
    let [first, token] = testbed.ask(0xffc, 8)[..] else { panic!() };
    testbed.server.reply(testbed.now, first, Ok(&[1, 2, 3, 4]));
    assert_eq!(testbed.server.session.deadline(), Some(testbed.now + ACCESS_DEADLINE));
    testbed.now += ACCESS_DEADLINE;
    assert!(ACCESS_DEADLINE < Duration::from_ms(5000));
    testbed.pump();
    let reply = testbed.client.receive();
    assert_eq!(reply.payload[16..], [1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(testbed.server.session.counters.timeouts, 1);
    // A late answer is ignored, and the next access is executed.
    testbed.server.reply(testbed.now, token, Ok(&[0; 4]));
    testbed.answer = true;
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

#[test]
fn an_absent_function_reads_all_ones_at_once() {
    let mut testbed = Testbed::new();
    testbed.answer = false;
    testbed.post(Command::RegionRead, &access(CONFIG, 0, 4, &[]), &[]);
    testbed.server.set_presence(testbed.now, Presence::Absent);
    assert_eq!(testbed.client.receive().payload[16..], [0xff; 4]);
    testbed.take_actions();
    assert_eq!(testbed.read(0, 0x1c, 4), [0xff; 4]);
    assert_eq!(testbed.read(CONFIG, 0, 61), [0xff; 61]);
    assert_eq!(testbed.read(CONFIG, 0x3e, 66), [0xff; 66]);
    // The interrupt pin does not read as all ones, because QEMU reads it when the guest disables
    // MSI-X.
    assert_eq!(testbed.read(CONFIG, 0x3d, 1), [1]);
    assert_eq!(testbed.read(CONFIG, 0x3c, 4), [0xff, 1, 0xff, 0xff]);
    testbed.write(0, 0x14, &[1; 4]);
    assert_eq!(testbed.take_actions(), []);
    assert_eq!(testbed.server.session.counters.dropped_writes, 1);
    // The owner of the session gets the reset even if the function is absent.
    testbed.answer = true;
    assert_eq!(testbed.errno(Command::DeviceReset, &[], &[]), None);
    assert!(matches!(testbed.take_actions()[..], [Action::Reset { .. }]));
    testbed.server.set_presence(testbed.now, Presence::Present);
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

#[test]
fn a_function_that_waits_for_a_reset_shows_its_configuration_space_alone() {
    let mut testbed = Testbed::new();
    testbed.server.set_presence(testbed.now, Presence::ConfigOnly);
    assert_eq!(testbed.read(0, 0x1c, 4), [0xff; 4]);
    assert_eq!(testbed.read(0, 0x2000, 4), [0xff; 4], "nor the MSI-X table");
    testbed.take_actions();
    testbed.write(0, 0x14, &[1; 4]);
    assert_eq!(testbed.take_actions(), []);
    assert_eq!(testbed.read(CONFIG, 0, 4), testbed.config[..4]);
    testbed.write(CONFIG, 4, &[4, 0]);
    assert_eq!(testbed.server.session.config.command, [Some(6), Some(0)]);
    testbed.take_actions();
    testbed.write(CONFIG, 0x68, &[0x1f, 0xa0]);
    let actions = testbed.take_actions();
    assert!(matches!(actions.last(), Some(Action::Reset { .. })));
    assert_eq!(testbed.server.session.config.command, [None, None]);
    testbed.server.set_presence(testbed.now, Presence::Present);
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

#[test]
fn writes_before_a_loss_do_not_reach_what_comes_back() {
    let mut testbed = Testbed::new();
    testbed.answer = false;
    let write = access(0, 0x1000, 4, &[1; 4]);
    testbed.client.send(&message(7, Command::RegionWrite.number(), &write, false), &[]);
    testbed.server.service(testbed.now);
    testbed.server.set_presence(testbed.now, Presence::Absent);
    testbed.server.set_presence(testbed.now, Presence::Present);
    testbed.pump();
    assert_eq!(testbed.take_actions(), []);
    assert_eq!(testbed.server.session.counters.dropped_writes, 1);
}

#[test]
fn resets_clear_what_is_shadowed_here() {
    let mut testbed = Testbed::new();
    for hot in [true, false] {
        testbed.write(CONFIG, 0x10, &[0, 0, 0xbf, 0xfe]);
        testbed.write(0, 0x2000, &[0x44; 4]);
        assert_eq!(testbed.read(CONFIG, 0x10, 4), [4, 0, 0xbf, 0xfe]);
        testbed.take_actions();
        if hot {
            assert_eq!(testbed.errno(Command::DeviceReset, &[], &[]), None);
        } else {
            testbed.write(CONFIG, 0x68, &[0x1f, 0xa0]);
        }
        let actions = testbed.take_actions();
        assert!(matches!(actions.last(), Some(Action::Reset { .. })));
        assert_eq!(testbed.read(CONFIG, 0x10, 4), [4, 0, 0, 0]);
        assert_eq!(testbed.read(0, 0x2000, 4), [0; 4]);
    }
}

#[test]
fn a_reset_is_answered_when_it_is_done() {
    let mut testbed = Testbed::new();
    testbed.answer = false;
    testbed.post(Command::DeviceReset, &[], &[]);
    let [Action::Reset { token }] = testbed.take_actions()[..] else { panic!() };
    assert!(testbed.client.is_quiet());
    testbed.server.reply(testbed.now, token, Ok(&[]));
    assert_eq!(testbed.client.receive().header.error, None);
}

#[test]
fn msix_follows_the_control_register_and_the_descriptors() {
    let mut testbed = Testbed::new();
    testbed.write(CONFIG, 0x52, &[0x03, 0x80]);
    assert_eq!(testbed.take_actions(), [Action::MsixEnable(true)]);
    assert_eq!(testbed.read(CONFIG, 0x52, 2), [0x03, 0x80]);
    let event = eventfd();
    assert_eq!(testbed.set_irqs(TRIGGER, (MSIX, 0, 1), &[event.as_fd()]), None);
    testbed.write(CONFIG, 0x52, &[0x03, 0x00]);
    assert_eq!(testbed.take_actions(), []);
    // After a reset MSI-X of the function is enabled again, because the client's descriptors stay
    // assigned.
    assert_eq!(testbed.errno(Command::DeviceReset, &[], &[]), None);
    let actions = testbed.take_actions();
    assert!(matches!(actions[..], [Action::Reset { .. }, Action::MsixEnable(true)]));
    assert_eq!(testbed.set_irqs(FIRE, (MSIX, 0, 0), &[]), None);
    assert_eq!(testbed.take_actions(), [Action::MsixEnable(false)]);
}
