//! The state of ptp4l's clock, from the management message TIME_STATUS_NP. This extension of
//! linuxptp is available over a Unix socket; `pmc` uses it, too.
//!
//! Layouts: the header is in IEEE 1588-2019, table 35, the management fields in table 56. For
//! TIME_STATUS_NP see `struct time_status_np` in linuxptp's tlv.h.

/// Bytes of a request: header, management fields, an empty TLV.
pub const REQUEST: usize = HEADER + MANAGEMENT + TLV;
const HEADER: usize = 34;
const MANAGEMENT: usize = 14;
/// Type, length, management ID.
const TLV: usize = 6;
/// Message type of management messages (table 36), and the version.
const MANAGEMENT_MESSAGE: u8 = 0xd;
const VERSION: u8 = 2;
/// `controlField` of management messages (table 42), and `logMessageInterval` of messages without
/// one.
const CONTROL: u8 = 4;
const NO_INTERVAL: u8 = 0x7f;
/// `actionField` (table 57).
const GET: u8 = 0;
const RESPONSE: u8 = 2;
/// The TLV type MANAGEMENT (table 52), and linuxptp's `MID_TIME_STATUS_NP`.
const MANAGEMENT_TLV: u16 = 1;
const TIME_STATUS_NP: u16 = 0xc000;
/// Bytes of TIME_STATUS_NP, and where `gmPresent` is.
const STATUS: usize = 50;
const GM_PRESENT: usize = 38;

/// The state that ptp4l reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The last measured offset of ptp4l's clock from the clock of its master, in ns; 0 on a
    /// master.
    pub master_offset_ns: i64,
    /// Whether ptp4l has a grandmaster, which may be itself.
    pub has_master: bool,
}

/// A request with the sequence number `number`. ptp4l answers if its domain and its transport
/// specific field (majorSdoId, 0 to 15; 1 for gPTP) are equal.
pub fn request(number: u16, domain: u8, transport_specific: u8) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    bytes[0] = transport_specific << 4 | MANAGEMENT_MESSAGE;
    bytes[1] = VERSION;
    bytes[2..4].copy_from_slice(&(REQUEST as u16).to_be_bytes());
    bytes[4] = domain;
    bytes[30..32].copy_from_slice(&number.to_be_bytes());
    bytes[32] = CONTROL;
    bytes[33] = NO_INTERVAL;
    // Every clock and port.
    bytes[34..44].fill(0xff);
    bytes[46] = GET;
    bytes[48..50].copy_from_slice(&MANAGEMENT_TLV.to_be_bytes());
    // The length of the management ID only.
    bytes[50..52].copy_from_slice(&2u16.to_be_bytes());
    bytes[52..54].copy_from_slice(&TIME_STATUS_NP.to_be_bytes());
    bytes
}

/// The state in an answer. `None` if `bytes` is not an answer with TIME_STATUS_NP.
pub fn answer(bytes: &[u8]) -> Option<Status> {
    let (fields, data) = bytes.split_first_chunk::<REQUEST>()?;
    let short = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
    let is_answer = fields[0] & 0xf == MANAGEMENT_MESSAGE
        && fields[1] & 0xf == VERSION
        && fields[46] & 0xf == RESPONSE
        && (short(48), short(52)) == (MANAGEMENT_TLV, TIME_STATUS_NP)
        && data.len() >= STATUS;
    let present = data.get(GM_PRESENT..GM_PRESENT + 4)?;
    is_answer.then(|| Status {
        master_offset_ns: i64::from_be_bytes(data[..8].try_into().expect("eight bytes")),
        has_master: present != [0; 4],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn golden_request() {
        assert_eq!(
            hex(&request(7, 3, 1)),
            "1d020036030000000000000000000000000000000000000000000000000000070\
             47fffffffffffffffffffff0000000000010002c000"
        );
    }

    /// An offset of -1000 ns from a grandmaster.
    #[test]
    fn only_a_complete_response_is_an_answer() {
        let mut bytes = request(7, 0, 0).to_vec();
        bytes[46] = RESPONSE;
        bytes.extend((-1000i64).to_be_bytes());
        bytes.extend([0; STATUS - 8]);
        bytes[REQUEST + GM_PRESENT + 3] = 1;
        let status = Status { master_offset_ns: -1000, has_master: true };
        assert_eq!(answer(&bytes), Some(status));
        assert_eq!(answer(&bytes[..bytes.len() - 1]), None);
        assert_eq!(answer(&request(7, 0, 0)), None);
        bytes[46] = GET;
        assert_eq!(answer(&bytes), None);
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes: Vec<u8>) {
            answer(&bytes);
        }
    }
}
