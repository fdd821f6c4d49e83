-- A function's configuration space as far as requests told: BARs, the class,
-- and where the MSI-X table lies.

return function()
    local config = {}

    -- Registers, doorbells of 64 queues and an MSI-X table: the size presumed
    -- of a BAR that nobody sized.
    local presumed = 0x4000

    function config.new()
        local function_ = { byte = {}, bar = {} }
        for i = 0, 5 do function_.bar[i] = { value = 0, kind = 0 } end
        return function_
    end

    -- Takes four bytes that were read or written under the byte enables.
    function config.store(f, register, be, raw, write)
        if register >= 256 then return end
        for i = 0, 3 do
            if math.floor(be / 2 ^ i) % 2 == 1 then f.byte[register + i] = raw:byte(i + 1) end
        end
        if register < 0x10 or register >= 0x28 or be ~= 15 then return end
        local bar = f.bar[(register - 0x10) / 4]
        local a, b, c, d = raw:byte(1, 4)
        local value = a + b * 256 + c * 65536 + d * 16777216
        if write then
            bar.sizing = value == 0xffffffff
            bar.value = bar.sizing and 0 or value
        else
            bar.kind = value % 16
            if bar.sizing then bar.mask = value else bar.value = value end
        end
    end

    -- First byte and size of a memory BAR, nil while it has none.
    function config.range(f, index)
        local low = f.bar[index]
        if low == nil or low.sizing or low.kind % 2 == 1 then return nil end
        local start = low.value - low.value % 16
        local mask = low.mask or 0
        mask = mask - mask % 16
        local size = mask ~= 0 and 4294967296 - mask or presumed
        if math.floor(low.kind / 2) % 4 == 2 then
            local high = f.bar[index + 1]
            if high == nil or high.sizing then return nil end
            start = start + high.value * 4294967296
            if mask == 0 and high.mask and high.mask ~= 0 then size = (4294967296 - high.mask) * 4294967296 end
        end
        if start == 0 then return nil end
        return start, size
    end

    function config.is_bridge(f)
        return f.byte[0x0e] ~= nil and f.byte[0x0e] % 128 == 1
    end

    -- NVMe I/O controllers have class 010802h; one whose class nobody read is
    -- taken for one.
    function config.is_nvme(f)
        if config.is_bridge(f) then return false end
        local b = f.byte
        return b[0x0b] == nil or b[0x0b] == 1 and b[0x0a] == 8 and b[0x09] == 2
    end

    local function capability(f, id)
        local at = f.byte[0x34]
        for _ = 1, 48 do
            if at == nil then return nil end
            at = at - at % 4
            if at < 0x40 then return nil end
            if f.byte[at] == id then return at end
            at = f.byte[at + 1]
        end
    end

    -- First byte and size of the MSI-X table (section 7.7.2).
    function config.msix(f)
        local at = capability(f, 0x11)
        local b = f.byte
        if at == nil or b[at + 3] == nil or b[at + 7] == nil then return nil end
        local start = config.range(f, b[at + 4] % 8)
        if start == nil then return nil end
        local offset = b[at + 4] - b[at + 4] % 8 + b[at + 5] * 256 + b[at + 6] * 65536 + b[at + 7] * 16777216
        return start + offset, ((b[at + 2] + b[at + 3] * 256) % 2048 + 1) * 16
    end

    -- Whether a write of these bytes is a function level reset (section 7.5.3.4).
    function config.asks_for_reset(f, register, be, raw)
        local at = capability(f, 0x10)
        return at ~= nil and register == at + 8 and math.floor(be / 2) % 2 == 1 and raw:byte(2) >= 128
    end

    -- The buses that a write of these bytes resets: Secondary Bus Reset of a
    -- bridge (section 7.5.1.3.13).
    function config.asks_for_bus_reset(f, register, be, raw)
        local on = config.is_bridge(f) and register == 0x3c and math.floor(be / 4) % 2 == 1
            and math.floor(raw:byte(3) / 64) % 2 == 1
        if on and f.byte[0x19] and f.byte[0x1a] then return f.byte[0x19], f.byte[0x1a] end
    end

    -- A reset takes what software wrote.
    function config.reset(f)
        for i = 0, 5 do f.bar[i].value, f.bar[i].sizing = 0, false end
    end

    return config
end
