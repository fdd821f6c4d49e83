//! Security Receive and Security Send (NVMe 1.4, sections 5.25 and 5.26): only security protocol
//! 00h, which lists the supported protocols (SPC-4, section 7.7.1).

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use bytes::Bytes;
use wire::nvme::Command;

/// SECP 00h, security protocol information.
const INFORMATION: u32 = 0;
/// SPSP: the list of supported protocols.
const PROTOCOLS: u16 = 0;
/// SPSP: the certificate.
const CERTIFICATE: u16 = 1;

/// Supported security protocol list (SPC-4, table 558): six reserved bytes, the length in two bytes
/// (big-endian), and protocol 00h.
const PROTOCOL_LIST: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 1, 0];
/// Certificate data (SPC-4, table 559): two reserved bytes, and the length 0.
const NO_CERTIFICATE: &[u8] = &[0, 0, 0, 0];

impl Controller {
    /// Returns AL bytes: the data, followed by zeroes.
    pub(super) fn security_receive(&self, command: &Command) -> Result<Plan, Failure> {
        check_protocol(command)?;
        let data = match (command.cdw10 >> 8) as u16 {
            PROTOCOLS => PROTOCOL_LIST,
            CERTIFICATE => NO_CERTIFICATE,
            _ => return Err(Failure::cdw(10, 8)),
        };
        let length = command.cdw11 as usize;
        if length > self.settings.max_transfer() {
            return Err(Failure::cdw(11, 0));
        }
        if length == 0 {
            return Ok(Plan::Done(0));
        }
        let mut bytes = data.to_vec();
        bytes.resize(length, 0);
        Ok(Plan::Send(Bytes::from(bytes)))
    }

    /// Security Send always fails: protocol 00h supports only Security Receive.
    pub(super) fn security_send(&self, command: &Command) -> Result<Plan, Failure> {
        check_protocol(command)?;
        Err(Failure::cdw(10, 24))
    }
}

/// Rejects other protocols than 00h. Drivers request the TCG protocols at every start (Linux with
/// CONFIG_BLK_SED_OPAL), so this is not logged as an error.
fn check_protocol(command: &Command) -> Result<(), Failure> {
    match command.cdw10 >> 24 {
        INFORMATION => Ok(()),
        _ => Err(Failure::cdw(10, 24).of_probe()),
    }
}
