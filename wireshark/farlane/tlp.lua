-- PCIe transaction-layer packets (PCIe Base 4.0, chapter 2): bytes to a table,
-- and a table to a tree. What a TLP means for NVMe is not known here.

return function(names)
    local proto = Proto("pcie_tlp", "PCIe TLP")
    local tlp = { proto = proto }
    local b, v = ProtoField.bool, ProtoField.uint8
    local f = {
        fmt = v("pcie_tlp.fmt", "Fmt", base.HEX, nil, 0xe0),
        type = v("pcie_tlp.type", "Type", base.HEX, nil, 0x1f),
        fmt_type = v("pcie_tlp.fmt_type", "Fmt/Type", base.HEX, names.fmt_type),
        tc = v("pcie_tlp.tc", "Traffic Class", base.DEC, nil, 0x70),
        ido = b("pcie_tlp.attr.ido", "ID-based Ordering", 8, nil, 0x04),
        relaxed = b("pcie_tlp.attr.relaxed", "Relaxed Ordering", 8, nil, 0x20),
        no_snoop = b("pcie_tlp.attr.no_snoop", "No Snoop", 8, nil, 0x10),
        td = b("pcie_tlp.td", "TD: ECRC follows", 8, nil, 0x80),
        ep = b("pcie_tlp.ep", "EP: poisoned", 8, nil, 0x40),
        length = ProtoField.uint16("pcie_tlp.length", "Length (DW)"),
        requester = ProtoField.string("pcie_tlp.requester", "Requester ID"),
        completer = ProtoField.string("pcie_tlp.completer", "Completer ID"),
        target = ProtoField.string("pcie_tlp.target", "Target ID"),
        tag = ProtoField.uint16("pcie_tlp.tag", "Tag"),
        first_be = v("pcie_tlp.first_be", "First DW BE", base.HEX, nil, 0x0f),
        last_be = v("pcie_tlp.last_be", "Last DW BE", base.HEX, nil, 0xf0),
        address = ProtoField.uint64("pcie_tlp.address", "Address", base.HEX),
        register = ProtoField.uint16("pcie_tlp.register", "Register", base.HEX),
        status = v("pcie_tlp.status", "Completion Status", base.DEC, names.status, 0xe0),
        bcm = b("pcie_tlp.bcm", "Byte Count Modified", 8, nil, 0x10),
        byte_count = ProtoField.uint16("pcie_tlp.byte_count", "Byte Count"),
        lower_address = v("pcie_tlp.lower_address", "Lower Address", base.HEX, nil, 0x7f),
        routing = v("pcie_tlp.msg.routing", "Message Routing", base.DEC, names.routing, 0x07),
        code = v("pcie_tlp.msg.code", "Message Code", base.HEX, names.message),
        body = ProtoField.bytes("pcie_tlp.msg.body", "Message Body"),
        payload = ProtoField.bytes("pcie_tlp.payload", "Payload"),
        ecrc = ProtoField.uint32("pcie_tlp.ecrc", "ECRC", base.HEX),
        index = ProtoField.uint16("pcie_tlp.index", "Number in the frame"),
        cut = ProtoField.uint16("pcie_tlp.cut", "Bytes that were not captured"),
        direction = ProtoField.string("pcie_tlp.direction", "Direction"),
        request_in = ProtoField.framenum("pcie_tlp.request_in", "Request in", base.NONE, frametype.REQUEST),
        completion_in = ProtoField.framenum("pcie_tlp.completion_in", "Completion in", base.NONE, frametype.RESPONSE),
        response_time = ProtoField.relative_time("pcie_tlp.response_time", "Response time"),
    }
    local e = {
        malformed = ProtoExpert.new("pcie_tlp.malformed", "Malformed TLP", expert.group.MALFORMED, expert.severity.ERROR),
        ur = ProtoExpert.new("pcie_tlp.unsupported_request", "Unsupported Request", expert.group.RESPONSE_CODE, expert.severity.WARN),
        ca = ProtoExpert.new("pcie_tlp.completer_abort", "Completer Abort", expert.group.RESPONSE_CODE, expert.severity.ERROR),
        crs = ProtoExpert.new("pcie_tlp.config_retry", "Configuration Request Retry", expert.group.RESPONSE_CODE, expert.severity.NOTE),
        poisoned = ProtoExpert.new("pcie_tlp.poisoned", "Poisoned TLP", expert.group.CHECKSUM, expert.severity.WARN),
        unexpected = ProtoExpert.new("pcie_tlp.unexpected_completion", "Completion of no known request", expert.group.SEQUENCE, expert.severity.WARN),
        reused = ProtoExpert.new("pcie_tlp.reused_tag", "Tag of a request that is still open", expert.group.SEQUENCE, expert.severity.WARN),
    }
    local fields, experts = {}, {}
    for _, field in pairs(f) do fields[#fields + 1] = field end
    for _, field in pairs(e) do experts[#experts + 1] = field end
    proto.fields = fields
    proto.experts = experts

    function tlp.bdf(bits)
        return string.format("%02x:%02x.%d", math.floor(bits / 256), math.floor(bits / 8) % 32, bits % 8)
    end

    -- Bytes of the TLP that begins at `at`; nil if not even that is there.
    function tlp.total_length(tvb, at)
        if tvb:len() - at < 4 then return nil end
        local dw = tvb(at + 2, 2):bitfield(6, 10)
        if dw == 0 then dw = 1024 end
        local has_data = tvb(at, 1):bitfield(1, 1) == 1
        local wide = tvb(at, 1):bitfield(2, 1) == 1
        local digest = tvb(at + 2, 1):bitfield(0, 1) == 1
        return (wide and 16 or 12) + (has_data and dw * 4 or 0) + (digest and 4 or 0)
    end

    -- How many of four byte enables are zero before the first one (from bit 0),
    -- and behind the last one.
    local function edges(be)
        local low, high = 0, 0
        while low < 4 and math.floor(be / 2 ^ low) % 2 == 0 do low = low + 1 end
        while high < 4 and math.floor(be / 2 ^ (3 - high)) % 2 == 0 do high = high + 1 end
        return low, high
    end

    -- Bytes before the first enabled one, and from there to the last one
    -- (table 2-37).
    local function span(t)
        if t.first_be == 0 then return 0, 1 end
        local lead, trail = edges(t.first_be)
        if t.dw == 1 then return lead, 4 - lead - trail end
        local _, last = edges(t.last_be)
        return lead, t.dw * 4 - lead - last
    end

    local function memory(t, tvb, at)
        t.requester = tvb(at + 4, 2):uint()
        t.last_be, t.first_be = tvb(at + 7, 1):bitfield(0, 4), tvb(at + 7, 1):bitfield(4, 4)
        local low = tvb(at + t.header - 4, 4):uint()
        t.address = low
        if t.header == 16 then t.address = tvb(at + 8, 4):uint() * 4294967296 + low end
        if low % 4 ~= 0 then return "reserved bits are set" end
        if t.header == 16 and tvb(at + 8, 4):uint() == 0 then return "4 DW header for an address below 4 GiB" end
        if t.dw == 1 and t.last_be ~= 0 or t.dw > 1 and (t.first_be == 0 or t.last_be == 0) then
            return "byte enables that the length forbids"
        end
        if low % 4096 + t.dw * 4 > 4096 then return "crosses a 4 KiB boundary" end
        t.lead, t.bytes = span(t)
        t.kind = t.has_data and "MWr" or "MRd"
    end

    local function config(t, tvb, at)
        t.requester = tvb(at + 4, 2):uint()
        t.first_be = tvb(at + 7, 1):bitfield(4, 4)
        t.target = tvb(at + 8, 2):uint()
        t.register = tvb(at + 10, 2):uint()
        if t.dw ~= 1 then return "configuration request of " .. t.dw .. " DW" end
        if tvb(at + 1, 1):bitfield(1, 3) ~= 0 then return "traffic class on a configuration request" end
        if tvb(at + 7, 1):bitfield(0, 4) ~= 0 then return "byte enables that the length forbids" end
        if t.register % 4 ~= 0 or t.register > 4092 then return "reserved bits are set" end
        t.bytes, t.lead = 4, 0
        t.kind = t.has_data and "CfgWr" or "CfgRd"
    end

    local function completion(t, tvb, at)
        t.completer = tvb(at + 4, 2):uint()
        t.status = tvb(at + 6, 1):bitfield(0, 3)
        t.byte_count = tvb(at + 6, 2):bitfield(4, 12)
        if t.byte_count == 0 then t.byte_count = 4096 end
        t.requester = tvb(at + 8, 2):uint()
        t.lower_address = tvb(at + 11, 1):bitfield(1, 7)
        t.kind = "Cpl"
    end

    -- The TLP of `length` bytes at `at`: a table with `name`; `kind` is missing
    -- and `fault` says why if it is malformed. Of a capture that was cut only
    -- the first `kept` bytes are there.
    function tlp.parse(tvb, at, length, kept)
        kept = math.min(kept or length, length)
        local t = { at = at, length = length, kept = kept, fmt_type = tvb(at, 1):uint() }
        t.name = names.fmt_type[t.fmt_type] or string.format("TLP 0x%02x", t.fmt_type)
        local need = tlp.total_length(tvb, at)
        if need == nil or need > length then
            t.fault = need and string.format("truncated TLP: %d bytes, but its header gives %d", length, need)
                or "too short"
            return t
        end
        if kept < (tvb(at, 1):bitfield(2, 1) == 1 and 16 or 12) then
            t.fault = "cut off in the header"
            return t
        end
        t.has_data = tvb(at, 1):bitfield(1, 1) == 1
        t.header = tvb(at, 1):bitfield(2, 1) == 1 and 16 or 12
        t.dw = tvb(at + 2, 2):bitfield(6, 10)
        if t.dw == 0 then t.dw = 1024 end
        t.digest = tvb(at + 2, 1):bitfield(0, 1) == 1
        t.poisoned = tvb(at + 2, 1):bitfield(1, 1) == 1
        t.data_at = at + t.header
        t.data_length = t.has_data and t.dw * 4 or 0
        -- Bytes of it that are there.
        t.data_kept = math.min(t.data_length, kept - t.header)
        local tag_at = t.name:sub(1, 3) == "Cpl" and 10 or 6
        t.tag = tvb(at + 1, 1):bitfield(0, 1) * 512 + tvb(at + 1, 1):bitfield(4, 1) * 256
            + tvb(at + tag_at, 1):uint()
        if tvb(at + 1, 1):bitfield(6, 2) ~= 0 or tvb(at + 2, 1):bitfield(4, 2) ~= 0 then
            t.fault = "LN, TH or AT is set"
        elseif names.fmt_type[t.fmt_type] == nil then
            t.fault = "Fmt/Type is reserved or not carried"
        elseif t.name:sub(1, 1) == "M" and t.name:sub(1, 3) ~= "Msg" then
            t.fault = memory(t, tvb, at)
        elseif t.name:sub(1, 3) == "Cfg" then
            t.fault = config(t, tvb, at)
        elseif t.name:sub(1, 3) == "Cpl" then
            completion(t, tvb, at)
        else
            t.requester = tvb(at + 4, 2):uint()
            t.code = tvb(at + 7, 1):uint()
            t.kind = "Msg"
        end
        return t
    end

    -- Type, size and what cannot be told from context, for the info column.
    function tlp.summary(t)
        if t.fault then return t.name .. " malformed: " .. t.fault end
        if t.kind == "CfgRd" or t.kind == "CfgWr" then
            local register = names.config[t.register]
            return string.format("%s %s 0x%03x%s", t.name, tlp.bdf(t.target), t.register,
                register and " " .. register or "")
        end
        if t.kind == "Msg" then return t.name .. " " .. (names.message[t.code] or string.format("0x%02x", t.code)) end
        if t.kind == "Cpl" then
            if t.status ~= 0 then return t.name .. " " .. (names.status_short[t.status] or "reserved status") end
            return t.has_data and string.format("%s %d B", t.name, t.data_length) or t.name
        end
        return string.format("%s %d B", t.name, t.bytes)
    end

    local function add_request(tree, t, tvb)
        local at = t.at
        tree:add(f.requester, tvb(at + 4, 2), tlp.bdf(t.requester))
        tree:add(f.tag, tvb(at + 6, 1), t.tag)
        if t.kind == "Msg" then
            tree:add(f.routing, tvb(at, 1))
            tree:add(f.code, tvb(at + 7, 1))
            tree:add(f.body, tvb(at + 8, 8))
            return
        end
        tree:add(f.last_be, tvb(at + 7, 1))
        tree:add(f.first_be, tvb(at + 7, 1))
        if t.target then
            tree:add(f.target, tvb(at + 8, 2), tlp.bdf(t.target))
            tree:add(f.register, tvb(at + 10, 2))
        else
            tree:add(f.address, tvb(at + 8, t.header - 8))
        end
    end

    local function add_completion(tree, t, tvb)
        local at = t.at
        tree:add(f.completer, tvb(at + 4, 2), tlp.bdf(t.completer))
        local item = tree:add(f.status, tvb(at + 6, 1))
        tree:add(f.bcm, tvb(at + 6, 1))
        tree:add(f.byte_count, tvb(at + 6, 2), t.byte_count)
        tree:add(f.requester, tvb(at + 8, 2), tlp.bdf(t.requester))
        tree:add(f.tag, tvb(at + 10, 1), t.tag)
        tree:add(f.lower_address, tvb(at + 11, 1))
        if t.status == 4 then item:add_proto_expert_info(e.ca)
        elseif t.status == 2 then item:add_proto_expert_info(e.crs)
        elseif t.status ~= 0 then item:add_proto_expert_info(e.ur) end
    end

    -- Adds the TLP to `tree`; `seen` is what was found out about it. Returns its
    -- subtree.
    function tlp.add(tree, t, tvb, seen, index, direction)
        local at = t.at
        local subtree = tree:add(proto, tvb(at, t.kept), "PCIe TLP: " .. seen.text)
        if index then subtree:add(f.index, index):set_generated() end
        subtree:add(f.direction, direction == "down" and "from the host" or "from the device"):set_generated()
        subtree:add(f.fmt_type, tvb(at, 1))
        if t.header then
            subtree:add(f.fmt, tvb(at, 1))
            subtree:add(f.type, tvb(at, 1))
            subtree:add(f.tc, tvb(at + 1, 1))
            subtree:add(f.ido, tvb(at + 1, 1))
            subtree:add(f.relaxed, tvb(at + 2, 1))
            subtree:add(f.no_snoop, tvb(at + 2, 1))
            subtree:add(f.td, tvb(at + 2, 1))
            local ep = subtree:add(f.ep, tvb(at + 2, 1))
            if t.poisoned then ep:add_proto_expert_info(e.poisoned) end
            subtree:add(f.length, tvb(at + 2, 2), t.dw)
        end
        if t.kind == "Cpl" then add_completion(subtree, t, tvb)
        elseif t.kind then add_request(subtree, t, tvb) end
        if t.fault then subtree:add_proto_expert_info(e.malformed, "Malformed TLP: " .. t.fault) end
        if t.kind and t.data_kept > 0 then subtree:add(f.payload, tvb(t.data_at, t.data_kept)) end
        if t.kept < t.length then
            subtree:add(f.cut, t.length - t.kept):set_generated()
        elseif t.kind and t.digest then subtree:add(f.ecrc, tvb(at + t.length - 4, 4)) end
        if seen.request then
            subtree:add(f.request_in, seen.request.number):set_generated()
            local time = seen.time - seen.request.time
            local whole = math.floor(time)
            local rest = math.floor((time - whole) * 1e9 + 0.5)
            subtree:add(f.response_time, NSTime.new(whole, rest)):set_generated()
        elseif seen.unexpected then
            subtree:add_proto_expert_info(e.unexpected)
        end
        if seen.reused then subtree:add_proto_expert_info(e.reused) end
        for _, number in ipairs(seen.answers or {}) do
            subtree:add(f.completion_in, number):set_generated()
        end
        return subtree
    end

    return tlp
end
