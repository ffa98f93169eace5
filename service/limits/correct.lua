-- Replaces a reservation by what the call really cost; one that is not there changes nothing.
-- KEYS: per account a hash and a sorted set, as in reserve.lua
-- ARGV: reservation id, used micro-dollars and tokens
local function negative(text) return string.format('%d', -tonumber(text)) end
for i = 1, #KEYS / 2 do
  local book, reserved = KEYS[2 * i - 1], KEYS[2 * i]
  local held = redis.call('HGET', book, 'r:' .. ARGV[1])
  redis.call('ZREM', reserved, ARGV[1])
  if held then
    local m, t = string.match(held, '^(%d+)|(%d+)$')
    redis.call('HDEL', book, 'r:' .. ARGV[1])
    redis.call('HINCRBY', book, 'rm', negative(m))
    redis.call('HINCRBY', book, 'rt', negative(t))
    redis.call('HINCRBY', book, 'm', ARGV[2])
    redis.call('HINCRBY', book, 't', ARGV[3])
  end
end
return 1
