-- wrk's side of bench/collector_load.py: framed reports with fresh random ids, so many to a request.
-- Arguments: path, task id in hex, reports to a request. Payloads are those of OLH with four buckets.
local ffi = require("ffi")
local bit = require("bit")

local frame, batch, body, path, headers
local state = ffi.new("uint32_t[4]")

local function word()  -- xorshift128: quick, and good enough to be told apart
  local t = state[3]
  local s = state[0]
  state[3], state[2], state[1] = state[2], state[1], s
  t = bit.bxor(t, bit.lshift(t, 11))
  t = bit.bxor(t, bit.rshift(t, 8))
  state[0] = bit.bxor(bit.bxor(t, s), bit.rshift(s, 19))
  return state[0]
end

function init(args)
  path = args[1]
  batch = tonumber(args[3])
  frame = 1 + 32 + 16 + 9
  local random = io.open("/dev/urandom", "rb")
  ffi.copy(state, random:read(16), 16)
  random:close()
  body = ffi.new("uint8_t[?]", frame * batch)
  for i = 0, batch - 1 do
    body[frame * i] = 1
    for j = 0, 31 do
      body[frame * i + 1 + j] = tonumber(args[2]:sub(2 * j + 1, 2 * j + 2), 16)
    end
  end
  headers = { ["Content-Type"] = "application/vnd.veil.reports" }
end

function request()
  for i = 0, batch - 1 do
    local at = body + frame * i + 33
    for j = 0, 5 do  -- report id and seed of the hash: 24 bytes
      local w = word()
      at[4 * j] = bit.band(w, 255)
      at[4 * j + 1] = bit.band(bit.rshift(w, 8), 255)
      at[4 * j + 2] = bit.band(bit.rshift(w, 16), 255)
      at[4 * j + 3] = bit.rshift(w, 24)
    end
    at[24] = bit.band(word(), 3)  -- bucket
  end
  return wrk.format("POST", path, headers, ffi.string(body, frame * batch))
end

function done(summary, latency, requests)
  local failed = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write
  io.write(string.format('\n{"requests": %d, "microseconds": %d, "failed": %d, "timeouts": %d, "p99_ms": %.3f}\n',
    summary.requests, summary.duration, failed, summary.errors.timeout, latency:percentile(99) / 1000))
end
