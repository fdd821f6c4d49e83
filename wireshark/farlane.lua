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
-- kept (connection.lua).
--
-- Segments are put in order here, each the first time it is seen: stream.lua.
--
-- Not checked: ECRC. Not followed: SGL segments, metadata, queues in the drive.

-- farlane/farlane.lua may have been found first.
if farlane_is_loaded then return end
farlane_is_loaded = true

-- This file's folder. (__DIR__ is not there when Wireshark loads its plugins.)
local here = (debug.getinfo(1, "S").source:match("^@(.*[/\\])") or "./") .. "farlane/"
local names = dofile(here .. "names.lua")
local bytes = dofile(here .. "bytes.lua")
local transfer = dofile(here .. "transfer.lua")(names, bytes)
local config = dofile(here .. "config.lua")()
local controller = dofile(here .. "controller.lua")(names, bytes, transfer)
local tlp = dofile(here .. "tlp.lua")(names)
local push = dofile(here .. "push.lua")(bytes)
local nvme = dofile(here .. "nvme.lua")(names, push, tlp)
local follow = dofile(here .. "follow.lua")(names, bytes, config, controller, tlp, push)

local stream = dofile(here .. "stream.lua")(names, bytes)
local tunnel = dofile(here .. "tunnel.lua")(names, stream, follow, tlp, nvme)
local connection = dofile(here .. "connection.lua")(stream, follow, tunnel)

local farlane = tunnel.proto
local tap = Proto("farlane_tap", "farlane TLP capture")
local raw = Proto("farlane_raw", "farlane raw Ethernet")

local HEADER = stream.HEADER
local u8, u16 = ProtoField.uint8, ProtoField.uint16
local values = tunnel.values

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
    chunk = u16("farlane_raw.chunk", "Largest segment"),
    window = u16("farlane_raw.window", "Window"),
    waited = u16("farlane_raw.waited", "Waited, in 16 ns"),
    bitmap = ProtoField.bytes("farlane_raw.bitmap", "Received out of order"),
    reason = u8("farlane_raw.reason", "Reason", base.DEC, raw_reasons),
}
local not_raw = ProtoExpert.new("farlane_raw.malformed", "Malformed raw frame", expert.group.MALFORMED, expert.severity.ERROR)
raw.fields, raw.experts = values(r), { not_raw }

-- The innermost one of a packet's fields.
local function innermost(field)
    local all = { field() }
    return all[#all] and all[#all].value
end

local tcp_stream, tcp_length = Field.new("tcp.stream"), Field.new("tcp.len")
local frame_number = Field.new("frame.number")
local tcp_sequence, tcp_acknowledged = Field.new("tcp.seq"), Field.new("tcp.ack")

-- What was found out, by tap; forgotten with the capture.
local taps = {}
function farlane.init()
    taps = {}
    connection.forget()
    tunnel.forget()
end

local function endpoint(address, port) return tostring(address) .. "|" .. tostring(port) end

-- Of nodes without a port of their own; earlier versions had 4420 and 4421.
local ports = { [61420] = true, [61421] = true, [4420] = true, [4421] = true }

-- The port that a server would have is the device's.
local function to_device(pinfo)
    if ports[pinfo.dst_port] then return true end
    return not ports[pinfo.src_port] and pinfo.dst_port < pinfo.src_port
end

-- A segment's payload.
local function dissect(tvb, pinfo, root)
    -- Without fields nothing can be followed; see connection.lua.
    if tcp_stream() == nil then return tvb:len() end
    local before = tostring(pinfo.cols.protocol)
    if before == "farlane" then pinfo.cols.info:append(" | ") else pinfo.cols.info:clear() end
    local from, to = endpoint(pinfo.src, pinfo.src_port), endpoint(pinfo.dst, pinfo.dst_port)
    local size, sequence = tvb:reported_len(), innermost(tcp_sequence)
    local segment = {
        from = from, to = to, guess = to_device(pinfo) and from or to, modulus = 4294967296, size = size, missing = size - tvb:len(),
        acknowledged = innermost(tcp_acknowledged), sequence = sequence,
        -- What TCP put in order itself is what follows.
        position = innermost(tcp_length) == size and sequence or nil,
    }
    local c = connection.of(innermost(tcp_stream))
    tunnel.summarise(pinfo, connection.segment(c, segment, tvb, pinfo, root))
    pinfo.cols.protocol = "farlane"
    return tvb:len()
end

-- A Hello, of which the header and half the magic are enough.
local function begins(tvb)
    if tvb:len() < HEADER + 4 or tvb(2, 1):uint() ~= 1 or tvb(3, 1):uint() ~= 0 then return false end
    local there = math.min(tvb:len() - HEADER, #stream.MAGIC)
    return tvb(HEADER, there):raw() == stream.MAGIC:sub(1, there)
end

local tcp_ports = DissectorTable.get("tcp.port")
local others = {}

function farlane.dissector(tvb, pinfo, root)
    local stream_number = innermost(tcp_stream)
    if stream_number and not connection.known(stream_number) and not begins(tvb) then
        -- The ports may be somebody else's: NVMe/TCP has 4420.
        local other = others[pinfo.dst_port] or others[pinfo.src_port]
        if other and not (tvb:len() >= HEADER and stream.plausible(tvb(0, 4):raw(), 0)) then return other:call(tvb, pinfo, root) end
    end
    return dissect(tvb, pinfo, root)
end

local function heuristic(tvb, pinfo, root)
    if not begins(tvb) then return false end
    pinfo.conversation = farlane
    dissect(tvb, pinfo, root)
    return true
end

for port in pairs(ports) do
    others[port] = tcp_ports:get_dissector(port)
    tcp_ports:add(port, farlane)
end
farlane:register_heuristic("tcp", heuristic)

-- Raw Ethernet: one segment of the stream in a frame.
local function raw_data(tvb, pinfo, root, missing)
    local from, to = tostring(pinfo.dl_src), tostring(pinfo.dl_dst)
    local number = tvb(3, 3):uint()
    local key = (from < to and from .. "|" .. to or to .. "|" .. from) .. "|" .. number
    local sequence = tvb(6, 3):uint()
    local segment = {
        from = from, to = to, guess = to, modulus = 16777216, size = 1, missing = missing,
        acknowledged = tvb(9, 3):uint(), position = sequence, sequence = sequence,
    }
    return connection.segment(connection.of(key), segment, tvb(HEADER):tvb(), pinfo, root)
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

-- A raw frame: how long it is, and lines for the info column. Nothing if there
-- is none; the EtherType is for local experiments, so it may be somebody else's.
local function raw_frame(tvb, pinfo, root)
    local kind = tvb:len() >= HEADER and tvb(0, 1):uint() - 0x10 or 0
    if raw_kinds[kind] == nil then return nil end
    local length = tvb(1, 2):uint()
    local tree = root:add(raw, tvb(0, HEADER), "farlane raw Ethernet, " .. raw_kinds[kind])
    tree:add(r.version, tvb(0, 1))
    tree:add(r.kind, tvb(0, 1))
    tree:add(r.length, tvb(1, 2))
    tree:add(r.connection, tvb(3, 3))
    tree:add(kind == 4 and r.newest or r.sequence, tvb(6, 3))
    tree:add(r.acknowledged, tvb(9, 3))
    if HEADER + length > tvb:reported_len() then
        tree:add_proto_expert_info(not_raw)
        return tvb:len(), { raw_kinds[kind] .. ", malformed" }
    end
    local kept = math.min(HEADER + length, tvb:len())
    if kind == 3 and kept > HEADER then
        return kept, raw_data(tvb(0, kept):tvb(), pinfo, root, HEADER + length - kept)
    end
    if kept == HEADER + length then raw_control(tree, tvb, kind, length) end
    return kept, { raw_kinds[kind] }
end

function raw.dissector(tvb, pinfo, root)
    local at, all = 0, {}
    if frame_number() == nil then return tvb:len() end
    -- Bridges may merge frames; what pads them does not look like one.
    while at < tvb:len() do
        local length, texts = raw_frame(tvb(at):tvb(), pinfo, root)
        if length == nil then break end
        at = at + length
        for _, text in ipairs(texts) do table.insert(all, text) end
    end
    if at == 0 then return 0 end
    pinfo.cols.protocol = "farlane"
    pinfo.cols.info:clear()
    tunnel.summarise(pinfo, all)
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
