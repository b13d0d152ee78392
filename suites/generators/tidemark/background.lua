-- Transactions beside those that are measured: which connections carry them out, when each is due, and how two kinds
-- keep pace with each other.
--
-- suites/generators/tidemark.lua uses this module for steps with a `background`. The connections of a client are its
-- own, and one for each kind in the background. What follows another kind, such as deletes that follow inserts, never
-- overtakes it, and is never further behind than the suite allows: the threads of a process count both in memory that
-- they share.

local ffi = require("ffi")

ffi.cdef [[
struct tidemark_pace { char mutex[64], room[64], work[64], barrier[64]; int64_t led, followed, leads, follows, left, apart; };
struct tidemark_moment { long seconds; long nanoseconds; };
void *calloc(size_t count, size_t size);
int setenv(const char *name, const char *value, int overwrite);
int pthread_mutex_lock(void *mutex);
int pthread_mutex_unlock(void *mutex);
int pthread_barrier_init(void *barrier, const void *attributes, unsigned int count);
int pthread_barrier_wait(void *barrier);
int sem_init(void *semaphore, int shared, unsigned int value);
int sem_post(void *semaphore);
int sem_clockwait(void *semaphore, int clock, const struct tidemark_moment *moment);
]]

local ADDRESS = "TIDEMARK_PACE" -- by which threads, whose Lua states are separate, find what they share
local CLOCK_MONOTONIC = 1
local PATIENCE = 0.01 -- seconds between looks at whether others have left

local background = {}

local kinds = {} -- of the step: {name, rate}
local shared, leader, follower, in_pace, leaders -- of one thread

local function parse(text)
   kinds = {}
   for name, rate in text:gmatch("([%l%d-]+):([%d.e+-]+)") do kinds[#kinds + 1] = {name, tonumber(rate)} end
end

-- Makes what the threads of a process share, once, before they begin. The follower may be `most` behind.
function background.init(text, pace, threads)
   parse(text)
   if not pace and #kinds == 0 then return end
   local state = ffi.cast("struct tidemark_pace *", ffi.C.calloc(1, ffi.sizeof("struct tidemark_pace")))
   ffi.C.sem_init(state.room, 0, pace and pace.most or 0)
   ffi.C.sem_init(state.work, 0, 0)
   ffi.C.pthread_barrier_init(state.barrier, nil, threads)
   ffi.C.setenv(ADDRESS, string.format("%.0f", tonumber(ffi.cast("intptr_t", state))), 1)
end

-- Returns how many of `threads` belong to the clients themselves.
function background.own_threads(threads) return threads / (1 + #kinds) end

-- Prepares a thread; `clock` returns seconds of the monotonic clock. Returns the kind that it carries out in the background and how many a second, over all threads of
-- that kind; nil if it is a client's own.
function background.start(text, pace, thread, threads, clock)
   background.now = clock
   parse(text)
   if pace or #kinds > 0 then
      shared = ffi.cast("struct tidemark_pace *", ffi.cast("intptr_t", tonumber(os.getenv(ADDRESS))))
   end
   if pace then
      leader, follower = pace.leader, pace.follower
      for _, kind in ipairs(kinds) do in_pace = in_pace or kind[1] == follower end
   end
   local own = background.own_threads(threads)
   leaders = own
   local kind = kinds[math.floor(thread / own)]
   if kind then return kind[1], kind[2] * own end
end

-- Returns when transactions of a thread are due, in seconds of the server's own time: each time that the function is
-- called the next one. They come at equal distances, so that bursts do not make latencies look periodic, and what
-- follows comes half a distance after what it follows.
function background.clock(kind, rate, thread, threads)
   local own = background.own_threads(threads)
   local place = thread % own + (kind == follower and 0.5 or 0)
   return function()
      local moment = place / rate
      place = place + own
      return moment
   end
end

local function counted(field)
   ffi.C.pthread_mutex_lock(shared.mutex)
   local number = tonumber(shared[field])
   shared[field] = shared[field] + 1
   local apart = shared.led - shared.followed
   if apart > shared.apart then shared.apart = apart end
   ffi.C.pthread_mutex_unlock(shared.mutex)
   return number
end

local moment = ffi.new("struct tidemark_moment")

local function waited(semaphore, deadline)
   moment.seconds = math.floor(deadline)
   moment.nanoseconds = math.floor((deadline % 1) * 1e9)
   return ffi.C.sem_clockwait(semaphore, CLOCK_MONOTONIC, moment) == 0
end

-- Waits until a transaction of a kind may begin, until `deadline` at most, in seconds of the monotonic clock. Returns
-- its number among those of its kind, from 0; nil if it may not begin, and 0 for a kind that is in no pace.
function background.turn(kind, deadline)
   if kind == leader then
      if in_pace and not waited(shared.room, deadline) then return nil end
      return counted("leads")
   elseif kind == follower then
      if not waited(shared.work, deadline) then return nil end
      return counted("follows")
   end
   return 0
end

-- Notes that a transaction of a kind has ended.
function background.ended(kind)
   if kind == leader then
      counted("led")
      if in_pace then ffi.C.sem_post(shared.work) end
   elseif kind == follower then
      counted("followed")
      ffi.C.sem_post(shared.room)
   end
end

-- Returns how many transactions of the leading kind have ended, and how many of the following one have begun.
function background.counts()
   ffi.C.pthread_mutex_lock(shared.mutex)
   local led, follows = tonumber(shared.led), tonumber(shared.follows)
   ffi.C.pthread_mutex_unlock(shared.mutex)
   return led, follows
end

-- Notes that a thread begins no more transactions of a kind.
function background.leave(kind)
   if kind == leader then counted("left") end
end

-- Returns the number of the next transaction that has yet to follow, once no thread leads any more; nil if none has.
function background.rest(kind)
   if kind ~= follower then return nil end
   while true do
      local last = tonumber(shared.left) >= leaders
      local number = background.turn(kind, background.now() + PATIENCE)
      if number or last then return number end
   end
end

-- Waits until all threads have done their work, those of the clients and those beside them: connections that end apart
-- would take with them what their processes have used.
function background.meet()
   if #kinds > 0 then ffi.C.pthread_barrier_wait(shared.barrier) end
end

-- The most transactions by which the leading kind was ahead so far.
function background.apart() return shared and tonumber(shared.apart) or 0 end

return background
