-- One NVMe controller as seen from the link: queues, doorbells, commands and
-- the memory that commands point to. Section numbers are those of NVM Express 1.4.

return function(names, bytes, transfer)
    local controller = {}
    local u16, u32, u64, bits = bytes.u16, bytes.u32, bytes.u64, bytes.bits
    local page_bytes = 4096 -- what TLPs do not cross

    local function forget_queues(c)
        c.sq, c.cq, c.open, c.claims, c.cc = {}, {}, {}, {}, 0
        c.generation = c.generation + 1
    end

    function controller.new()
        local c = { generation = 0, cap_high = 0, register = {}, vectors = {}, block = {} }
        forget_queues(c)
        return c
    end

    controller.reset = forget_queues

    local function page(c) return 4096 * 2 ^ bits(c.cc, 7, 4) end

    local function pointer(c, low)
        local address = (c.register[low + 4] or 0) * 4294967296 + (c.register[low] or 0)
        return address - address % 4096
    end

    local function configure(c, value)
        local before, after = c.cc % 2, value % 2
        if before == 1 and after == 0 then forget_queues(c) end
        c.cc = value
        if before == 0 and after == 1 then
            local aqa = c.register[0x24] or 0
            c.sq[0] = { base = pointer(c, 0x28), entries = bits(aqa, 0, 12) + 1, tail = 0, bells = {} }
            c.cq[0] = { base = pointer(c, 0x30), entries = bits(aqa, 16, 12) + 1, head = 0, posted = {}, vector = 0 }
        end
    end

    -- Notes that a doorbell or a fetch was for a command.
    local function serves(seen, command)
        seen.serves = seen.serves or {}
        table.insert(seen.serves, command)
    end

    -- Sections 3.1.24 and 3.1.25; the stride is 4 << CAP.DSTRD.
    local function doorbell(c, offset, value, seen)
        local index = (offset - 0x1000) / (4 * 2 ^ (c.cap_high % 16))
        local id = math.floor(index / 2)
        value = value % 65536
        if index ~= math.floor(index) then return "doorbell off its alignment" end
        if index % 2 == 0 then
            local sq = c.sq[id]
            if sq and value < sq.entries then
                while sq.tail ~= value do
                    sq.bells[sq.tail] = seen
                    local pushed = sq.pushed and sq.pushed[sq.tail]
                    if pushed then
                        pushed.doorbell_in, pushed.begin = seen.number, seen.time
                        serves(seen, pushed)
                        sq.pushed[sq.tail] = nil
                    end
                    sq.tail = (sq.tail + 1) % sq.entries
                end
            end
            return string.format("SQ%d tail doorbell = %d", id, value)
        end
        local cq = c.cq[id]
        if cq and value < cq.entries then
            while cq.head ~= value do
                local command = cq.posted[cq.head]
                if command then
                    command.head_in = seen.number
                    serves(seen, command)
                end
                cq.posted[cq.head] = nil
                cq.head = (cq.head + 1) % cq.entries
            end
        end
        return string.format("CQ%d head doorbell = %d", id, value)
    end

    -- The host writes a double word at `offset` of BAR 0; says what that is.
    function controller.write(c, offset, value, seen)
        if offset >= 0x1000 then return doorbell(c, offset, value, seen) end
        c.register[offset] = value
        if offset == 0x14 then configure(c, value) end
        if offset == 0x20 and value == 0x4e564d65 then forget_queues(c) end
        return string.format("%s = 0x%x", names.register[offset] or string.format("register 0x%x", offset), value)
    end

    -- The host was told a double word.
    function controller.told(c, offset, value)
        if offset == 4 then c.cap_high = value end
    end

    function controller.vector_write(c, offset, value)
        local vector = math.floor(offset / 16)
        c.vectors[vector] = c.vectors[vector] or { 0, 0, 0, 0 }
        c.vectors[vector][offset % 16 / 4 + 1] = value
        return string.format("MSI-X table, vector %d", vector)
    end

    -- Claims memory for a command, cut where TLPs are cut.
    local function claim(c, command, piece)
        local at, left, offset = piece.address, piece.length, piece.offset
        while left > 0 do
            local length = math.min(left, page_bytes - at % page_bytes)
            local key = at - at % page_bytes
            c.claims[key] = c.claims[key] or {}
            local one = { command = command, first = at, last = at + length, offset = offset, list = piece.list, moved = {} }
            table.insert(c.claims[key], one)
            command.claims[key] = true
            at, left = at + length, left - length
            offset = offset + (piece.list and length / 8 * page(c) or length)
        end
    end

    local function release(c, command)
        for key in pairs(command.claims) do
            local kept = {}
            for _, one in ipairs(c.claims[key] or {}) do
                if one.command ~= command then kept[#kept + 1] = one end
            end
            c.claims[key] = #kept > 0 and kept or nil
        end
        command.claims = {}
    end

    -- The claim that a transfer of the drive serves; one that was served
    -- already only if there is no other.
    local function find(c, address, length, write)
        local again
        for _, one in ipairs(c.claims[address - address % page_bytes] or {}) do
            local way = one.list and not write or not one.list and one.command.to_host == write
            if way and address >= one.first and address + length <= one.last then
                if not one.moved[address] then
                    one.moved[address] = true
                    return one
                end
                again = again or one
            end
        end
        return again
    end

    local function open(c, queue, raw, seen, bell)
        local e = transfer.entry(raw)
        local all, to_host = transfer.size(queue, e, c.block[e.nsid] or 512)
        local command = {
            queue = queue, cid = e.cid, opcode = e.opcode, to_host = to_host, bytes = all, entry = e,
            text = transfer.describe(queue, e), sqe_in = seen.number, claims = {},
            doorbell_in = bell and bell.number, begin = bell and bell.time or seen.time,
        }
        -- Identify Namespace tells the size of blocks.
        if queue == 0 and e.opcode == 0x06 and e.cdw10 % 256 == 0 then command.data = {} end
        local key = queue * 65536 + e.cid
        if c.open[key] then release(c, c.open[key]) end
        c.open[key] = command
        for _, piece in ipairs(transfer.pieces(e, all, page(c))) do claim(c, command, piece) end
        return command
    end

    -- The command of an entry that the drive fetches: it may be open, because the entry was pushed.
    local function fetched(c, queue, raw, seen, bell)
        local before = c.open[queue * 65536 + u16(raw, 2)]
        if before and before.pushed and before.entry.raw == raw then
            before.pushed = nil
            return before
        end
        local command = open(c, queue, raw, seen, bell)
        if bell then serves(bell, command) end
        return command
    end

    -- The drive reads host memory: what for. `t` has address and bytes.
    function controller.read(c, t, seen)
        local address = t.address + t.lead
        for id, sq in pairs(c.sq) do
            local from = address - sq.base
            if from >= 0 and from < sq.entries * 64 then
                local slot, count = math.floor(from / 64), math.floor(t.bytes / 64)
                local bells = {}
                for i = 0, count - 1 do bells[i] = sq.bells[(slot + i) % sq.entries] end
                seen.fetch = { queue = id, bells = bells, raw = "", generation = c.generation }
                seen.queue = id
                return count == 1 and string.format("SQE fetch q%d", id)
                    or string.format("SQE fetch q%d, %d entries", id, count)
            end
        end
        local one = find(c, address, t.bytes, false)
        if one == nil then return nil end
        seen.claim, seen.command = one, one.command
        if one.list then return "PRP list fetch: " .. one.command.text end
        return string.format("data +0x%x: %s", one.offset + address - one.first, one.command.text)
    end

    local function list_data(c, seen, request, at, raw)
        local one = request.claim
        for i = 0, #raw - 8, 8 do
            local address = at + i
            local offset = one.offset + (address - one.first) / 8 * page(c)
            local piece = transfer.list_entry(address, u64(raw, i), offset, one.command.bytes, page(c))
            if piece then claim(c, one.command, piece) end
        end
        seen.command = one.command
        return string.format("PRP list: %s", one.command.text)
    end

    -- Entries of a queue in a push, in front of their doorbell.
    local function pushed_entries(c, seen, id, sq, from, raw, at)
        if from % 64 ~= 0 then return nil end
        local texts = {}
        seen.entries, sq.pushed = seen.entries or {}, sq.pushed or {}
        for i = 0, math.floor(#raw / 64) - 1 do
            local command = open(c, id, raw:sub(i * 64 + 1, i * 64 + 64), seen)
            command.pushed = true
            sq.pushed[(from / 64 + i) % sq.entries] = command
            table.insert(seen.entries, { command = command, at = at + i * 64 })
            table.insert(texts, "NVMe " .. command.text)
        end
        return string.format("SQE q%d: %s", id, table.concat(texts, ", "))
    end

    -- A list, of which a push may have a part: whole entries from those before on.
    local function pushed_list(c, command, one, address, raw)
        local before = command.list
        if before and before.one == one and before.at + #before.raw == address then
            raw, address = before.raw .. raw, before.at
        end
        local whole = #raw - #raw % 8
        list_data(c, {}, { claim = one }, address, raw:sub(1, whole))
        command.list = { one = one, at = address + whole, raw = raw:sub(whole + 1) }
        return "PRP list: " .. command.text
    end

    -- The host pushes `raw`, as the record `record` says.
    function controller.pushed(c, seen, record, raw)
        local sq = c.sq[record.queue]
        local from = sq and record.address - sq.base or -1
        if from >= 0 and from + #raw <= sq.entries * 64 then
            return pushed_entries(c, seen, record.queue, sq, from, raw, record.at + 16)
        end
        local command = c.open[record.queue * 65536 + record.command]
        if command == nil then return nil end
        if command.sqe_in ~= seen.number and command.pushed_in ~= seen.number then
            command.pushed_in = seen.number
            serves(seen, command)
        end
        for _, one in ipairs(c.claims[record.address - record.address % page_bytes] or {}) do
            local inside = record.address >= one.first and record.address < one.last
            if one.command == command and inside and one.list then
                return pushed_list(c, command, one, record.address, raw)
            end
        end
        return "data: " .. command.text
    end

    -- `raw` answers what the drive asked in `request`, from byte `done` on.
    function controller.answer(c, seen, request, done, raw)
        local fetch = request.fetch
        if fetch then
            if #fetch.raw ~= done or fetch.generation ~= c.generation then return "SQE" end
            local before = math.floor(#fetch.raw / 64)
            fetch.raw = fetch.raw .. raw
            seen.entries, seen.queue = {}, fetch.queue
            local texts = {}
            for i = before, math.floor(#fetch.raw / 64) - 1 do
                local entry = fetch.raw:sub(i * 64 + 1, i * 64 + 64)
                local command = fetched(c, fetch.queue, entry, seen, fetch.bells[i])
                serves(request, command)
                table.insert(seen.entries, { command = command, at = i * 64 - done })
                table.insert(texts, "NVMe " .. command.text)
            end
            return string.format("SQE q%d: %s", fetch.queue, table.concat(texts, ", "))
        end
        local one = request.claim
        if one == nil then return nil end
        local at = request.address + done
        if one.list then return list_data(c, seen, request, at, raw) end
        seen.command = one.command
        return string.format("data +0x%x: %s", one.offset + at - one.first, one.command.text)
    end

    -- A successful admin command takes effect.
    local function apply(c, command)
        local e = command.entry
        local id, entries, high = e.cdw10 % 65536, bits(e.cdw10, 16, 16) + 1, bits(e.cdw11, 16, 16)
        local base = e.prp1 - e.prp1 % 4096
        if e.opcode == 0x01 then c.sq[id] = { base = base, entries = entries, tail = 0, bells = {} }
        elseif e.opcode == 0x05 then
            local vector = bits(e.cdw11, 1, 1) == 1 and high or nil
            c.cq[id] = { base = base, entries = entries, head = 0, posted = {}, vector = vector }
        elseif e.opcode == 0x00 and id ~= 0 then c.sq[id] = nil
        elseif e.opcode == 0x04 and id ~= 0 then c.cq[id] = nil
        elseif command.data then
            -- FLBAS is byte 26, LBA formats begin at byte 128 (figure 245).
            local flbas = command.data[26]
            local shift = flbas and command.data[128 + flbas % 16 * 4 + 2]
            if shift and shift >= 9 and shift <= 16 then c.block[e.nsid] = 2 ^ shift end
        end
    end

    local function complete(c, id, cq, slot, raw, seen)
        local queue, cid = u16(raw, 10), u16(raw, 12)
        local command = c.open[queue * 65536 + cid]
        local status = math.floor(u16(raw, 14) / 2)
        table.insert(seen.completions, { command = command, at = seen.done, queue = queue })
        local result = status % 2048 == 0 and "Success" or string.format("status 0x%03x", status % 2048)
        if command == nil then return string.format("CQE q%d cid %d of no known command %s", id, cid, result) end
        c.open[queue * 65536 + cid] = nil
        command.cqe_in, command.ended, command.status = seen.number, seen.time, status % 2048
        cq.posted[slot] = command
        release(c, command)
        if queue == 0 and status % 2048 == 0 then apply(c, command) end
        command.data = nil
        return string.format("CQE q%d: %s %s", id, command.text, result)
    end

    -- Keeps the bytes of Identify Namespace that matter.
    local function keep(command, offset, raw)
        for i = 1, #raw do
            local at = offset + i - 1
            if at == 26 or at >= 128 and at < 192 then command.data[at] = raw:byte(i) end
        end
    end

    -- The drive writes host memory: what that is.
    function controller.memory_write(c, t, raw, seen)
        local address = t.address + t.lead
        for id, cq in pairs(c.cq) do
            local from = address - cq.base
            if from >= 0 and from < cq.entries * 16 then
                seen.completions, seen.queue, seen.done = {}, id, 0
                local texts = {}
                while seen.done + 16 <= #raw do
                    local slot = math.floor((from + seen.done) / 16)
                    table.insert(texts, complete(c, id, cq, slot, raw:sub(seen.done + 1, seen.done + 16), seen))
                    seen.done = seen.done + 16
                end
                return table.concat(texts, ", ")
            end
        end
        local one = find(c, address, t.bytes, true)
        if one then
            seen.command = one.command
            local offset = one.offset + address - one.first
            if one.command.data then keep(one.command, offset, raw) end
            return string.format("data +0x%x: %s", offset, one.command.text)
        end
        if #raw == 4 and t.bytes == 4 then
            local data = u32(raw, 0)
            for vector, entry in pairs(c.vectors) do
                if entry[3] == data and entry[2] * 4294967296 + entry[1] == address then
                    return "MSI-X vector " .. vector
                end
            end
        end
        return nil
    end

    return controller
end
