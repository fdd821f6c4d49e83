//! The NVMe driver's own record of its commands (`nvme:nvme_setup_cmd`), for comparison with a
//! capture.
//!
//! The record leaves out Asynchronous Event Requests, which the driver sends in another way, and
//! commands of the firmware. Several processors add commands to a queue, so the order of the record
//! is not always the order in the queue. Queue and command identifier identify a command.

use analysis::commands::replay::Issued;
use wire::nvme::opcode::nvm;

/// Returns the opcode of an operation, in its set (admin or I/O): operations that Linux issues to a
/// PCIe drive by itself or through common commands of nvme-cli. For operations without a name, the
/// driver prints the number.
fn opcode(operation: &str) -> Option<u8> {
    Some(match operation {
        "nvme_cmd_flush" => 0x00,
        "nvme_cmd_write" => 0x01,
        "nvme_cmd_read" => 0x02,
        "nvme_cmd_compare" => 0x05,
        "nvme_cmd_write_zeroes" => 0x08,
        "nvme_cmd_dsm" => 0x09,
        "nvme_cmd_verify" => 0x0c,
        "nvme_admin_delete_sq" => 0x00,
        "nvme_admin_create_sq" => 0x01,
        "nvme_admin_get_log_page" => 0x02,
        "nvme_admin_delete_cq" => 0x04,
        "nvme_admin_create_cq" => 0x05,
        "nvme_admin_identify" => 0x06,
        "nvme_admin_abort_cmd" => 0x08,
        "nvme_admin_set_features" => 0x09,
        "nvme_admin_get_features" => 0x0a,
        "nvme_admin_dbbuf" => 0x7c,
        "nvme_admin_security_send" => 0x81,
        "nvme_admin_security_recv" => 0x82,
        other => return u8::from_str_radix(other.strip_prefix("0x")?, 16).ok(),
    })
}

/// Parses the lines of a trace.
pub fn parse(text: &str) -> Vec<Issued> {
    text.lines()
        .map(|line| parse_line(line).unwrap_or_else(|| panic!("not understood: {line}")))
        .collect()
}

/// Parses the part of a line after the event's name, for instance `nvme0: disk=nvme0n1, qid=1,
/// cmdid=64, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_read slba=0, len=7, ctrl=0x0, dsmgmt=0,
/// reftag=0)`.
fn parse_line(line: &str) -> Option<Issued> {
    let (_, event) = line.split_once("nvme_setup_cmd: nvme")?;
    let (entry, command) = event.split_once(", cmd=(")?;
    let (operation, parameters) = command.trim_end().strip_suffix(')')?.split_once(' ')?;
    let (_, entry) = entry.split_once(": ")?;
    let field = |list, name| {
        let (_, text) = pairs(list).find(|(known, _)| *known == name)?;
        number(text)
    };
    let (queue, opcode) = (field(entry, "qid")?.try_into().ok()?, opcode(operation)?);
    let blocks = match opcode {
        nvm::READ | nvm::WRITE | nvm::WRITE_ZEROES if queue != 0 => {
            Some((field(parameters, "slba")?, field(parameters, "len")? as u32 + 1))
        }
        _ => None,
    };
    let (cid, nsid) = (field(entry, "cmdid")?.try_into().ok()?, field(entry, "nsid")?);
    Some(Issued { queue, cid, opcode, nsid: nsid.try_into().ok()?, blocks })
}

fn pairs(list: &str) -> impl Iterator<Item = (&str, &str)> {
    list.split(", ").filter_map(|pair| pair.split_once('='))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[test]
fn traced_commands_are_read() {
    let read = parse(
        "  fio-66  [001] .....  5.53: nvme_setup_cmd: nvme1: disk=nvme1n1, qid=2, cmdid=20545, \
         nsid=1, flags=0x0, meta=0x0, \
         cmd=(nvme_cmd_read slba=4096, len=7, ctrl=0x0, dsmgmt=0, reftag=0)\n",
    );
    let blocks = Some((4096, 8));
    assert_eq!(read, [Issued { queue: 2, cid: 20545, opcode: 2, nsid: 1, blocks }]);
}
