//! The NVMe driver's own record of its commands (`nvme:nvme_setup_cmd`), to be
//! compared with what a capture holds.
//!
//! Not in it: Asynchronous Event Requests, which the driver sends another way,
//! and what firmware sent before Linux. The driver's queues take commands from
//! several processors, so the order within a queue is that of the record only
//! almost always; queue and command identifier tell which is which.

/// One command as the driver set it up for its queue.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedCommand {
    /// N of the guest's `nvmeN`.
    pub controller: u32,
    /// The submission queue; 0 is the admin queue.
    pub queue: u16,
    /// The command identifier.
    pub id: u16,
    /// The namespace identifier.
    pub namespace: u32,
    /// The operation's name as the driver has it, such as `nvme_cmd_read`, or its
    /// number (`0x81`) if the driver has none.
    pub operation: String,
    /// Its parameters by the driver's names, such as `slba` and `len` (zero-based)
    /// of a read. `cdw10` is a text of 24 bytes: dwords 10 to 15.
    pub parameters: Vec<(String, String)>,
}

impl TracedCommand {
    /// The number of the operation in its set (admin or I/O by [`Self::queue`]),
    /// for those that Linux issues to a PCIe drive by itself or through nvme-cli's
    /// everyday commands.
    pub fn opcode(&self) -> Option<u8> {
        Some(match self.operation.as_str() {
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
            other => return u8::from_str_radix(other.strip_prefix("0x")?, 16).ok(),
        })
    }

    /// A parameter as a number.
    pub fn parameter(&self, name: &str) -> Option<u64> {
        let (_, text) = self.parameters.iter().find(|(known, _)| known == name)?;
        number(text)
    }
}

/// Reads the lines of a trace.
pub fn parse(text: &str) -> Vec<TracedCommand> {
    text.lines()
        .map(|line| parse_line(line).unwrap_or_else(|| panic!("not understood: {line}")))
        .collect()
}

/// Reads the part of a line after the event's name, for instance
/// `nvme0: disk=nvme0n1, qid=1, cmdid=64, nsid=1, flags=0x0, meta=0x0,
/// cmd=(nvme_cmd_read slba=0, len=7, ctrl=0x0, dsmgmt=0, reftag=0)`.
fn parse_line(line: &str) -> Option<TracedCommand> {
    let (_, event) = line.split_once("nvme_setup_cmd: nvme")?;
    let (controller, event) = event.split_once(": ")?;
    let (entry, command) = event.split_once(", cmd=(")?;
    let (operation, parameters) = command.trim_end().strip_suffix(')')?.split_once(' ')?;
    let field = |name| {
        let (_, text) = pairs(entry).find(|(known, _)| *known == name)?;
        number(text)
    };
    Some(TracedCommand {
        controller: controller.parse().ok()?,
        queue: field("qid")?.try_into().ok()?,
        id: field("cmdid")?.try_into().ok()?,
        namespace: field("nsid")?.try_into().ok()?,
        operation: operation.to_owned(),
        parameters: pairs(parameters)
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    })
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
    let [read] = &read[..] else { panic!("{read:?}") };
    assert_eq!((read.controller, read.queue, read.id, read.namespace), (1, 2, 20545, 1));
    assert_eq!(read.opcode(), Some(2));
    assert_eq!(read.parameter("slba"), Some(4096));
    assert_eq!(read.parameter("len"), Some(7));
}
