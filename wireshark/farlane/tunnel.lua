-- Frames of the tunnel (docs/protocol.md): what is found out about one when it
-- is first seen, in the order of its stream, and how it is shown, any number of
-- times.

return function(names, stream, follow, tlp, nvme)
    local proto = Proto("farlane", "farlane tunnel")
    local tunnel = { proto = proto }
    local HEADER, kinds, lengths = stream.HEADER, stream.kinds, stream.lengths
    local roles = { "host", "device", "probe" }
    local reasons = { "the versions differ", "another host uses this device", "the role does not fit",
        "the device belongs to another group", "an entry that the device does not know is required",
        "an entry that the device requires is missing", "the key gives no right for this role and group",
        "the device does not know the session", "another host's session is interrupted",
        "the link of the further connection does not exist" }
    local statuses = { [0] = "done", "refused, the node was given no group",
        "refused, a switch node cannot be moved" }
    local hosts = { [0] = "none", "goes on", "disconnected" }
    -- Entries of a Hello: name, and lengths of the value.
    local entries = {
        { name = "group", [2] = true }, { name = "push", [4] = true },
        { name = "session", [4] = true, [8] = true, [20] = true, [24] = true },
        { name = "paths", [1] = true }, { name = "connection", [4] = true, [20] = true },
    }
    local FIXED = 48

    local u8, u16, u32 = ProtoField.uint8, ProtoField.uint16, ProtoField.uint32
    local f = {
        length = u16("farlane.length", "Length"),
        kind = u8("farlane.kind", "Kind", base.DEC, kinds),
        flags = u8("farlane.flags", "Flags", base.HEX),
        sequence = u32("farlane.sequence", "Sequence"),
        acknowledged = u32("farlane.acknowledged", "Acknowledged"),
        from = ProtoField.string("farlane.from", "From"),
        tlps = u16("farlane.tlps", "TLPs"),
        magic = ProtoField.bytes("farlane.magic", "Magic"),
        version = u16("farlane.version", "Version"),
        role = u8("farlane.hello.role", "Role", base.DEC, roles),
        max_payload = u16("farlane.hello.max_payload", "Max Payload"),
        instance = ProtoField.uint64("farlane.hello.instance", "Instance", base.HEX),
        entry = ProtoField.bytes("farlane.hello.entry", "Entry"),
        entry_number = u16("farlane.hello.entry.number", "Number", base.DEC, nil, 0x7fff),
        required = ProtoField.bool("farlane.hello.entry.required", "Required", 16, nil, 0x8000),
        entry_length = u16("farlane.hello.entry.length", "Length"),
        entry_value = ProtoField.bytes("farlane.hello.entry.value", "Value"),
        group = u16("farlane.hello.group", "Group"),
        reason = u8("farlane.reject.reason", "Reason", base.DEC, reasons),
        rejected_entry = u16("farlane.reject.entry", "Entry"),
        reset = u32("farlane.reset", "Reset"),
        to = u16("farlane.move.to", "To group"),
        status = u8("farlane.moved.status", "Status", base.DEC, statuses),
        moved_host = u8("farlane.moved.host", "Host", base.DEC, hosts),
        awaited = ProtoField.bool("farlane.moved.awaited", "Another host waits"),
        moved_from = u16("farlane.moved.from", "From group"),
        moved_to = u16("farlane.moved.to", "Now group"),
        echo = ProtoField.uint64("farlane.echo", "Number", base.HEX),
        echo_in = ProtoField.framenum("farlane.echo_in", "Echo in", base.NONE, frametype.REQUEST),
        echo_time = ProtoField.relative_time("farlane.echo_time", "Round trip"),
        ends_in = ProtoField.framenum("farlane.ends_in", "Shown in"),
        seen_in = ProtoField.framenum("farlane.seen_in", "Seen before in"),
        seen_on = ProtoField.string("farlane.seen_on", "Seen before on"),
    }
    local grants = {}
    for i, class in ipairs({ "posted", "non_posted", "completion" }) do
        local name = class:gsub("_", "-")
        grants[i] = {
            u32("farlane.credits." .. class .. ".headers", "Credits, " .. name .. ", headers"),
            u32("farlane.credits." .. class .. ".data", "Credits, " .. name .. ", data"),
        }
        f[class .. "_headers"], f[class .. "_data"] = grants[i][1], grants[i][2]
    end
    local group, severity = expert.group, expert.severity
    local e = {
        malformed = ProtoExpert.new("farlane.malformed", "Malformed frame", group.MALFORMED, severity.ERROR),
        sequence = ProtoExpert.new("farlane.sequence_error", "Not the sequence number that is due", group.SEQUENCE, severity.ERROR),
        acknowledged = ProtoExpert.new("farlane.acknowledged_error", "Acknowledges frames that were never sent", group.SEQUENCE, severity.ERROR),
        rejected = ProtoExpert.new("farlane.rejected", "Turned down", group.RESPONSE_CODE, severity.WARN),
        reset = ProtoExpert.new("farlane.reset", "Hot reset", group.SEQUENCE, severity.NOTE),
        missing = ProtoExpert.new("farlane.missing", "Bytes are missing in the capture", group.SEQUENCE, severity.WARN),
        skipped = ProtoExpert.new("farlane.skipped", "The rest of a frame that was not captured", group.SEQUENCE, severity.NOTE),
        again = ProtoExpert.new("farlane.again", "Seen before", group.SEQUENCE, severity.NOTE),
        elsewhere = ProtoExpert.new("farlane.elsewhere", "Seen before on another interface", group.SEQUENCE, severity.CHAT),
    }
    tunnel.experts = e
    local function values(map)
        local list = {}
        for _, value in pairs(map) do list[#list + 1] = value end
        return list
    end
    tunnel.values = values
    proto.fields, proto.experts = values(f), values(e)

    local function add_grants(tree, tvb, at)
        for i, grant in ipairs(grants) do
            tree:add(grant[1], tvb(at + i * 8 - 8, 4))
            tree:add(grant[2], tvb(at + i * 8 - 4, 4))
        end
    end

    local function add_reject(tree, tvb)
        local reason, entry = tvb(HEADER + 10, 1), ""
        tree:add(f.reason, reason):add_proto_expert_info(e.rejected)
        -- Of other versions only the first 12 bytes are known.
        local own = tvb(HEADER + 8, 2):uint() == 2
        if own and (reason:uint() == 5 or reason:uint() == 6) and tvb:len() >= HEADER + 14 then
            tree:add(f.rejected_entry, tvb(HEADER + 12, 2))
            entry = ", entry " .. tvb(HEADER + 12, 2):uint()
        end
        if own and reason:uint() == 4 and tvb:len() >= HEADER + 16 then
            local device, host = tvb(HEADER + 12, 2):uint(), tvb(HEADER + 14, 2):uint()
            entry = string.format(": group %d, not %d", device, host)
        end
        return nil, "Reject: " .. (reasons[reason:uint()] or "unknown reason") .. entry
    end

    -- The entries of a Hello: what is wrong with them, and what they say.
    local function add_entries(tree, tvb)
        local at, last, texts = HEADER + FIXED, -1, ""
        while at < tvb:len() do
            if tvb:len() - at < 4 then return "an entry ends beyond the frame", texts end
            local kind, length = tvb(at, 2):uint(), tvb(at + 2, 2):uint()
            if length > tvb:len() - at - 4 then return "an entry ends beyond the frame", texts end
            local number = kind % 0x8000
            local known = entries[number]
            local text = known and known.name or "entry " .. number .. (kind >= 0x8000 and ", required" or "")
            local branch = tree:add(f.entry, tvb(at, 4 + length))
            branch:set_text("Entry: " .. text)
            branch:add(f.entry_number, tvb(at, 2))
            branch:add(f.required, tvb(at, 2))
            branch:add(f.entry_length, tvb(at + 2, 2))
            if number <= last then return "an entry's number is not above the one before", texts end
            if known and not known[length] then return "an entry of another length", texts end
            if number == 1 then
                branch:add(f.group, tvb(at + 4, 2))
                text = "group " .. tvb(at + 4, 2):uint()
            elseif length > 0 then
                branch:add(f.entry_value, tvb(at + 4, length))
            end
            if number == 3 then
                local goes_on = length == 8 or length == 24
                text = goes_on and "session goes on, expects " .. tvb(at + length, 4):uint() or "session begins"
            end
            texts = texts .. ", " .. text
            last, at = number, at + 4 + length
        end
        return nil, texts
    end

    local function add_greeting(tree, tvb, kind)
        tree:add(f.magic, tvb(HEADER, 8))
        tree:add(f.version, tvb(HEADER + 8, 2))
        if tvb(HEADER, 8):raw() ~= stream.MAGIC then return "wrong magic" end
        if kind == 2 then return add_reject(tree, tvb) end
        local version = tvb(HEADER + 8, 2):uint()
        if version ~= 2 then return nil, "Hello of version " .. version end
        if tvb:len() < HEADER + FIXED then return "a Hello of another length" end
        local role = roles[tvb(HEADER + 10, 1):uint()]
        tree:add(f.role, tvb(HEADER + 10, 1))
        tree:add(f.max_payload, tvb(HEADER + 12, 2))
        tree:add(f.instance, tvb(HEADER + 16, 8))
        add_grants(tree, tvb, HEADER + 24)
        if role == nil then return "undefined role" end
        local fault, text = add_entries(tree, tvb)
        return fault, string.format("Hello %s, max payload %d%s", role, tvb(HEADER + 12, 2):uint(), text)
    end

    local function fits(kind, length)
        return (lengths[kind] or length) == length and (kind ~= 1 or length >= 10) and (kind ~= 2 or length >= 12)
    end

    -- The frame's TLPs, each where it begins and as it was parsed.
    local function each_tlp(tvb)
        local at = HEADER
        return function()
            if at >= tvb:len() then return nil end
            local length = math.min(tlp.total_length(tvb, at) or tvb:len(), tvb:len() - at)
            local one = tlp.parse(tvb, at, length)
            at = at + length
            return one
        end
    end

    -- Follows the TLPs of a frame with this sequence number.
    local function follow_tlps(c, way, frame, tvb, sequence)
        local side = c[way]
        frame.tlps = {}
        if side.sequence and sequence ~= side.sequence then
            -- Where the capture lacks bytes, frames may be among them.
            local ahead = (sequence - side.sequence) % 4294967296
            if not side.gap or ahead >= 2147483648 then frame.due = side.sequence end
            -- It came twice; what it says was heard.
            if ahead >= 2147483648 then return end
        end
        side.gap = nil
        for one in each_tlp(tvb) do
            table.insert(frame.tlps, follow.tlp(c.link, one, tvb, way, frame.number, frame.time))
        end
        side.sequence = (sequence + 1) % 4294967296
    end

    local function follow_echo(c, way, frame, tvb, kind)
        local number = tvb(HEADER, 8):raw()
        local other = way == "down" and c.up or c.down
        if kind == 5 then
            c[way].echoes[number] = frame
            return
        end
        frame.echo = other.echoes[number]
        other.echoes[number] = nil
    end

    -- What a Hello says about its session: the name, and the frame that its sender expects.
    local function session_of(tvb)
        local at = HEADER + FIXED
        while tvb:len() >= at + 4 do
            local number, length = tvb(at, 2):uint() % 0x8000, tvb(at + 2, 2):uint()
            if tvb:len() < at + 4 + length then return end
            if number == 3 and entries[3][length] then
                local name = length >= 20 and tvb(at + 4, 16):raw() or nil
                return name, length % 16 == 8 and tvb(at + length, 4):uint() or nil
            end
            at = at + 4 + length
        end
    end

    -- Links by the name of their session.
    local sessions = {}
    function tunnel.forget() sessions = {} end

    -- A session that goes on has the numbers and the queues that it had.
    local function follow_hello(c, way, tvb)
        local name, expected = session_of(tvb)
        local other = way == "down" and c.up or c.down
        if expected then other.sequence = expected end
        if name and expected then c.link = sessions[name] or c.link end
        if name then sessions[name] = c.link end
    end

    local function follow_control(c, way, frame, tvb, kind)
        if not fits(kind, tvb:len() - HEADER) then return end
        if kind == 1 then follow_hello(c, way, tvb) end
        -- From a greeting on the sequence is known.
        if kind == 1 or kind == 2 then c[way].sequence = c[way].sequence or 0 end
        if kind == 5 or kind == 6 then follow_echo(c, way, frame, tvb, kind) end
        if kind == 7 then
            c.link.resetting = tvb(HEADER, 4):uint()
            follow.reset(c.link)
        elseif kind == 8 and tvb(HEADER, 4):uint() == c.link.resetting then
            -- That of an earlier reset changes nothing.
            c.link.resetting = nil
        end
    end

    -- The next frame that passed connection `c` in direction `way`: `frame` has
    -- `number` and `time` of its packet, and gets what is found out.
    function tunnel.follow(c, way, frame, tvb)
        frame.way = way
        local kind, flags = tvb(2, 1):uint(), tvb(3, 1):uint()
        if kinds[kind] == nil or flags ~= 0 then return end
        if kind == 0 then
            follow_tlps(c, way, frame, tvb, tvb(4, 4):uint())
        else
            follow_control(c, way, frame, tvb, kind)
        end
        local other = way == "down" and c.up or c.down
        if other.sequence then
            local ahead = (tvb(8, 4):uint() - other.sequence) % 4294967296
            frame.ahead = ahead ~= 0 and ahead < 2147483648 and stream.complete(other)
        end
    end

    local function show_tlps(tree, tvb, root, frame)
        local texts = {}
        if frame.due then
            local sequence = tvb(4, 4):uint()
            tree:add_proto_expert_info(e.sequence, "Sequence " .. sequence .. " where " .. frame.due .. " is due")
        end
        for one in each_tlp(tvb) do
            local i = #texts + 1
            local seen = frame.tlps[i] or { text = tlp.summary(one), number = frame.number, time = frame.time }
            nvme.add(tlp.add(root, one, tvb, seen, i, frame.way), one, tvb, seen)
            texts[i] = seen.text
        end
        tree:add(f.tlps, #texts):set_generated()
        return #texts == 0 and "no TLP in the frame" or nil, texts
    end

    local function show_echo(tree, tvb, frame)
        tree:add(f.echo, tvb(HEADER, 8))
        if frame.echo == nil then return end
        local time = math.max(frame.time - frame.echo.time, 0)
        tree:add(f.echo_in, frame.echo.number):set_generated()
        tree:add(f.echo_time, NSTime.new(math.floor(time), math.floor(time % 1 * 1e9))):set_generated()
    end

    local function show_moved(tree, tvb)
        tree:add(f.status, tvb(HEADER, 1))
        tree:add(f.moved_host, tvb(HEADER + 1, 1))
        tree:add(f.awaited, tvb(HEADER + 2, 1))
        tree:add(f.moved_from, tvb(HEADER + 4, 2))
        tree:add(f.moved_to, tvb(HEADER + 6, 2))
        return "Moved: " .. (statuses[tvb(HEADER, 1):uint()] or "refused for an unknown reason")
    end

    -- A control frame: what is wrong with it, or what it says.
    local function show_control(tree, tvb, kind, frame)
        if not fits(kind, tvb:len() - HEADER) then return "a length that does not fit the kind" end
        if kind == 1 or kind == 2 then return add_greeting(tree, tvb, kind) end
        if kind == 3 then add_grants(tree, tvb, HEADER) end
        if kind == 5 or kind == 6 then show_echo(tree, tvb, frame) end
        if kind == 7 or kind == 8 then
            tree:add(f.reset, tvb(HEADER, 4)):add_proto_expert_info(e.reset)
            return nil, kinds[kind] .. " " .. tvb(HEADER, 4):uint()
        end
        if kind == 10 then
            tree:add(f.to, tvb(HEADER, 2))
            return nil, "Move to group " .. tvb(HEADER, 2):uint()
        end
        if kind == 11 then return nil, show_moved(tree, tvb) end
        return nil, kinds[kind]
    end

    -- Adds the frame to the tree; says what is in it, a line each.
    function tunnel.show(frame, tvb, root)
        local tree = root:add(proto, tvb(), "farlane tunnel")
        local kind, flags = tvb(2, 1):uint(), tvb(3, 1):uint()
        tree:add(f.length, tvb(0, 2))
        tree:add(f.kind, tvb(2, 1))
        tree:add(f.flags, tvb(3, 1))
        tree:add(f.sequence, tvb(4, 4))
        local acknowledged = tree:add(f.acknowledged, tvb(8, 4))
        tree:add(f.from, frame.way == "down" and "host" or "device"):set_generated()
        local fault, text, texts
        if kinds[kind] == nil or flags ~= 0 then
            fault = kinds[kind] and "flags are set" or "undefined kind"
        elseif kind == 0 then
            fault, texts = show_tlps(tree, tvb, root, frame)
            text = #texts .. " TLPs"
        else
            fault, text = show_control(tree, tvb, kind, frame)
            texts = { text }
        end
        if frame.ahead then acknowledged:add_proto_expert_info(e.acknowledged) end
        if fault then
            tree:add_proto_expert_info(e.malformed, "Malformed frame: " .. fault)
            text, texts = "malformed: " .. fault, { "malformed: " .. fault }
        end
        tree:append_text(", " .. (text or kinds[kind]))
        return texts
    end

    -- What there is to say of a segment of the stream beside its frames.
    function tunnel.remark(segment, tvb, root)
        local again = segment.again
        if not (again or segment.part or segment.missing or segment.skipped or segment.early) then return nil end
        local tree = root:add(proto, tvb(), "farlane tunnel, a part of the stream")
        local text
        if again then
            if again.number then tree:add(f.seen_in, again.number):set_generated() end
            if again.number then tree:add(f.seen_on, again.segment.wire):set_generated() end
            tree:add_proto_expert_info(segment.elsewhere and e.elsewhere or e.again)
            text = "seen before" .. (again.number and " in " .. again.number or "")
        end
        if segment.missing then
            text = segment.missing .. " bytes or segments are missing in the capture"
            tree:add_proto_expert_info(e.missing, text)
        end
        if segment.skipped then
            tree:add_proto_expert_info(e.skipped, segment.skipped .. " bytes of a frame that was not captured")
            text = text or "rest of a frame that was not captured"
        end
        if segment.ends_in then tree:add(f.ends_in, segment.ends_in):set_generated() end
        text = text or segment.early and "before its turn" or "part of a frame"
        tree:append_text(": " .. text)
        return text
    end

    -- Puts lines into the info column: the same thing many times in a row counts
    -- as one.
    function tunnel.summarise(pinfo, texts)
        local parts, last, count = {}, nil, 0
        local function flush()
            if last then parts[#parts + 1] = count > 1 and last .. " ×" .. count or last end
        end
        for _, text in ipairs(texts) do
            -- Offsets differ within a run.
            local alike = text:gsub(" data %+0x%x+:", " data:")
            if alike == last then
                count = count + 1
            else
                flush()
                last, count = alike, 1
            end
        end
        flush()
        for i, part in ipairs(parts) do
            if i == 7 and #parts > 7 then
                pinfo.cols.info:append(" | " .. (#parts - 6) .. " more")
                return
            end
            pinfo.cols.info:append((i > 1 and " | " or "") .. part)
        end
    end

    return tunnel
end
