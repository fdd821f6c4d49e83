-- Messages by which a host node sends bytes of host memory in front of a doorbell: MsgD,
-- Vendor_Defined Type 1, routed by ID (docs/push.md). Numbers are big-endian.

return function(bytes)
    local proto = Proto("farlane_push", "farlane push")
    local push = { proto = proto }
    local u8, u16, u64 = ProtoField.uint8, ProtoField.uint16, ProtoField.uint64
    local kinds = { "Queue", "Bytes", "EndCommand", "EndQueue", "EndRange", "EndAll" }
    local f = {
        target = ProtoField.string("farlane_push.target", "Function"),
        vendor = u16("farlane_push.vendor", "Vendor ID", base.HEX),
        subtype = u8("farlane_push.subtype", "Subtype"),
        size = u16("farlane_push.completion_size", "Completion size"),
        kind = u8("farlane_push.kind", "Record", base.DEC, kinds),
        queue = u16("farlane_push.queue", "Queue"),
        command = u16("farlane_push.command", "Command Identifier"),
        address = u64("farlane_push.address", "Address", base.HEX),
        length = u64("farlane_push.length", "Length"),
        bytes = ProtoField.bytes("farlane_push.bytes", "Bytes of host memory"),
        last = u16("farlane_push.last", "Last slot"),
        head = u16("farlane_push.head", "Head"),
        completion_last = u16("farlane_push.completion_last", "Last completion slot"),
        base = u64("farlane_push.base", "Base", base.HEX),
        completion_base = u64("farlane_push.completion_base", "Completion base", base.HEX),
    }
    local malformed = ProtoExpert.new("farlane_push.malformed", "Malformed push",
        expert.group.MALFORMED, expert.severity.ERROR)
    local fields = {}
    for _, field in pairs(f) do fields[#fields + 1] = field end
    proto.fields, proto.experts = fields, { malformed }

    local VENDOR = 0xfa12
    local u16_be, u32_be = bytes.u16_be, bytes.u32_be
    local function u64_be(raw, at) return u32_be(raw, at) * 4294967296 + u32_be(raw, at + 4) end

    -- Whether `length` bytes at the address that stands at `at` reach 2^64.
    local function wraps(raw, at, length)
        return u32_be(raw, at) == 4294967295 and u32_be(raw, at + 4) + length >= 4294967296
    end

    local check = {}

    -- Queue
    check[1] = function(raw, at, one)
        one.last, one.head, one.completion_last = u16_be(raw, at + 4), u16_be(raw, at + 6), u16_be(raw, at + 8)
        one.base, one.completion_base = u64_be(raw, at + 12), u64_be(raw, at + 20)
        if u16_be(raw, at + 10) ~= 0 then return "bytes 10 and 11 of Queue are not 0" end
        if one.last == 0 or one.completion_last == 0 then return "a queue of one slot" end
        if one.head > one.last then return "the head is no slot of the queue" end
        for _, place in ipairs({ 12, 20 }) do
            if u32_be(raw, at + place + 4) % 4096 ~= 0 or wraps(raw, at + place, 4194304) then
                return "a base that is no multiple of 4096, or too high"
            end
        end
    end

    -- Bytes
    check[2] = function(raw, at, one)
        one.command, one.address = u16_be(raw, at + 4), u64_be(raw, at + 8)
        local length = u16_be(raw, at + 6) * 4
        if length == 0 then return "no bytes in Bytes" end
        if one.address % 4 ~= 0 or wraps(raw, at + 8, length) then
            return "an address of Bytes that is no double word below 2^64"
        end
        one.bytes, one.length = length, 16 + length
    end

    -- EndCommand
    check[3] = function(raw, at, one)
        one.command = u16_be(raw, at + 4)
        if u16_be(raw, at + 6) ~= 0 then return "bytes 6 and 7 of EndCommand are not 0" end
    end
    check[4] = function() end

    -- EndRange
    check[5] = function(raw, at, one)
        if one.queue ~= 0 then return "a queue in a record without one" end
        one.address = u64_be(raw, at + 4)
    end

    -- EndAll
    check[6] = function(_, _, one)
        if one.queue ~= 0 then return "a queue in a record without one" end
    end

    -- Bytes that a record of each kind has at least.
    local least = { 28, 16, 8, 4, 20, 4 }

    -- The record at `at` of `raw`, in a payload of `whole` bytes; a fault; neither if the capture has
    -- not all of its front.
    local function record(raw, at, whole)
        local function lacks(need)
            if whole - at < need then
                return true, string.format("truncated record: %d bytes are left, it needs %d", whole - at, need)
            end
            return #raw - at < need
        end
        local short, fault = lacks(4)
        if short then return nil, fault end
        local kind = raw:byte(at + 1)
        if raw:byte(at + 2) ~= 0 then return nil, "byte 1 of a record is not 0" end
        if kinds[kind] == nil then return nil, string.format("record kind %d", kind) end
        short, fault = lacks(least[kind])
        if short then return nil, fault end
        local one = { kind = kind, at = at, length = least[kind], queue = u16_be(raw, at + 2) }
        fault = check[kind](raw, at, one)
        if fault then return nil, fault end
        if whole - at < one.length then return nil, select(2, lacks(one.length)) end
        return one
    end

    -- The message in TLP `t`, or nil: `target`, `records`, and `fault` if it is malformed. Of a capture
    -- that was cut, the records whose front is there.
    function push.parse(t, tvb, raw)
        -- Routed by ID is 010b (PCIe Base 4.0, table 2-17).
        if t.kind ~= "Msg" or t.code ~= 0x7f or t.fmt_type % 8 ~= 2 then return nil end
        local at = t.at
        if tvb(at + 10, 2):uint() ~= VENDOR then return nil end
        local p = { target = tvb(at + 8, 2):uint(), records = {} }
        local subtype, shift = tvb(at + 12, 1):uint(), tvb(at + 13, 1):uint()
        if subtype ~= 1 then p.fault = string.format("subtype %d", subtype)
        elseif shift < 6 or shift > 12 then p.fault = string.format("completions of 2^%d bytes", shift)
        elseif tvb(at + 14, 2):uint() ~= 0 then p.fault = "bytes 14 and 15 are not 0" end
        local from = 0
        while not p.fault and from < t.data_length do
            local one, fault = record(raw, from, t.data_length)
            p.fault = fault
            if one == nil then break end
            p.records[#p.records + 1] = one
            from = from + one.length
        end
        return p
    end

    -- In a few words, with what controllers say of the bytes.
    function push.summary(p, meanings)
        if p.fault then return "push, malformed: " .. p.fault end
        local texts, ends = {}, {}
        for _, text in ipairs(meanings) do
            if text ~= texts[#texts] then texts[#texts + 1] = text end
        end
        for _, one in ipairs(p.records) do
            if one.kind >= 3 then ends[#ends + 1] = kinds[one.kind] end
        end
        local all = table.concat(texts, ", ")
        if #ends > 0 then all = (all == "" and "" or all .. ", ") .. table.concat(ends, ", ") end
        return all == "" and "push" or "push: " .. all
    end

    local function add_record(tree, t, tvb, one)
        local at = t.data_at + one.at
        local kept = math.min(one.length, t.data_kept - one.at)
        local sub = tree:add(proto, tvb(at, kept), "Record: " .. kinds[one.kind])
        sub:add(f.kind, tvb(at, 1))
        if one.kind < 5 then sub:add(f.queue, tvb(at + 2, 2)) end
        if one.kind == 1 then
            sub:add(f.last, tvb(at + 4, 2))
            sub:add(f.head, tvb(at + 6, 2))
            sub:add(f.completion_last, tvb(at + 8, 2))
            sub:add(f.base, tvb(at + 12, 8))
            sub:add(f.completion_base, tvb(at + 20, 8))
        elseif one.kind == 2 then
            sub:add(f.command, tvb(at + 4, 2))
            sub:add(f.length, tvb(at + 6, 2), UInt64(one.bytes))
            sub:add(f.address, tvb(at + 8, 8))
            if kept > 16 then sub:add(f.bytes, tvb(at + 16, kept - 16)) end
        elseif one.kind == 3 then
            sub:add(f.command, tvb(at + 4, 2))
        elseif one.kind == 5 then
            sub:add(f.address, tvb(at + 4, 8))
            sub:add(f.length, tvb(at + 12, 8))
        end
    end

    -- Adds the message to the tree of its TLP.
    function push.add(tree, t, tvb, p, bdf)
        local at = t.at
        local sub = tree:add(proto, tvb(at, t.kept), "farlane push")
        sub:add(f.target, tvb(at + 8, 2), bdf(p.target))
        sub:add(f.vendor, tvb(at + 10, 2))
        sub:add(f.subtype, tvb(at + 12, 1))
        local shift = tvb(at + 13, 1):uint()
        if shift <= 12 then sub:add(f.size, tvb(at + 13, 1), 2 ^ shift) end
        for _, one in ipairs(p.records) do add_record(sub, t, tvb, one) end
        if p.fault then sub:add_proto_expert_info(malformed, "Malformed push: " .. p.fault) end
    end

    return push
end
