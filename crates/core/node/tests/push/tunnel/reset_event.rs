//! The event that reports to a driver that its controller was reset.

use super::*;

/// Asynchronous Event Request, and Keep Alive, which does nothing.
const EVENT: u8 = 0x0c;
const NOTHING: u8 = 0x18;

/// Address, dword 0, SQ head, SQ identifier, command identifier and phase tag of the entry.
fn event(initiator: &TunnelSetup) -> Option<(u64, u32, [u16; 3], u16)> {
    let event = initiator.host.reset_event(DRIVE)?;
    let word = |at: usize| u16::from_le_bytes([event.entry[at], event.entry[at + 1]]);
    let result = u32::from_le_bytes(event.entry[..4].try_into().unwrap());
    Some((event.address, result, [word(8), word(10), word(12)], word(14)))
}

/// Type 000b, information 03h, log page 01h (NVM Express 1.4, figures 146 and 147).
const PERSISTENT_INTERNAL_ERROR: u32 = 0x0001_0300;
const COMPLETIONS: u64 = RAM + 0x1000;

#[test]
fn an_outstanding_event_request_is_completed_where_the_driver_looks_next() {
    for mode in Mode::ALL {
        let mut initiator = TunnelSetup::new(mode, 1 << 20);
        assert_eq!(event(&initiator), None, "no request");
        initiator.command(0, 0, EVENT, 0, [0; 3]);
        let first = (COMPLETIONS, PERSISTENT_INTERNAL_ERROR, [0, 0, 0], 1);
        assert_eq!(event(&initiator), Some(first), "{mode}");
        // Two rounds of the queues; the request keeps slot 0 and identifier 0.
        for number in 1..20_u16 {
            let slot = number % 8;
            let mut command = entry(NOTHING, 0, [0; 3]);
            command[3] = 1;
            initiator.submit(0, slot, command);
            initiator.write(0x1004, 4, u64::from(slot));
            let place = COMPLETIONS + u64::from(slot) * 16;
            let phase = u16::from(number / 8 % 2 == 0);
            let head = (slot + 1) % 8;
            let expected = (place, PERSISTENT_INTERNAL_ERROR, [head, 0, 0], phase);
            assert_eq!(event(&initiator), Some(expected), "{mode}, {number}");
        }
        assert_eq!(initiator.host.push_counters().messages == 0, mode == Mode::Off);
    }
}

#[test]
fn event_request_is_not_completed_when_state_is_in_doubt() {
    type Doubt = fn(&mut TunnelSetup);
    let doubts: [(&str, Doubt); 8] = [
        ("the driver disabled the controller", |initiator| initiator.write(0x14, 4, 0)),
        ("the driver enabled it again", |initiator| {
            initiator.write(0x14, 4, 0);
            initiator.write(0x14, 4, 4 << 20 | 6 << 16 | 1);
        }),
        ("the subsystem was reset", |initiator| initiator.write(0x20, 4, 0x4e56_4d65)),
        ("the function is not a bus master", |initiator| initiator.config(DRIVE, 0x04, 2)),
        ("the function was not a bus master", |initiator| {
            initiator.config(DRIVE, 0x04, 2);
            initiator.config(DRIVE, 0x04, 6);
        }),
        ("the function was reset", |initiator| initiator.config(DRIVE, 0x48, 1 << 15)),
        ("the link was lost before", |initiator| initiator.host.clear_bus_masters(3..=3)),
        ("the completion queue is full", |initiator| {
            for slot in 1..8 {
                initiator.command(0, slot, NOTHING, 0, [0; 3]);
            }
        }),
    ];
    for (case, doubt) in doubts {
        let mut initiator = TunnelSetup::new(Mode::Off, 1 << 20);
        initiator.command(0, 0, EVENT, 0, [0; 3]);
        assert!(event(&initiator).is_some());
        doubt(&mut initiator);
        assert_eq!(event(&initiator), None, "{case}");
    }
}

#[test]
fn an_event_request_in_memory_reached_by_messages_is_learnt_from_the_controllers_read() {
    for mode in Mode::ALL {
        let mut initiator = TunnelSetup::new(mode, 1 << 20);
        initiator.memory.by_message = true;
        initiator.command(0, 0, EVENT, 0, [0; 3]);
        let first = (COMPLETIONS, PERSISTENT_INTERNAL_ERROR, [0, 0, 0], 1);
        assert_eq!(event(&initiator), Some(first), "{mode}");
        // Two rounds of the queues.
        for number in 1..20_u16 {
            let mut command = entry(NOTHING, 0, [0; 3]);
            command[3] = 1;
            initiator.submit(0, number % 8, command);
            initiator.write(0x1004, 4, u64::from(number % 8));
        }
        let next = (COMPLETIONS + 3 * 16, PERSISTENT_INTERNAL_ERROR, [4, 0, 0], 1);
        assert_eq!(event(&initiator), Some(next), "{mode}");
        assert_eq!(initiator.host.push_counters().entries, 0, "{mode}");
        // Once memory is at hand and everything known, entries are pushed again.
        initiator.memory.by_message = false;
        initiator.command(0, 4, NOTHING, 0, [0; 3]);
        assert_eq!(initiator.host.push_counters().entries == 1, mode != Mode::Off, "{mode}");
    }
}

#[test]
fn an_entry_that_the_controller_writes_out_of_place_leaves_doubt() {
    for (slot, phase) in [(1, 1), (0, 0), (7, 1)] {
        let mut initiator = TunnelSetup::new(Mode::Off, 1 << 20);
        initiator.command(0, 0, EVENT, 0, [0; 3]);
        let mut entry = [0; 16];
        entry[14] = phase;
        let data = Bytes::copy_from_slice(&entry);
        let write = Tlp::write_bytes(DRIVE, COMPLETIONS + slot * 16, &data).unwrap();
        initiator.device.function_mut().0.out.push_back(write);
        initiator.run();
        assert_eq!(event(&initiator), None, "slot {slot}, phase {phase}");
    }
}
