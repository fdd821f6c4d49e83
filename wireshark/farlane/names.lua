-- Names of what is numbered in PCIe and NVMe.
--
-- This file and its neighbours return functions or tables and do nothing by
-- themselves: Wireshark also loads them alone when they are in its plugins folder.

local names = {}

-- PCIe Base 4.0, table 2-3. Fmt and Type of what farlane carries.
names.fmt_type = {
    [0x00] = "MRd32", [0x20] = "MRd64", [0x40] = "MWr32", [0x60] = "MWr64",
    [0x04] = "CfgRd0", [0x44] = "CfgWr0", [0x05] = "CfgRd1", [0x45] = "CfgWr1",
    [0x0a] = "Cpl", [0x4a] = "CplD",
}
for routing = 0, 7 do
    names.fmt_type[0x30 + routing] = "Msg"
    names.fmt_type[0x70 + routing] = "MsgD"
end

-- Table 2-18.
names.routing = {
    [0] = "to the root complex", "by address", "by ID", "broadcast", "local", "gathered",
}

-- Tables 2-19 to 2-27.
names.message = {
    [0x19] = "PME_Turn_Off", [0x1b] = "PME_TO_Ack",
    [0x20] = "Assert_INTA", [0x21] = "Assert_INTB", [0x22] = "Assert_INTC", [0x23] = "Assert_INTD",
    [0x24] = "Deassert_INTA", [0x25] = "Deassert_INTB",
    [0x26] = "Deassert_INTC", [0x27] = "Deassert_INTD",
    [0x30] = "ERR_COR", [0x31] = "ERR_NONFATAL", [0x33] = "ERR_FATAL",
    [0x50] = "Set_Slot_Power_Limit", [0x7e] = "Vendor_Defined Type 0", [0x7f] = "Vendor_Defined Type 1",
}

-- Table 2-34.
names.status = {
    [0] = "Successful Completion (SC)", [1] = "Unsupported Request (UR)",
    [2] = "Configuration Request Retry Status (CRS)", [4] = "Completer Abort (CA)",
}
names.status_short = { [0] = "SC", [1] = "UR", [2] = "CRS", [4] = "CA" }

-- Section 7.5.1, by the offset of the double word.
names.config = {
    [0x00] = "Vendor/Device ID", [0x04] = "Command/Status", [0x08] = "Class Code",
    [0x0c] = "Header Type", [0x10] = "BAR0", [0x14] = "BAR1", [0x18] = "BAR2", [0x1c] = "BAR3",
    [0x20] = "BAR4", [0x24] = "BAR5", [0x2c] = "Subsystem ID", [0x30] = "Expansion ROM",
    [0x34] = "Capabilities Pointer", [0x3c] = "Interrupt",
}

-- NVM Express 1.4, figure 68, by the offset of the double word.
names.register = {
    [0x00] = "CAP", [0x04] = "CAP high", [0x08] = "VS", [0x0c] = "INTMS", [0x10] = "INTMC",
    [0x14] = "CC", [0x1c] = "CSTS", [0x20] = "NSSR", [0x24] = "AQA", [0x28] = "ASQ",
    [0x2c] = "ASQ high", [0x30] = "ACQ", [0x34] = "ACQ high", [0x38] = "CMBLOC", [0x3c] = "CMBSZ",
}

-- Figure 139.
names.admin = {
    [0x00] = "Delete I/O Submission Queue", [0x01] = "Create I/O Submission Queue",
    [0x02] = "Get Log Page", [0x04] = "Delete I/O Completion Queue",
    [0x05] = "Create I/O Completion Queue", [0x06] = "Identify", [0x08] = "Abort",
    [0x09] = "Set Features", [0x0a] = "Get Features", [0x0c] = "Asynchronous Event Request",
    [0x0d] = "Namespace Management", [0x10] = "Firmware Commit", [0x11] = "Firmware Image Download",
    [0x14] = "Device Self-test", [0x15] = "Namespace Attachment", [0x18] = "Keep Alive",
    [0x7c] = "Doorbell Buffer Config", [0x80] = "Format NVM", [0x81] = "Security Send",
    [0x82] = "Security Receive", [0x84] = "Sanitize",
}

-- Figure 346.
names.io = {
    [0x00] = "Flush", [0x01] = "Write", [0x02] = "Read", [0x04] = "Write Uncorrectable",
    [0x05] = "Compare", [0x08] = "Write Zeroes", [0x09] = "Dataset Management", [0x0c] = "Verify",
    [0x0d] = "Reservation Register", [0x0e] = "Reservation Report",
    [0x11] = "Reservation Acquire", [0x15] = "Reservation Release",
}

function names.opcode(queue, opcode)
    local known = queue == 0 and names.admin or names.io
    return known[opcode] or string.format("opcode 0x%02x", opcode)
end

-- Whether the I/O opcode addresses logical blocks by SLBA and NLB.
function names.has_blocks(queue, opcode)
    return queue ~= 0 and (opcode == 1 or opcode == 2 or opcode == 4 or opcode == 5
        or opcode == 8 or opcode == 0x0c)
end

return names
