-- Pauses a model for everybody; a shorter pause never shortens a longer one.
-- KEYS: model state   ARGV: now ('' is the server's clock), seconds, lifetime in milliseconds
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end
local paused = math.max(tonumber(redis.call('HGET', KEYS[1], 'paused') or 0) or 0, now + tonumber(ARGV[2]))
if tonumber(ARGV[2]) > 0 then
  redis.call('HSET', KEYS[1], 'paused', string.format('%.6f', paused))
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return string.format('%.6f', math.max(0, paused - now))
