-- Follows the TLPs of one link, in the order in which they passed: requests and
-- their completions, configuration space, and the NVMe controllers behind it.
-- What is found out about a TLP is kept by its caller: Wireshark dissects
-- packets again, in any order, but only the first time here.

return function(names, bytes, config, controller, tlp, push)
    local follow = {}
    local u32 = bytes.u32

    -- A link on which nothing passed yet.
    function follow.new()
        return { pending = { up = {}, down = {} }, functions = {} }
    end

    local function the_function(s, id)
        local f = s.functions[id]
        if f == nil then
            f = config.new()
            s.functions[id] = f
        end
        return f
    end

    local function the_controller(f)
        f.controller = f.controller or controller.new()
        return f.controller
    end

    -- Functions with a bus number from `first` to `last` were reset.
    local function reset_buses(s, first, last)
        for id, f in pairs(s.functions) do
            local bus = math.floor(id / 256)
            if bus >= first and bus <= last then follow.reset_function(s, id, f) end
        end
    end

    function follow.reset_function(s, id, f)
        config.reset(f)
        if f.controller then controller.reset(f.controller) end
        for key in pairs(s.pending.up) do
            if math.floor(key / 1024) == id then s.pending.up[key] = nil end
        end
    end

    -- Everything below was reset.
    function follow.reset(s)
        reset_buses(s, 0, 255)
        s.pending = { up = {}, down = {} }
    end

    -- The function in whose memory the host's address is: the function, whether
    -- it is the MSI-X table, and the offset in that or in BAR 0.
    local function target(s, address)
        for _, f in pairs(s.functions) do
            if not config.is_bridge(f) then
                local start, size = config.msix(f)
                if start and address >= start and address < start + size then
                    return f, true, address - start
                end
                start, size = config.range(f, 0)
                if start and address >= start and address < start + size then
                    return f, false, address - start
                end
            end
        end
    end

    local function await(s, way, t, seen)
        local key = t.requester * 1024 + t.tag
        if s.pending[way][key] then seen.reused = true end
        s.pending[way][key] = seen
        seen.key, seen.bytes, seen.answers = key, t.bytes, {}
    end

    local function host_request(s, t, raw, seen)
        await(s, "down", t, seen)
        if t.target then
            seen.config = { target = t.target, register = t.register, be = t.first_be, raw = raw, write = t.has_data }
            return t.has_data and #raw >= 4 and string.format("= 0x%08x", u32(raw, 0)) or nil
        end
        local f, table_, offset = target(s, t.address)
        if f == nil or not config.is_nvme(f) then return nil end
        if table_ then return "MSI-X table" end
        seen.register = { controller = the_controller(f), offset = offset }
        return names.register[offset] or string.format("register 0x%x", offset)
    end

    local function host_write(s, t, raw, seen)
        local texts = {}
        for i = 0, #raw - 4, 4 do
            local f, table_, offset = target(s, t.address + i)
            if f and config.is_nvme(f) then
                local c, value = the_controller(f), u32(raw, i)
                local text = table_ and controller.vector_write(c, offset, value)
                    or not table_ and controller.write(c, offset, value, seen)
                if text ~= texts[#texts] then table.insert(texts, text) end
            end
        end
        return #texts > 0 and table.concat(texts, ", ") or nil
    end

    -- Matches a completion with its request.
    local function match(s, way, t, seen)
        local key = t.requester * 1024 + t.tag
        local request = s.pending[way][key]
        if request == nil then
            seen.unexpected = true
            return nil
        end
        seen.request = request
        table.insert(request.answers, seen.number)
        local last = t.status ~= 0 or not t.has_data or t.byte_count <= t.data_length - t.lower_address % 4
        if last then s.pending[way][key] = nil end
        return request
    end

    local function host_answer(s, t, raw, seen)
        local request = match(s, "down", t, seen)
        if request == nil then return nil end
        local c = request.config
        if c then
            local known = names.config[c.register]
            local text = string.format("for 0x%03x%s", c.register, known and " " .. known or "")
            if t.status == 0 and (c.write or #raw >= 4) then
                local f = the_function(s, c.target)
                config.store(f, c.register, c.be, c.write and c.raw or raw, c.write)
                if c.write then
                    if config.asks_for_reset(f, c.register, c.be, c.raw) then
                        follow.reset_function(s, c.target, f)
                    end
                    local first, last = config.asks_for_bus_reset(f, c.register, c.be, c.raw)
                    if first then reset_buses(s, first, last) end
                end
                if not c.write then text = string.format("%s = 0x%08x", text, u32(raw, 0)) end
            end
            return text
        end
        local register = request.register
        if register and t.status == 0 then
            local value = ""
            for i = 0, #raw - 4, 4 do
                controller.told(register.controller, register.offset + i, u32(raw, i))
                value = string.format("%08x", u32(raw, i)) .. value
            end
            local name = names.register[register.offset] or string.format("register 0x%x", register.offset)
            return string.format("%s = 0x%s", name, value)
        end
        return nil
    end

    local function device_controller(s, t)
        local f = s.functions[t.requester]
        return f and config.is_nvme(f) and f.controller or nil
    end

    local function device_answer(s, t, raw, seen)
        local request = match(s, "up", t, seen)
        local c = request and device_controller(s, t)
        if c == nil or t.status ~= 0 or t.poisoned then return nil end
        local done = request.bytes - t.byte_count
        local lead = t.lower_address % 4
        local useful = raw:sub(lead + 1, lead + t.byte_count)
        return controller.answer(c, seen, request, done, useful)
    end

    -- A message: what it pushes to which commands.
    local function message(s, t, tvb, raw, seen)
        seen.push = push.parse(t, tvb, raw)
        if seen.push == nil then return nil end
        local f, meanings = s.functions[seen.push.target], {}
        local c = f and config.is_nvme(f) and f.controller
        for _, one in ipairs(seen.push.records) do
            local there = one.kind == 2 and raw:sub(one.at + 17, one.at + one.length) or ""
            if c and there ~= "" then meanings[#meanings + 1] = controller.pushed(c, seen, one, there) end
        end
        return push.summary(seen.push, meanings)
    end

    local function from_host(s, t, raw, seen, tvb)
        if t.kind == "MWr" then return host_write(s, t, raw, seen) end
        if t.kind == "Cpl" then return device_answer(s, t, raw, seen) end
        if t.kind == "Msg" then return message(s, t, tvb, raw, seen) end
        return host_request(s, t, raw, seen)
    end

    local function from_device(s, t, raw, seen)
        if t.kind == "Cpl" then return host_answer(s, t, raw, seen) end
        local c = device_controller(s, t)
        if t.kind == "MRd" then
            await(s, "up", t, seen)
            seen.address = t.address + t.lead
            return c and controller.read(c, t, seen)
        end
        if t.kind == "MWr" and c and t.first_be ~= 0 and not t.poisoned then
            return controller.memory_write(c, t, raw:sub(t.lead + 1, t.lead + t.bytes), seen)
        end
    end

    -- The next TLP of the link, which went `direction` ("down" from the host,
    -- "up" from the device) in packet `number` at `time` seconds. What it is:
    --   text                      one line
    --   request, answers          the request of a completion, its packets the other way
    --   command, queue            the NVMe command it serves
    --   serves                    commands that a doorbell or a fetch turns out to be for
    --   entries, completions      queue entries that it carries
    --   unexpected, reused        what is wrong
    function follow.tlp(s, t, tvb, direction, number, time)
        local seen = { number = number, time = time, length = t.length, fmt_type = t.fmt_type }
        local summary = tlp.summary(t)
        local dropped = direction == "up" and s.resetting ~= nil
        if t.kind and not dropped then
            local raw = t.data_kept > 0 and tvb(t.data_at, t.data_kept):raw() or ""
            local meaning = (direction == "down" and from_host or from_device)(s, t, raw, seen, tvb)
            if meaning then summary = summary .. " " .. meaning end
        elseif dropped then
            summary = summary .. " (dropped: the link is being reset)"
        end
        seen.text = summary
        return seen
    end

    return follow
end
