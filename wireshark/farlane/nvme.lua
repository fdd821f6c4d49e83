-- The NVMe part of the tree: queue entries (NVM Express 1.4, sections 4.2 and
-- 4.6), and for every other TLP which command it serves.

return function(names, push, tlp)
    local proto = Proto("nvme_pcie", "NVMe over PCIe")
    local nvme = { proto = proto }
    local u8, u16, u32, u64 = ProtoField.uint8, ProtoField.uint16, ProtoField.uint32, ProtoField.uint64
    local f = {
        qid = u16("nvme_pcie.qid", "Queue"),
        cid = u16("nvme_pcie.cid", "Command Identifier"),
        command = ProtoField.string("nvme_pcie.command", "Command"),
        doorbell_in = ProtoField.framenum("nvme_pcie.doorbell_in", "Doorbell in"),
        sqe_in = ProtoField.framenum("nvme_pcie.sqe_in", "Submission entry in", base.NONE, frametype.REQUEST),
        cqe_in = ProtoField.framenum("nvme_pcie.cqe_in", "Completion entry in", base.NONE, frametype.RESPONSE),
        head_in = ProtoField.framenum("nvme_pcie.head_in", "Head doorbell in"),
        latency = ProtoField.relative_time("nvme_pcie.latency", "From doorbell to completion entry"),
        sq = u16("nvme_pcie.sqe.sqid", "SQ Identifier"),
        opcode = u8("nvme_pcie.sqe.opcode", "Opcode (OPC)", base.HEX),
        fuse = u8("nvme_pcie.sqe.fuse", "Fused Operation (FUSE)", base.DEC, nil, 0x03),
        psdt = u8("nvme_pcie.sqe.psdt", "PRP or SGL (PSDT)", base.DEC, nil, 0xc0),
        sqe_cid = u16("nvme_pcie.sqe.cid", "Command Identifier (CID)"),
        nsid = u32("nvme_pcie.sqe.nsid", "Namespace Identifier (NSID)", base.HEX),
        mptr = u64("nvme_pcie.sqe.mptr", "Metadata Pointer (MPTR)", base.HEX),
        prp1 = u64("nvme_pcie.sqe.prp1", "PRP Entry 1", base.HEX),
        prp2 = u64("nvme_pcie.sqe.prp2", "PRP Entry 2", base.HEX),
        slba = u64("nvme_pcie.sqe.slba", "Starting LBA (SLBA)", base.HEX),
        blocks = u32("nvme_pcie.sqe.blocks", "Logical blocks (NLB + 1)"),
        result = u32("nvme_pcie.cqe.result", "Dword 0", base.HEX),
        sqhd = u16("nvme_pcie.cqe.sqhd", "SQ Head Pointer (SQHD)"),
        sqid = u16("nvme_pcie.cqe.sqid", "SQ Identifier (SQID)"),
        cqe_cid = u16("nvme_pcie.cqe.cid", "Command Identifier (CID)"),
        phase = u16("nvme_pcie.cqe.phase", "Phase Tag (P)", base.DEC, nil, 0x0001),
        sc = u16("nvme_pcie.cqe.sc", "Status Code (SC)", base.HEX, nil, 0x01fe),
        sct = u16("nvme_pcie.cqe.sct", "Status Code Type (SCT)", base.HEX, nil, 0x0e00),
        more = u16("nvme_pcie.cqe.more", "More (M)", base.DEC, nil, 0x4000),
        dnr = u16("nvme_pcie.cqe.dnr", "Do Not Retry (DNR)", base.DEC, nil, 0x8000),
    }
    for i = 10, 15 do
        f["cdw" .. i] = u32("nvme_pcie.sqe.cdw" .. i, "Command Dword " .. i, base.HEX)
    end
    local failed = ProtoExpert.new("nvme_pcie.failed", "Command failed",
        expert.group.RESPONSE_CODE, expert.severity.WARN)
    local unknown = ProtoExpert.new("nvme_pcie.unknown_command", "Completion of no known command",
        expert.group.SEQUENCE, expert.severity.WARN)
    local fields = {}
    for _, field in pairs(f) do fields[#fields + 1] = field end
    proto.fields = fields
    proto.experts = { failed, unknown }

    -- What ties the TLPs of a command together.
    local function add_command(tree, command, here)
        tree:add(f.command, command.text):set_generated()
        tree:add(f.qid, command.queue):set_generated()
        tree:add(f.cid, command.cid):set_generated()
        for _, name in ipairs({ "doorbell_in", "sqe_in", "cqe_in", "head_in" }) do
            if command[name] and command[name] ~= here then
                tree:add(f[name], command[name]):set_generated()
            end
        end
    end

    local function add_entry(tree, one, range, here)
        local command = one.command
        local sub = tree:add(proto, range, "NVMe " .. command.text)
        sub:add(f.sq, command.queue):set_generated()
        sub:add(f.opcode, range(0, 1)):append_text(" (" .. names.opcode(command.queue, command.opcode) .. ")")
        sub:add(f.fuse, range(1, 1))
        sub:add(f.psdt, range(1, 1))
        sub:add_le(f.sqe_cid, range(2, 2))
        sub:add_le(f.nsid, range(4, 4))
        sub:add_le(f.mptr, range(16, 8))
        sub:add_le(f.prp1, range(24, 8))
        sub:add_le(f.prp2, range(32, 8))
        for i = 10, 15 do sub:add_le(f["cdw" .. i], range(i * 4, 4)) end
        if names.has_blocks(command.queue, command.opcode) then
            sub:add_le(f.slba, range(40, 8)):set_generated()
            sub:add(f.blocks, command.entry.cdw12 % 65536 + 1):set_generated()
        end
        add_command(sub, command, here)
    end

    local function add_completion(tree, one, range, here)
        local sub = tree:add(proto, range, "NVMe completion entry")
        sub:add_le(f.result, range(0, 4))
        sub:add_le(f.sqhd, range(8, 2))
        sub:add_le(f.sqid, range(10, 2))
        sub:add_le(f.cqe_cid, range(12, 2))
        sub:add_le(f.phase, range(14, 2))
        local status = sub:add_le(f.sc, range(14, 2))
        sub:add_le(f.sct, range(14, 2))
        sub:add_le(f.more, range(14, 2))
        sub:add_le(f.dnr, range(14, 2))
        local bits = range(14, 2):le_uint()
        if math.floor(bits / 2) % 2048 ~= 0 then status:add_proto_expert_info(failed) end
        local command = one.command
        if command == nil then
            sub:add_proto_expert_info(unknown)
            return
        end
        sub:append_text(": " .. command.text)
        add_command(sub, command, here)
        local time = math.max(command.ended - command.begin, 0)
        local whole = math.floor(time)
        sub:add(f.latency, NSTime.new(whole, math.floor((time - whole) * 1e9))):set_generated()
    end

    -- Adds what `seen` tells about the TLP `t`. An entry whose bytes came in
    -- several completions gets a buffer of its own.
    function nvme.add(tree, t, tvb, seen)
        if seen.push then push.add(tree, t, tvb, seen.push, tlp.bdf) end
        for _, one in ipairs(seen.entries or {}) do
            local range
            if one.at >= 0 then
                range = tvb(t.data_at + one.at, 64)
            else
                range = ByteArray.new(one.command.entry.raw, true):tvb("submission queue entry")()
            end
            add_entry(tree, one, range, seen.number)
        end
        for _, one in ipairs(seen.completions or {}) do
            add_completion(tree, one, tvb(t.data_at + one.at, 16), seen.number)
        end
        for _, command in ipairs(seen.serves or {}) do
            add_command(tree:add(proto, "NVMe " .. command.text), command, seen.number)
        end
        if seen.command then
            add_command(tree:add(proto, "NVMe " .. seen.command.text), seen.command, seen.number)
        elseif seen.queue and not seen.serves and not seen.entries and not seen.completions then
            tree:add(f.qid, seen.queue):set_generated()
        end
    end

    return nvme
end
