-- Numbers in strings of bytes, little-endian but for those that say so. 64-bit values are exact: Wireshark
-- has Lua 5.4 from version 4.4 on.

local bytes = {}

function bytes.u16(raw, at)
    local a, b = raw:byte(at + 1, at + 2)
    return a + b * 256
end

function bytes.u32(raw, at)
    local a, b, c, d = raw:byte(at + 1, at + 4)
    return a + b * 256 + c * 65536 + d * 16777216
end

function bytes.u64(raw, at)
    return bytes.u32(raw, at + 4) * 4294967296 + bytes.u32(raw, at)
end

function bytes.u16_be(raw, at)
    local a, b = raw:byte(at + 1, at + 2)
    return a * 256 + b
end

function bytes.u32_be(raw, at)
    local a, b, c, d = raw:byte(at + 1, at + 4)
    return a * 16777216 + b * 65536 + c * 256 + d
end

-- Bits `first` to `first + count - 1` of a number.
function bytes.bits(value, first, count)
    return math.floor(value / 2 ^ first) % 2 ^ count
end

return bytes
