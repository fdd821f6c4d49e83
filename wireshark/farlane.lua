-- Wireshark dissector for farlane: the tunnel's frames over TCP, the PCIe TLPs in
-- them, and NVMe on top; the same over raw Ethernet (EtherType 0x88B5); also
-- farlane's own captures of TLPs (link type USER0).
-- docs/wireshark.md says how to use it, docs/protocol.md what the frames are.
--
--   tshark -X lua_script:wireshark/farlane.lua -r capture.pcapng
--
-- or copy this file and the folder `farlane` beside it into Wireshark's folder of
-- personal Lua plugins (Help, About, Folders).
--
-- What a TLP means depends on those before it. Wireshark dissects all packets in
-- order once and then again in any order, so all is found out the first time and
-- kept: TLP frames are known by connection, direction and sequence number.
--
-- Not checked: ECRC. Not followed: SGL segments, metadata, queues in the drive.

local here = __DIR__ .. "/farlane/"
local names = dofile(here .. "names.lua")
local bytes = dofile(here .. "bytes.lua")
local transfer = dofile(here .. "transfer.lua")(names, bytes)
local config = dofile(here .. "config.lua")()
local controller = dofile(here .. "controller.lua")(names, bytes, transfer)
local tlp = dofile(here .. "tlp.lua")(names)
local nvme = dofile(here .. "nvme.lua")(names)
local follow = dofile(here .. "follow.lua")(names, bytes, config, controller, tlp)

local farlane = Proto("farlane", "farlane tunnel")
local tap = Proto("farlane_tap", "farlane TLP capture")
local raw = Proto("farlane_raw", "farlane raw Ethernet")

local HEADER = 12
local MAGIC = "FARLANE\0"
local kinds = {
    [0] = "TLPs", "Hello", "Reject", "Credits", "Acknowledge", "Echo", "EchoReply",
    "Reset", "ResetDone", "Goodbye", "Move",
}
local lengths = { [2] = 12, [3] = 24, [4] = 0, [5] = 8, [6] = 8, [7] = 0, [8] = 0, [9] = 0, [10] = 2 }
local roles = { "host", "device", "probe" }
local reasons = { "the versions differ", "another host uses this device", "the role does not fit",
    "the device belongs to another group" }

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
    reason = u8("farlane.reject.reason", "Reason", base.DEC, reasons),
    echo = ProtoField.uint64("farlane.echo", "Number", base.HEX),
    echo_in = ProtoField.framenum("farlane.echo_in", "Echo in", base.NONE, frametype.REQUEST),
    echo_time = ProtoField.relative_time("farlane.echo_time", "Round trip"),
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
local e = {
    malformed = ProtoExpert.new("farlane.malformed", "Malformed frame", expert.group.MALFORMED, expert.severity.ERROR),
    sequence = ProtoExpert.new("farlane.sequence_error", "Not the sequence number that is due", expert.group.SEQUENCE, expert.severity.ERROR),
    acknowledged = ProtoExpert.new("farlane.acknowledged_error", "Acknowledges frames that were never sent", expert.group.SEQUENCE, expert.severity.ERROR),
    rejected = ProtoExpert.new("farlane.rejected", "Turned down", expert.group.RESPONSE_CODE, expert.severity.WARN),
    reset = ProtoExpert.new("farlane.reset", "Hot reset", expert.group.SEQUENCE, expert.severity.NOTE),
}
local function values(map)
    local list = {}
    for _, value in pairs(map) do list[#list + 1] = value end
    return list
end
farlane.fields, farlane.experts = values(f), values(e)

local t = {
    version = u8("farlane_tap.version", "Version"),
    tap = u8("farlane_tap.tap", "Tap", base.DEC, { "root port", "host tunnel", "device tunnel", "endpoint" }),
    direction = u8("farlane_tap.direction", "Direction", base.DEC, { [0] = "from the host", "from the device" }),
    flags = u8("farlane_tap.flags", "Flags", base.HEX),
}
local not_a_tap = ProtoExpert.new("farlane_tap.malformed", "Malformed pseudo header", expert.group.MALFORMED, expert.severity.ERROR)
tap.fields, tap.experts = values(t), { not_a_tap }

local raw_kinds = { "Open", "Accept", "Data", "Ack", "Close" }
local raw_reasons = { [0] = "on purpose", "no such connection", "another connection", "violation" }
local r = {
    version = u8("farlane_raw.version", "Version", base.DEC, nil, 0xf0),
    kind = u8("farlane_raw.kind", "Kind", base.DEC, raw_kinds, 0x0f),
    length = u16("farlane_raw.length", "Length"),
    connection = ProtoField.uint24("farlane_raw.connection", "Connection", base.HEX),
    sequence = ProtoField.uint24("farlane_raw.sequence", "Sequence"),
    newest = ProtoField.uint24("farlane_raw.newest", "Newest"),
    acknowledged = ProtoField.uint24("farlane_raw.acknowledged", "Acknowledged"),
    chunk = u16("farlane_raw.chunk", "Largest chunk"),
    window = u16("farlane_raw.window", "Window"),
    waited = u16("farlane_raw.waited", "Waited, in 16 ns"),
    bitmap = ProtoField.bytes("farlane_raw.bitmap", "Received out of order"),
    reason = u8("farlane_raw.reason", "Reason", base.DEC, raw_reasons),
}
local not_raw = ProtoExpert.new("farlane_raw.malformed", "Malformed raw frame", expert.group.MALFORMED, expert.severity.ERROR)
raw.fields, raw.experts = values(r), { not_raw }

local tcp_stream = Field.new("tcp.stream")

-- What was found out, by connection; forgotten with the capture.
local connections, taps = {}, {}
function farlane.init() connections, taps = {}, {} end

local function endpoint(address, port) return tostring(address) .. "|" .. tostring(port) end

-- The connection of the raw frame that is being dissected.
local raw_key

local function connection(pinfo)
    local key = raw_key or tcp_stream().value
    local c = connections[key]
    if c == nil then
        local empty = function() return { next = 0, acknowledged = 0, frames = {}, echoes = {}, faults = {} } end
        c = { link = follow.new(), down = empty(), up = empty() }
        connections[key] = c
    end
    return c
end

-- Who is who is known from the Hello; without one, the port that a server would
-- have is the device's.
local function direction(c, pinfo)
    if c.host == nil then
        local to_server = pinfo.dst_port == 4420 or pinfo.dst_port == 4421
            or pinfo.src_port ~= 4420 and pinfo.src_port ~= 4421 and pinfo.dst_port < pinfo.src_port
        c.host = to_server and endpoint(pinfo.src, pinfo.src_port) or endpoint(pinfo.dst, pinfo.dst_port)
    end
    return c.host == endpoint(pinfo.src, pinfo.src_port) and "down" or "up"
end

-- The info column: the same thing many times in a row counts as one.
local function summarise(pinfo, texts)
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

local function add_grants(tree, tvb, at)
    for i, grant in ipairs(grants) do
        tree:add(grant[1], tvb(at + i * 8 - 8, 4))
        tree:add(grant[2], tvb(at + i * 8 - 4, 4))
    end
end

local function add_greeting(tree, tvb, kind)
    tree:add(f.magic, tvb(HEADER, 8))
    tree:add(f.version, tvb(HEADER + 8, 2))
    if tvb(HEADER, 8):raw() ~= MAGIC then return "wrong magic" end
    if kind == 2 then
        local reason = tvb(HEADER + 10, 1)
        tree:add(f.reason, reason):add_proto_expert_info(e.rejected)
        return nil, "Reject: " .. (reasons[reason:uint()] or "unknown reason")
    end
    local version = tvb(HEADER + 8, 2):uint()
    if version ~= 1 then return nil, "Hello of version " .. version end
    if tvb:len() ~= HEADER + 48 then return "a Hello of another length" end
    local role = roles[tvb(HEADER + 10, 1):uint()]
    tree:add(f.role, tvb(HEADER + 10, 1))
    tree:add(f.max_payload, tvb(HEADER + 12, 2))
    tree:add(f.instance, tvb(HEADER + 16, 8))
    add_grants(tree, tvb, HEADER + 24)
    if role == nil then return "undefined role" end
    return nil, string.format("Hello %s, max payload %d", role, tvb(HEADER + 12, 2):uint())
end

local function add_echo(tree, tvb, kind, c, way, pinfo)
    tree:add(f.echo, tvb(HEADER, 8))
    local number = tvb(HEADER, 8):raw()
    local other = way == "down" and c.up or c.down
    if kind == 5 then
        c[way].echoes[number] = c[way].echoes[number] or { number = pinfo.number, time = pinfo.rel_ts }
        return
    end
    local echo = other.echoes[number]
    if echo == nil then return end
    echo.answered = echo.answered or pinfo.rel_ts
    local time = math.max(echo.answered - echo.time, 0)
    tree:add(f.echo_in, echo.number):set_generated()
    tree:add(f.echo_time, NSTime.new(math.floor(time), math.floor(time % 1 * 1e9))):set_generated()
end

-- A control frame: what is wrong with it, or what it says.
local function control(tree, tvb, kind, c, way, pinfo)
    local length = tvb:len() - HEADER
    if lengths[kind] and lengths[kind] ~= length or kind == 1 and length < 10 then
        return "a length that does not fit the kind"
    end
    if kind == 1 or kind == 2 then
        -- From here on the sequence is known.
        c[way].any = true
        return add_greeting(tree, tvb, kind)
    end
    if kind == 3 then add_grants(tree, tvb, HEADER) end
    if kind == 5 or kind == 6 then add_echo(tree, tvb, kind, c, way, pinfo) end
    if kind == 7 or kind == 8 then tree:add_proto_expert_info(e.reset) end
    if not pinfo.visited then
        if kind == 7 then
            c.link.resetting = c.link.resetting + 1
            follow.reset(c.link)
        elseif kind == 8 then
            c.link.resetting = math.max(c.link.resetting - 1, 0)
        end
    end
    return nil, kinds[kind]
end

-- The TLPs of a frame, found out the first time it is seen.
local function follow_frame(c, way, tvb, pinfo)
    local found = {}
    local at = HEADER
    while at < tvb:len() do
        local length = math.min(tlp.total_length(tvb, at) or tvb:len(), tvb:len() - at)
        local one = tlp.parse(tvb, at, length)
        found[#found + 1] = follow.tlp(c.link, one, tvb, way, pinfo.number, pinfo.rel_ts)
        at = at + length
    end
    return found
end

local function tlps(tree, tvb, root, sequence, c, way, pinfo)
    local side = c[way]
    local key = pinfo.number .. "/" .. sequence
    local found = side.frames[sequence]
    if found == nil then
        -- In a capture that begins late the first frame seen is the one due.
        if sequence ~= side.next and side.any then side.faults[key] = side.next end
        found = follow_frame(c, way, tvb, pinfo)
        found.number = pinfo.number
        side.frames[sequence], side.any = found, true
        side.next = (sequence + 1) % 4294967296
    elseif found.number ~= pinfo.number then
        -- It came twice; what it says was heard.
        side.faults[key] = side.faults[key] or side.next
        found = {}
    end
    if side.faults[key] then
        tree:add_proto_expert_info(e.sequence, "Sequence " .. sequence .. " where " .. side.faults[key] .. " is due")
    end
    local texts, at = {}, HEADER
    while at < tvb:len() do
        local length = math.min(tlp.total_length(tvb, at) or tvb:len(), tvb:len() - at)
        local one = tlp.parse(tvb, at, length)
        local i = #texts + 1
        local seen = found[i]
        if seen == nil or seen.length ~= one.length or seen.fmt_type ~= one.fmt_type then
            seen = { text = tlp.summary(one), number = pinfo.number, time = pinfo.rel_ts }
        end
        nvme.add(tlp.add(root, one, tvb, seen, i, way), one, tvb, seen)
        texts[i] = seen.text
        at = at + length
    end
    tree:add(f.tlps, #texts):set_generated()
    return #texts == 0 and "no TLP in the frame" or nil, texts
end

-- One whole frame.
local function dissect_frame(tvb, pinfo, root)
    local tree = root:add(farlane, tvb(), "farlane tunnel")
    local kind, flags = tvb(2, 1):uint(), tvb(3, 1):uint()
    local c = connection(pinfo)
    if kind == 1 and c.host == nil and tvb:len() >= 23 then
        local here_, there = endpoint(pinfo.src, pinfo.src_port), endpoint(pinfo.dst, pinfo.dst_port)
        c.host = tvb(22, 1):uint() == 2 and there or here_
    end
    local way = direction(c, pinfo)
    tree:add(f.length, tvb(0, 2))
    tree:add(f.kind, tvb(2, 1))
    tree:add(f.flags, tvb(3, 1))
    tree:add(f.sequence, tvb(4, 4))
    local acknowledged = tree:add(f.acknowledged, tvb(8, 4))
    tree:add(f.from, way == "down" and "host" or "device"):set_generated()
    local fault, text
    local texts = {}
    if kinds[kind] == nil or flags ~= 0 then
        fault = kinds[kind] and "flags are set" or "undefined kind"
    elseif kind == 0 then
        fault, texts = tlps(tree, tvb, root, tvb(4, 4):uint(), c, way, pinfo)
        text = #texts .. " TLPs"
    else
        fault, text = control(tree, tvb, kind, c, way, pinfo)
        texts = { text }
    end
    local other = way == "down" and c.up or c.down
    if not pinfo.visited and other.any then
        local ahead = (tvb(8, 4):uint() - other.next) % 4294967296
        if ahead ~= 0 and ahead < 2147483648 then c[way].faults["ack" .. pinfo.number] = true end
    end
    if c[way].faults["ack" .. pinfo.number] then acknowledged:add_proto_expert_info(e.acknowledged) end
    if fault then
        tree:add_proto_expert_info(e.malformed, "Malformed frame: " .. fault)
        text, texts = "malformed: " .. fault, { "malformed: " .. fault }
    end
    tree:append_text(", " .. (text or kinds[kind]))
    pinfo.cols.protocol = "farlane"
    for _, one in ipairs(texts) do table.insert(c.texts, one) end
    return tvb:len()
end

local function plausible(tvb) return kinds[tvb(2, 1):uint()] ~= nil and tvb(3, 1):uint() == 0 end

-- What begins like no frame is one malformed frame to the end of the segment.
local function frame_length(tvb, _, offset)
    local head = tvb(offset, HEADER)
    if not plausible(head) then return tvb:len() - offset end
    return head(0, 2):uint() + HEADER
end

local function dissect(tvb, pinfo, root)
    local c = connection(pinfo)
    c.texts = {}
    local before = tostring(pinfo.cols.protocol)
    if before ~= "farlane" then pinfo.cols.info:clear() end
    dissect_tcp_pdus(tvb, root, HEADER, frame_length, dissect_frame)
    if #c.texts > 0 then
        if before == "farlane" then pinfo.cols.info:append(" | ") end
        summarise(pinfo, c.texts)
    end
    pinfo.cols.protocol = "farlane"
    return tvb:len()
end

-- A Hello, of which the header and half the magic are enough.
local function begins(tvb)
    if tvb:len() < HEADER + 4 or tvb(2, 1):uint() ~= 1 or tvb(3, 1):uint() ~= 0 then return false end
    local there = math.min(tvb:len() - HEADER, #MAGIC)
    return tvb(HEADER, there):raw() == MAGIC:sub(1, there)
end

local tcp_ports = DissectorTable.get("tcp.port")
local others = {}

function farlane.dissector(tvb, pinfo, root)
    if connections[tcp_stream().value] == nil and not begins(tvb) then
        -- The ports may be somebody else's: NVMe/TCP has 4420.
        local other = others[pinfo.dst_port] or others[pinfo.src_port]
        if other and not (tvb:len() >= HEADER and plausible(tvb)) then return other:call(tvb, pinfo, root) end
    end
    return dissect(tvb, pinfo, root)
end

local function heuristic(tvb, pinfo, root)
    if not begins(tvb) then return false end
    pinfo.conversation = farlane
    dissect(tvb, pinfo, root)
    return true
end

for _, port in ipairs({ 4420, 4421 }) do
    others[port] = tcp_ports:get_dissector(port)
    tcp_ports:add(port, farlane)
end
farlane:register_heuristic("tcp", heuristic)

-- Raw Ethernet: one chunk of the stream, whole tunnel frames, in a frame.
local function raw_data(tvb, pinfo, root)
    local c = connection(pinfo)
    c.texts = {}
    local at = 0
    while at + HEADER <= tvb:len() do
        local length = math.min(frame_length(tvb, pinfo, at), tvb:len() - at)
        dissect_frame(tvb(at, length):tvb(), pinfo, root)
        at = at + length
    end
    pinfo.cols.info:clear()
    summarise(pinfo, c.texts)
end

local function raw_control(tree, tvb, kind, length)
    if kind <= 2 and length == 4 then
        tree:add(r.chunk, tvb(12, 2))
        tree:add(r.window, tvb(14, 2))
    elseif kind == 4 and length >= 2 then
        tree:add(r.waited, tvb(12, 2))
        if length > 2 then tree:add(r.bitmap, tvb(14, length - 2)) end
    elseif kind == 5 and length == 1 then
        tree:add(r.reason, tvb(12, 1))
    else
        tree:add_proto_expert_info(not_raw)
    end
end

function raw.dissector(tvb, pinfo, root)
    -- The EtherType is for local experiments: it may be somebody else's.
    local kind = tvb:len() >= HEADER and tvb(0, 1):uint() - 0x10 or 0
    if raw_kinds[kind] == nil then return 0 end
    local length = tvb(1, 2):uint()
    local tree = root:add(raw, tvb(0, math.min(HEADER, tvb:len())), "farlane raw Ethernet, " .. raw_kinds[kind])
    tree:add(r.version, tvb(0, 1))
    tree:add(r.kind, tvb(0, 1))
    tree:add(r.length, tvb(1, 2))
    tree:add(r.connection, tvb(3, 3))
    tree:add(kind == 4 and r.newest or r.sequence, tvb(6, 3))
    tree:add(r.acknowledged, tvb(9, 3))
    pinfo.cols.protocol = "farlane"
    if HEADER + length > tvb:len() then
        tree:add_proto_expert_info(not_raw)
        return tvb:len()
    end
    pinfo.cols.info = raw_kinds[kind]
    if kind ~= 3 then
        raw_control(tree, tvb, kind, length)
        return tvb:len()
    end
    local here_, there = tostring(pinfo.dl_src), tostring(pinfo.dl_dst)
    if here_ > there then here_, there = there, here_ end
    raw_key = here_ .. "|" .. there .. "|" .. tvb(3, 3):uint()
    raw_data(tvb(HEADER, length):tvb(), pinfo, root)
    raw_key = nil
    return tvb:len()
end

DissectorTable.get("ethertype"):add(0x88b5, raw)

-- farlane's own captures: one TLP in a packet.
function tap.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "PCIe TLP"
    local tree = root:add(tap, tvb(0, math.min(4, tvb:len())), "farlane TLP capture")
    if tvb:len() < 8 or tvb(0, 1):uint() ~= 1 or tvb(2, 1):uint() > 1 or tvb(3, 1):uint() ~= 0 then
        tree:add_proto_expert_info(not_a_tap)
        return tvb:len()
    end
    tree:add(t.version, tvb(0, 1))
    tree:add(t.tap, tvb(1, 1))
    tree:add(t.direction, tvb(2, 1))
    tree:add(t.flags, tvb(3, 1))
    local way = tvb(2, 1):uint() == 0 and "down" or "up"
    local here_ = tvb(1, 1):uint()
    taps[here_] = taps[here_] or { link = follow.new(), found = {} }
    local one = tlp.parse(tvb, 4, tvb:reported_len() - 4, tvb:len() - 4)
    local found = taps[here_].found
    found[pinfo.number] = found[pinfo.number]
        or follow.tlp(taps[here_].link, one, tvb, way, pinfo.number, pinfo.rel_ts)
    local seen = found[pinfo.number]
    nvme.add(tlp.add(root, one, tvb, seen, nil, way), one, tvb, seen)
    local host, device = "host", "device"
    pinfo.cols.src = way == "down" and host or device
    pinfo.cols.dst = way == "down" and device or host
    pinfo.cols.info = seen.text
    return tvb:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, tap)
