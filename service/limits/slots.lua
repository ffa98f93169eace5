-- Gives one slot of a model's queue, or says when to ask again. The twin in Python is service/limits/memory.py.
-- KEYS: model state, flows seen, this flow's slots, costs held by flow
-- ARGV: now ('' is the server's clock), flow, purpose weight, team weight, patience, burst, horizon, active,
--       lifetime of the keys in milliseconds, configured requests/input/output per minute (0 is none), needed requests/input/output
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end
local flow, purpose_weight, team_weight = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local patience, burst, horizon, active = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])

local function answer(granted, seconds) return {granted, string.format('%.6f', seconds)} end
local function number(value) return tonumber(value or 0) or 0 end

local state = redis.call('HMGET', KEYS[1], 't', 'b1', 'b2', 'b3', 'l1', 'l2', 'l3', 'paused', 'seq')
local lifetime = ARGV[9]

-- Who else asks: the windows depend on it, also while the model is paused.
redis.call('HSET', KEYS[2], flow, string.format('%.6f|%s|%s', now, ARGV[3], ARGV[4]))
redis.call('PEXPIRE', KEYS[2], lifetime)
if number(state[8]) > now then return answer(0, number(state[8]) - now) end

local teams, purposes = {}, {}
local flows = redis.call('HGETALL', KEYS[2])
for i = 1, #flows, 2 do
  local seen, pw, tw = string.match(flows[i + 1], '([^|]*)|([^|]*)|([^|]*)')
  if now - tonumber(seen) > active then
    redis.call('HDEL', KEYS[2], flows[i])
  else
    local purpose = string.match(flows[i], '^[^:]*')
    teams[purpose] = (teams[purpose] or 0) + tonumber(tw)
    purposes[purpose] = tonumber(pw)
  end
end
local all = 0
for _, weight in pairs(purposes) do all = all + weight end
local window = horizon * purpose_weight / all * team_weight / teams[string.match(flow, '^[^:]*')]

-- What this flow still holds: slots whose time has not come.
local held = number(redis.call('HGET', KEYS[4], flow))
local passed = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', string.format('%.6f', now))
if #passed > 0 then
  for _, slot in ipairs(passed) do held = held - tonumber(string.match(slot, '|(.*)$')) end
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.6f', now))
end
-- Without slots nothing is held, whatever rounding or an expired key left behind.
if redis.call('ZCARD', KEYS[3]) == 0 then held = 0 end
if #passed > 0 then redis.call('HSET', KEYS[4], flow, string.format('%.9f', held)) end

-- The queue's length in seconds, per kind of limit, and what this demand adds.
local quiet = math.max(0, now - number(state[1]))
local backlog, cost, most, wait = {}, {}, 0, 0
for i = 1, 3 do
  local configured, learned = number(ARGV[9 + i]), number(state[4 + i])
  local rate = configured
  if learned > 0 and (rate == 0 or learned < rate) then rate = learned end
  backlog[i] = math.max(0, number(state[1 + i]) - quiet)
  cost[i] = rate > 0 and tonumber(ARGV[12 + i]) * 60 / rate or 0
  most = math.max(most, cost[i])
  if cost[i] > 0 then wait = math.max(wait, backlog[i] + cost[i] - math.max(burst, cost[i])) end
end

if held > 0 and held + most > window + 0.000001 then
  local retry, freed = 0, 0
  local slots = redis.call('ZRANGE', KEYS[3], 0, 31, 'WITHSCORES')
  for i = 1, #slots, 2 do
    freed = freed + tonumber(string.match(slots[i], '|(.*)$'))
    retry = tonumber(slots[i + 1]) - now
    if held - freed + most <= window + 0.000001 then break end
  end
  return answer(0, retry)
end
if wait > patience then return answer(0, wait - patience) end

redis.call('HSET', KEYS[1], 't', string.format('%.6f', now))
for i = 1, 3 do redis.call('HSET', KEYS[1], 'b' .. i, string.format('%.9f', backlog[i] + cost[i])) end
redis.call('PEXPIRE', KEYS[1], lifetime)
if wait > 0 then
  local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
  redis.call('ZADD', KEYS[3], string.format('%.6f', now + wait), string.format('%015d|%.9f', seq, most))
  redis.call('PEXPIRE', KEYS[3], lifetime)
  redis.call('HSET', KEYS[4], flow, string.format('%.9f', held + most))
  redis.call('PEXPIRE', KEYS[4], lifetime)
end
return answer(1, wait)
