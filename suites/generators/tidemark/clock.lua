-- The monotonic clock of a client: the time, sleep, and the wait at the end of a step.
--
-- Every module here that asks for the time asks this one.

local ffi = require("ffi")

ffi.cdef [[
struct tidemark_time { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct tidemark_time *time);
int usleep(unsigned int microseconds);
int access(const char *path, int mode);
]]

local CLOCK_MONOTONIC = 1
local time_buffer = ffi.new("struct tidemark_time")

local clock = {}

-- Returns seconds of the monotonic clock.
function clock.now()
   ffi.C.clock_gettime(CLOCK_MONOTONIC, time_buffer)
   return tonumber(time_buffer.seconds) + tonumber(time_buffer.nanoseconds) / 1e9
end

function clock.sleep_until(moment)
   local left = moment - clock.now()
   if left > 0 then ffi.C.usleep(math.floor(left * 1e6)) end
end

-- Seconds between two looks for the file that ends the linger: too few for the costs of those that still work.
local LOOK_SECONDS = 0.02

-- Waits for `linger_ms`, or until the file is there that Tidemark creates when it has read all that it measures.
function clock.linger()
   local till, measured = clock.now() + sysbench.opt.linger_ms / 1000, os.getenv("TIDEMARK_MEASURED_FILE")
   while clock.now() < till and not (measured and ffi.C.access(measured, 0) == 0) do
      clock.sleep_until(measured and math.min(till, clock.now() + LOOK_SECONDS) or till)
   end
end

return clock
