-- What a submission queue entry says about data: how much, which way, and where
-- in host memory (NVM Express 1.4, sections 4.3 and 4.4).

return function(names, bytes)
    local transfer = {}
    local u16, u32, u64, bits = bytes.u16, bytes.u32, bytes.u64, bytes.bits

    -- Bytes 0 to 63 of an entry as a table.
    function transfer.entry(raw)
        local e = {
            raw = raw, opcode = raw:byte(1), psdt = math.floor(raw:byte(2) / 64),
            cid = u16(raw, 2), nsid = u32(raw, 4), prp1 = u64(raw, 24), prp2 = u64(raw, 32),
        }
        for i = 10, 15 do e["cdw" .. i] = u32(raw, i * 4) end
        return e
    end

    -- Bytes of a feature that has a data structure (figure 276).
    local features = { [0x03] = 4096, [0x0c] = 256, [0x0e] = 8, [0x16] = 512, [0x81] = 16 }

    -- Bytes, and whether they go to the host. What an unknown opcode moves is
    -- presumed to be a page, the way its low bits say (figure 138).
    local function by_opcode(opcode)
        return (opcode % 4 == 1 or opcode % 4 == 2) and 4096 or 0, opcode % 4 == 2
    end

    function transfer.size(queue, e, block_size)
        local opcode = e.opcode
        if queue ~= 0 then
            local all = (e.cdw12 % 65536 + 1) * block_size
            if opcode == 0x01 or opcode == 0x05 then return all, false end
            if opcode == 0x02 then return all, true end
            if opcode == 0x09 then return (e.cdw10 % 256 + 1) * 16, false end
            if opcode == 0x00 or opcode == 0x08 or opcode == 0x04 or opcode == 0x0c then return 0, false end
            return by_opcode(opcode)
        end
        if opcode == 0x06 then return 4096, true end
        if opcode == 0x02 then
            return (bits(e.cdw10, 16, 16) + e.cdw11 % 65536 * 65536 + 1) * 4, true
        end
        -- The PRP of Create I/O Queue is the queue itself.
        if opcode == 0x01 or opcode == 0x05 then return 0, false end
        if opcode == 0x09 then return features[e.cdw10 % 256] or 0, false end
        if opcode == 0x0a then
            return e.cdw10 % 256 == 0x0d and 4096 or features[e.cdw10 % 256] or 0, true
        end
        return by_opcode(opcode)
    end

    local function list(pointer, offset, all, page)
        pointer = pointer - pointer % 8
        local needed = math.ceil((all - offset) / page) * 8
        return { address = pointer, length = math.min(needed, page - pointer % page), offset = offset, list = true }
    end

    -- Where data or PRP entries lie: address, length, and the offset in the
    -- transfer of the first byte that lies there or is spoken of.
    function transfer.pieces(e, all, page)
        if all == 0 then return {} end
        if e.psdt ~= 0 then
            -- SGL1 as a data block (figure 117); other kinds are not followed.
            if e.raw:byte(40) ~= 0 then return {} end
            return { { address = e.prp1, length = math.min(u32(e.raw, 32), all), offset = 0 } }
        end
        local first = math.min(page - e.prp1 % page, all)
        local pieces = { { address = e.prp1 - e.prp1 % 4, length = first, offset = 0 } }
        local left = all - first
        if left > page then
            pieces[2] = list(e.prp2, first, all, page)
        elseif left > 0 then
            pieces[2] = { address = e.prp2 - e.prp2 % page, length = left, offset = first }
        end
        return pieces
    end

    -- What the PRP entry `value` at `address` points to, if it speaks of the
    -- transfer's bytes from `offset`.
    function transfer.list_entry(address, value, offset, all, page)
        local left = all - offset
        if left <= 0 then return nil end
        if (address + 8) % page == 0 and left > page then return list(value, offset, all, page) end
        return { address = value - value % page, length = math.min(left, page), offset = offset }
    end

    -- A command in a few words: name, identifier and what it is about.
    function transfer.describe(queue, e)
        local text = string.format("%s cid %d", names.opcode(queue, e.opcode), e.cid)
        if names.has_blocks(queue, e.opcode) then
            return string.format("%s LBA 0x%x +%d", text, u64(e.raw, 40), e.cdw12 % 65536 + 1)
        end
        if queue ~= 0 then return text end
        if e.opcode == 0x06 then return string.format("%s CNS 0x%02x", text, e.cdw10 % 256) end
        if e.opcode == 0x02 then return string.format("%s LID 0x%02x", text, e.cdw10 % 256) end
        if e.opcode == 0x09 or e.opcode == 0x0a then
            return string.format("%s FID 0x%02x", text, e.cdw10 % 256)
        end
        if e.opcode == 0x00 or e.opcode == 0x01 or e.opcode == 0x04 or e.opcode == 0x05 then
            return string.format("%s QID %d", text, e.cdw10 % 65536)
        end
        return text
    end

    return transfer
end
