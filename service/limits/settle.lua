-- Corrects a model's queue after an answer: counted tokens for guessed ones, and the provider's own limits.
-- KEYS: model state
-- ARGV: now ('' is the server's clock), burst, lifetime in milliseconds, then for requests, input and output each:
--       configured per minute (0 is none), counted minus guessed, provider's limit (0 is unsaid), remaining (-1 is unsaid)
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end
local burst = tonumber(ARGV[2])
local function number(value) return tonumber(value or 0) or 0 end

local state = redis.call('HMGET', KEYS[1], 't', 'b1', 'b2', 'b3', 'l1', 'l2', 'l3')
local quiet = math.max(0, now - number(state[1]))
for i = 1, 3 do
  local at = 3 + (i - 1) * 4
  local configured, change = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local limit, remaining = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local learned = number(state[4 + i])
  if limit > 0 then
    learned = limit
    redis.call('HSET', KEYS[1], 'l' .. i, limit)
  end
  local rate = configured
  if learned > 0 and (rate == 0 or learned < rate) then rate = learned end
  local backlog = math.max(0, number(state[1 + i]) - quiet)
  if rate > 0 then backlog = math.max(0, backlog + change * 60 / rate) end
  -- The provider has less left than our own burst would send: somebody else draws from the same limit.
  if limit > 0 and remaining >= 0 then backlog = math.max(backlog, burst - remaining * 60 / limit) end
  redis.call('HSET', KEYS[1], 'b' .. i, string.format('%.9f', backlog))
end
redis.call('HSET', KEYS[1], 't', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
