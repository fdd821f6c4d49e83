-- One direction of a connection: puts the captured segments in order and cuts
-- them into tunnel frames.
--
-- Wireshark could do the first, but it does so only for what TCP calls in order,
-- and a segment that is captured on several wires is a retransmission to it;
-- nor is its work to be had again when taps are all that asks for packets. Here
-- the first copy of every byte counts, wherever it was captured.

return function(names, bytes)
    local stream = { HEADER = 12, MAGIC = "FARLANE\0" }
    local HEADER = stream.HEADER
    local u16, u32 = bytes.u16_be, bytes.u32_be
    -- Bytes that are held back for those before them.
    local MOST = 4194304

    stream.kinds = {
        [0] = "TLPs", "Hello", "Reject", "Credits", "Acknowledge", "Echo", "EchoReply",
        "Reset", "ResetDone", "Goodbye", "Move", "Moved",
    }
    -- Of payloads that have a fixed length.
    stream.lengths = { [3] = 24, [4] = 0, [5] = 8, [6] = 8, [7] = 4, [8] = 4, [9] = 0, [10] = 2, [11] = 8 }

    -- Nothing passed yet. `sequence` is that of the TLP frame that is due, once
    -- it is known.
    function stream.new()
        return { held = {}, kept = 0, rest = "", parts = {}, first = {}, acknowledged = 0, echoes = {} }
    end

    -- The number next to `reference` that is `value` modulo `modulus`.
    function stream.unwrap(reference, value, modulus)
        local ahead = (value - reference) % modulus
        if ahead >= modulus / 2 then ahead = ahead - modulus end
        return reference + ahead
    end

    -- Whether a frame's header may be at `at` (from 0).
    function stream.plausible(raw, at)
        return stream.kinds[raw:byte(at + 3)] ~= nil and raw:byte(at + 4) == 0
    end

    -- Whether it most probably is, which is asked where a stream is entered.
    local function starts(s, raw, at)
        if not stream.plausible(raw, at) then return false end
        local length, kind = u16(raw, at), raw:byte(at + 3)
        if kind == 1 or kind == 2 then return raw:sub(at + HEADER + 1, at + HEADER + 4) == stream.MAGIC:sub(1, 4) end
        if kind ~= 0 then return stream.lengths[kind] == length end
        if s.sequence and (u32(raw, at + 4) - s.sequence) % 4294967296 >= 65536 then return false end
        if length < 12 or length % 4 ~= 0 or #raw - at < HEADER + 4 then return false end
        local fmt_type, dw = raw:byte(at + HEADER + 1), u16(raw, at + HEADER + 2) % 1024
        local header = math.floor(fmt_type / 32) % 2 == 1 and 16 or 12
        local data = fmt_type >= 64 and (dw == 0 and 1024 or dw) * 4 or 0
        return names.fmt_type[fmt_type] ~= nil and header + data <= length
    end

    -- Frames that are whole with `raw`, which begins at `offset` of the buffer
    -- that is shown, or in an earlier packet.
    local function cut(s, raw, into, offset)
        local before, all, at = #s.rest, s.rest .. raw, 0
        local function frame(length)
            local one = { number = into.number, length = length }
            if offset and at >= before then
                one.at = offset + at - before
            else
                one.raw = all:sub(at + 1, at + length)
            end
            if at < before then
                for _, part in ipairs(s.parts) do part.ends_in = into.number end
                s.parts = {}
            end
            table.insert(into.frames, one)
            at = at + length
        end
        while #all - at >= HEADER do
            if s.lost then
                local found = at
                while found + HEADER <= #all and not starts(s, all, found) do found = found + 1 end
                if found + HEADER > #all then found = #all else s.lost = false end
                into.skipped = (into.skipped or 0) + found - at
                at = found
            elseif not stream.plausible(all, at) then
                -- One malformed frame to the end of the segment.
                frame(#all - at)
            else
                local length = u16(all, at) + HEADER
                if #all - at < length then break end
                frame(length)
            end
        end
        s.rest = all:sub(at + 1)
        if #s.rest > 0 then
            into.part = true
            table.insert(s.parts, into)
        end
    end

    -- Bytes are missing from here on.
    local function lose(s)
        s.lost, s.rest, s.parts, s.gap = true, "", {}, true
    end

    -- The next piece of the stream, of which the beginning may be known already.
    local function take(s, piece, into, own)
        local known = s.next - piece.position
        s.next = piece.position + piece.size
        if known < #piece.raw then cut(s, piece.raw:sub(known + 1), into, own and known or nil) end
        -- A capture that keeps only the beginnings of packets.
        if piece.cut then
            into.missing = (into.missing or 0) + piece.cut
            lose(s)
        end
    end

    -- Pieces that came early and whose turn it is.
    local function drain(s, into)
        local i = 1
        while i <= #s.held do
            local piece = s.held[i]
            if piece.position <= s.next then
                table.remove(s.held, i)
                s.kept = s.kept - #piece.raw
                piece.segment.ends_in = into.number
                if piece.position + piece.size > s.next then take(s, piece, into) end
                i = 1
            else
                i = i + 1
            end
        end
    end

    -- Bytes before those that are held back will not come any more.
    local function give_up(s, into)
        local first
        for _, piece in ipairs(s.held) do
            if first == nil or piece.position < first then first = piece.position end
        end
        into.missing = (into.missing or 0) + first - s.next
        s.next = first
        lose(s)
        drain(s, into)
    end

    -- A segment, seen for the first time: `segment` has the packet's number and
    -- its interface; `raw` stands for `size` positions from `position` on, and
    -- `missing` bytes at its end were not captured. The segment gets
    --   frames          those that are whole with it: `number`, `length`, and
    --                   `at`, the offset in the segment, or `raw` if some of it
    --                   was in earlier packets
    --   part            a frame ends in a later packet
    --   ends_in         which one
    --   again           the segment with the same bytes that was seen before
    --   elsewhere       and that it was on another interface
    --   early           bytes before it are to come
    --   missing         so much before or in it was not captured
    --   skipped         bytes in which no frame begins
    function stream.add(s, segment, raw, position, size, missing)
        segment.frames = {}
        if s.next == nil then
            s.next = position
            s.lost = #raw >= HEADER + 4 and not starts(s, raw, 0)
        end
        local piece = { raw = raw, position = position, size = size, segment = segment }
        if missing > 0 then piece.cut = missing end
        local first = s.first[position]
        if position + size <= s.next or first and first.size == size then
            segment.again = first or {}
            if first == nil or first.size ~= size then return end
            segment.elsewhere = first.on[segment.interface] == nil
            first.on[segment.interface] = true
            if segment.elsewhere then segment.frames = first.segment.frames end
            return
        end
        s.first[position] = { segment = segment, number = segment.number, size = size, on = { [segment.interface] = true } }
        if position > s.next then
            table.insert(s.held, piece)
            s.kept = s.kept + #raw
            segment.early = true
            -- What was acknowledged is not sent again.
            if s.acknowledged > s.next or s.kept > MOST then give_up(s, segment) end
            return
        end
        take(s, piece, segment, true)
        drain(s, segment)
    end

    -- Whether everything that the other end has is here.
    function stream.complete(s)
        return not s.gap and #s.held == 0 and (s.next == nil or s.acknowledged <= s.next)
    end

    -- The other end has everything before `position`.
    function stream.acknowledge(s, position)
        if s.next then s.acknowledged = math.max(s.acknowledged, position) end
    end

    return stream
end
