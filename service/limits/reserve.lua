-- Reserves from all accounts or from none. The twin in Python is service/limits/memory_budgets.py.
-- KEYS: per account a hash (spent: m, t; reserved: rm, rt; r:<id> is m|t of one) and a sorted set (ids by expiry)
-- ARGV: now ('' is the server's clock), reservation id, micro-dollars, tokens, seconds it is held, lifetime in seconds,
--       then per account: limit in micro-dollars, limit in tokens (-1 is none)
-- gives {0, 0} when reserved; {1, i} when account i is not there yet; {2, i} when account i has too little left;
--       {3, i} when the rest of account i is reserved by others
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end
local function negative(text) return string.format('%d', -tonumber(text)) end
local micros, tokens = tonumber(ARGV[3]), tonumber(ARGV[4])
local waiting = nil
for i = 1, #KEYS / 2 do
  local book, reserved = KEYS[2 * i - 1], KEYS[2 * i]
  if redis.call('EXISTS', book) == 0 then return {1, i} end
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', reserved, '-inf', string.format('%.6f', now))) do
    -- Nobody corrected it: it may have been billed, so it counts as spent.
    local m, t = string.match(redis.call('HGET', book, 'r:' .. old) or '0|0', '^(%d+)|(%d+)$')
    redis.call('ZREM', reserved, old)
    redis.call('HDEL', book, 'r:' .. old)
    redis.call('HINCRBY', book, 'm', m)
    redis.call('HINCRBY', book, 't', t)
    redis.call('HINCRBY', book, 'rm', negative(m))
    redis.call('HINCRBY', book, 'rt', negative(t))
  end
  if redis.call('HEXISTS', book, 'r:' .. ARGV[2]) == 1 then return {0, 0} end
  local spent = redis.call('HMGET', book, 'm', 't', 'rm', 'rt')
  local most_m, most_t = tonumber(ARGV[5 + 2 * i]), tonumber(ARGV[6 + 2 * i])
  local m, t = tonumber(spent[1]) + micros, tonumber(spent[2]) + tokens
  if (most_m >= 0 and m > most_m) or (most_t >= 0 and t > most_t) then return {2, i} end
  m, t = m + tonumber(spent[3] or 0), t + tonumber(spent[4] or 0)
  if not waiting and ((most_m >= 0 and m > most_m) or (most_t >= 0 and t > most_t)) then waiting = i end
end
if waiting then return {3, waiting} end
for i = 1, #KEYS / 2 do
  local book, reserved = KEYS[2 * i - 1], KEYS[2 * i]
  redis.call('HINCRBY', book, 'rm', ARGV[3])
  redis.call('HINCRBY', book, 'rt', ARGV[4])
  redis.call('ZADD', reserved, string.format('%.6f', now + ARGV[5]), ARGV[2])
  redis.call('HSET', book, 'r:' .. ARGV[2], ARGV[3] .. '|' .. ARGV[4])
  redis.call('EXPIRE', book, ARGV[6])
  redis.call('EXPIRE', reserved, ARGV[6])
end
return {0, 0}
