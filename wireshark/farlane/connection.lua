-- Connections of the tunnel: segments of both directions, followed the first
-- time they are seen, and shown every time.
--
-- Wireshark dissects packets in order once and then again in any order. Where
-- nobody has asked for fields there are none the first time, and nothing can be
-- followed; then the next time in order counts, which says that it is not the
-- first one.

return function(stream, follow, tunnel)
    local connection = {}
    local interface_id, interface_name = Field.new("frame.interface_id"), Field.new("frame.interface_name")

    -- A tap with a filter: Wireshark asks for fields from the beginning then
    -- (tshark with -2 does not). So far all packets have passed it in order.
    local passed = 0
    local asks = Listener.new("frame", "frame")
    function asks.packet(pinfo)
        if pinfo.number == passed + 1 then passed = pinfo.number end
    end

    -- By TCP stream, or stations and number of raw Ethernet.
    local all = {}

    function connection.forget() all, passed = {}, 0 end
    function connection.known(key) return all[key] ~= nil end

    function connection.of(key)
        local c = all[key]
        if c == nil then
            c = { link = follow.new(), streams = {}, segments = {} }
            all[key] = c
        end
        return c
    end

    local function stream_of(c, from)
        c.streams[from] = c.streams[from] or stream.new()
        return c.streams[from]
    end

    -- Who is who is known from the Hello; without one `guess` is the host.
    local function settle(c, s, tvb)
        local from_device = s.guess ~= s.from
        if tvb(2, 1):uint() == 1 and tvb:len() >= 23 then from_device = tvb(22, 1):uint() == 2 end
        c.host = from_device and s.to or s.from
        c.down = stream_of(c, c.host)
        c.up = stream_of(c, from_device and s.from or s.to)
    end

    local function buffer(frame, tvb)
        if frame.at then return tvb(frame.at, frame.length):tvb() end
        return ByteArray.new(frame.raw, true):tvb("farlane frame")
    end

    -- A segment that is seen for the first time.
    local function first_time(c, s, tvb, pinfo)
        local id, name = interface_id(), interface_name()
        local segment = { number = pinfo.number, interface = id and id.value or 0 }
        segment.wire = name and tostring(name.value) or "interface " .. segment.interface
        local own, other = stream_of(c, s.from), stream_of(c, s.to)
        if other.next then
            stream.acknowledge(other, stream.unwrap(other.next, s.acknowledged, s.modulus))
        end
        local position = s.position or own.next or s.sequence
        if own.next then position = stream.unwrap(own.next, position, s.modulus) end
        stream.add(own, segment, tvb():raw(), position, s.size, s.missing)
        if segment.elsewhere then return segment end
        for _, frame in ipairs(segment.frames) do
            local bytes = buffer(frame, tvb)
            frame.time = pinfo.rel_ts
            if c.host == nil then settle(c, s, bytes) end
            tunnel.follow(c, c.host == s.from and "down" or "up", frame, bytes)
        end
        return segment
    end

    -- Dissects the segment `tvb` of connection `c`:
    --   from, to        its ends
    --   guess           which one is the host, if nothing tells
    --   position        in the stream, modulo `modulus`; nil for what is next
    --   sequence        what tells it from others in the packet
    --   size            positions that it takes
    --   acknowledged    position in the stream of the other direction
    --   missing         bytes of it that were not captured
    -- Yields lines for the info column.
    function connection.segment(c, s, tvb, pinfo, root)
        local key = string.format("%d/%d/%d/%s", pinfo.number, s.sequence, tvb:reported_len(), s.from)
        local segment = c.segments[key]
        if segment == nil then
            if pinfo.visited and passed ~= pinfo.number - 1 then return {} end
            segment = first_time(c, s, tvb, pinfo)
            c.segments[key] = segment
        end
        local texts = {}
        local remark = tunnel.remark(segment, tvb, root)
        if remark and (#segment.frames == 0 or not segment.part) then texts[1] = remark end
        for _, frame in ipairs(segment.frames) do
            for _, text in ipairs(tunnel.show(frame, buffer(frame, tvb), root)) do table.insert(texts, text) end
        end
        return texts
    end

    return connection
end
