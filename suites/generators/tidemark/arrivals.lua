-- Arrivals at a rate: transactions begin when they are due, whether or not the server keeps up.
--
-- suites/generators/tidemark.lua uses this module for steps with a `rate`. Arrivals are a Poisson process drawn from the
-- seed, the same list for every server, on a clock that stands still while other servers have their turns. The threads
-- of a process share one list, from which each takes the next arrival when it is free.

local bit = require("bit")
local ffi = require("ffi")

ffi.cdef [[
struct tidemark_arrivals { char mutex[64]; int32_t x, y, z, w; double next; };
void *calloc(size_t count, size_t size);
int setenv(const char *name, const char *value, int overwrite);
int pthread_mutex_lock(void *mutex);
int pthread_mutex_unlock(void *mutex);
int prctl(int option, unsigned long value, unsigned long, unsigned long, unsigned long);
]]

local ADDRESS = "TIDEMARK_ARRIVALS" -- by which threads, whose Lua states are separate, find what they share
local PR_SET_TIMERSLACK = 29
local WARM_UP = 64

local arrivals = {}
local shared, rate -- of one thread

-- The uniform numbers of tidemark.generator, whose state lies in memory that all threads share.
local function draw(state)
   local t = bit.bxor(state.x, bit.lshift(state.x, 11))
   state.x, state.y, state.z = state.y, state.z, state.w
   state.w = bit.bxor(state.w, bit.rshift(state.w, 19), t, bit.rshift(t, 8))
   return (state.w % 4294967296) / 4294967296
end

local function advance(state)
   state.next = state.next - math.log(1 - draw(state)) / rate
end

-- Makes the list of a process, which happens once, before its threads begin.
function arrivals.init(seed, per_second)
   rate = per_second
   local state = ffi.cast("struct tidemark_arrivals *", ffi.C.calloc(1, ffi.sizeof("struct tidemark_arrivals")))
   state.x, state.y, state.z, state.w = bit.tobit(seed), 362436069, 521288629, 88675123
   for _ = 1, WARM_UP do draw(state) end
   advance(state)
   ffi.C.setenv(ADDRESS, string.format("%.0f", tonumber(ffi.cast("intptr_t", state))), 1)
end

-- Finds the list, in each thread, and lets it wake up on time.
function arrivals.start(per_second)
   rate = per_second
   shared = ffi.cast("struct tidemark_arrivals *", ffi.cast("intptr_t", tonumber(os.getenv(ADDRESS))))
   ffi.C.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
end

-- Returns when the next arrival is due, in seconds of the server's own time, and takes it off the list.
function arrivals.take()
   ffi.C.pthread_mutex_lock(shared.mutex)
   local moment = shared.next
   advance(shared)
   ffi.C.pthread_mutex_unlock(shared.mutex)
   return moment
end

return arrivals
