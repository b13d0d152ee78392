-- What the sysbench scripts of all suites share: turns between servers, random numbers, prepared statements.
--
-- A suite's script says `local tidemark = require("tidemark")` and ends with `tidemark.script {...}`. Tidemark starts
-- sysbench with a LUA_PATH that leads here, wherever the suite's folder lies; by hand it is
--
--   LUA_PATH="/path/to/suites/generators/?.lua;;" sysbench write_heavy.lua ... run
--
-- docs/suites.md says what the options mean and what the lines that begin with `tidemark:` hold.

local bit = require("bit")
local ffi = require("ffi")

ffi.cdef [[
struct tidemark_time { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct tidemark_time *time);
int usleep(unsigned int microseconds);
]]

local tidemark = {}

-- What Tidemark gives to every script. A suite with a [scale] gets `scale` and `unit`, any other `tables`,
-- `table_size` and `table`.
local OPTIONS = {
   tables = {"Number of tables", 1},
   table_size = {"Rows loaded into each table", 10000},
   table = {"Table to load (prepare)", 1},
   scale = {"Units of the suite's scale", 1},
   unit = {"Unit of the scale to load; 0: what belongs to no unit (prepare)", 0},
   table_seed = {"Seed of the rows (prepare)", 1},
   linger_ms = {"Milliseconds for which connections stay open, idle, after the last transaction", 0},
   walk_from = {"Rows that each thread has used up before, for steps that use rows up", 0},
   slice_ms = {"Milliseconds of a slice, in which one of several servers works; 0: work without pause", 0},
   slices = {"What we do in each slice, in order: 0 wait, w warm up, 1 work", ""},
   slice_origin = {"Second of the monotonic clock at which the first slice begins", "0"},
   slice_gap_ms = {"Idle milliseconds at the end of each slice", 0},
}

-- --- time

local CLOCK_MONOTONIC = 1
local time_buffer = ffi.new("struct tidemark_time")

local function now()
   ffi.C.clock_gettime(CLOCK_MONOTONIC, time_buffer)
   return tonumber(time_buffer.seconds) + tonumber(time_buffer.nanoseconds) / 1e9
end

local function sleep_until(moment)
   local left = moment - now()
   if left > 0 then ffi.C.usleep(math.floor(left * 1e6)) end
end

-- --- random numbers

-- Uniform integers from 0 to n - 1 by xorshift128: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software
-- 8(14), 2003. The same numbers on every platform and sysbench: for loading rows, because 1.0 seeds its own
-- generator only for `run`.
function tidemark.generator(seed)
   local x, y, z, w = bit.tobit(seed), 362436069, 521288629, 88675123
   local function draw(n)
      local t = bit.bxor(x, bit.lshift(x, 11))
      x, y, z = y, z, w
      w = bit.bxor(w, bit.rshift(w, 19), t, bit.rshift(t, 8))
      return (w % 4294967296) % n
   end
   for _ = 1, 64 do draw(2) end -- lets neighbouring seeds part
   return draw
end

-- Numbers from zipf's law over 1..n by rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion
-- to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996. Constant time per draw;
-- Debian's sysbench 1.0.20 has no zipfian generator of its own. Small ids are the frequent ones.
function tidemark.zipfian(n, s)
   local function integral(x) return (x ^ (1 - s) - 1) / (1 - s) end
   local function inverse(y) return (1 + y * (1 - s)) ^ (1 / (1 - s)) end
   local upper = integral(n + 0.5)
   local lower = integral(1.5) - 1
   local shortcut = 2 - inverse(integral(2.5) - 2 ^ -s)
   return function()
      while true do
         local u = upper + sysbench.rand.uniform_double() * (lower - upper)
         local x = inverse(u)
         local k = math.min(math.max(math.floor(x + 0.5), 1), n)
         if k - x <= shortcut or u >= integral(k + 0.5) - k ^ -s then return k end
      end
   end
end

local function gcd(a, b)
   while b ~= 0 do a, b = b, a % b end
   return a
end

-- A walk that meets every id of 1..n once, in an order that looks random: multiples of a stride near the golden
-- section that has no factor in common with n. The threads share the ids: each takes every threads-th element of the
-- walk, and goes on after the first `walk_from` of its own. For steps that use rows up.
function tidemark.walk(n)
   local first, step = sysbench.tid, sysbench.opt.threads
   local stride = math.max(1, math.floor(n * 0.6180339887))
   while gcd(stride, n) ~= 1 do stride = stride + 1 end
   -- Sums stay exact in a double, where index * stride would not from some hundred million rows on.
   local jump, at = (step * stride) % n, ((first - step) * stride) % n
   for _ = 1, sysbench.opt.walk_from do at = (at + jump) % n end
   return function()
      at = (at + jump) % n
      return at + 1
   end
end

-- --- prepared statements

local Statement = {}
Statement.__index = Statement

-- Sets the parameters and executes. A string argument is a format of sysbench.rand.string.
function Statement:execute(...)
   for i = 1, select("#", ...) do
      local value = select(i, ...)
      if type(value) == "string" then
         self.parameters[i]:set_rand_str(value)
      else
         self.parameters[i]:set(value)
      end
   end
   return self.prepared:execute()
end

-- The same for statements that return rows: the driver's results must be freed by hand.
function Statement:query(...)
   local result = self:execute(...)
   if result then result:free() end
end

-- Prepares `text`. `types` says of each parameter "int", or the length of a string.
function tidemark.statement(connection, text, types)
   local prepared, parameters = connection:prepare(text), {}
   for i, kind in ipairs(types or {}) do
      if kind == "int" then
         parameters[i] = prepared:bind_create(sysbench.sql.type.INT)
      else
         parameters[i] = prepared:bind_create(sysbench.sql.type.CHAR, kind)
      end
   end
   if #parameters > 0 then prepared:bind_param(unpack(parameters)) end
   return setmetatable({prepared = prepared, parameters = parameters}, Statement)
end

-- --- slices

-- The slices of this thread, {begin, end, whether it only warms up}, and the end of all; on the monotonic clock.
local function own_slices()
   local origin, length = tonumber(sysbench.opt.slice_origin), sysbench.opt.slice_ms / 1000
   local gap, list = sysbench.opt.slice_gap_ms / 1000, {}
   for place = 1, #sysbench.opt.slices do
      local kind = sysbench.opt.slices:sub(place, place)
      if kind ~= "0" then
         list[#list + 1] = {origin + (place - 1) * length, origin + place * length - gap, kind == "w"}
      end
   end
   return list, origin + #sysbench.opt.slices * length
end

-- A transaction that the server rolled back, such as a victim of a deadlock, begins again.
local function finish_event(thread_id)
   while true do
      local finished, problem = pcall(event, thread_id)
      if finished then return end
      if type(problem) ~= "table" or problem.errcode ~= sysbench.error.RESTART_EVENT then error(problem, 0) end
   end
end

-- The most events of this thread in one of its slices. A step that uses rows up spends them evenly: in the first
-- slices alone they would not be balanced against those of the other servers.
local function most_in_slice(slices)
   if sysbench.opt.events == 0 then return math.huge end
   return math.max(1, math.floor(sysbench.opt.events / sysbench.opt.threads / slices))
end

-- Work until `deadline`, `most` events, or until there is no more to do. Returns the end, the number of events in
-- each second since `began`, and whether there is more to do. What warms up is counted, but is no event of
-- sysbench's.
local function work_until(deadline, most, began, thread_id, warming)
   local ended, more, done, seconds = began, true, 0, {}
   while ended < deadline and done < most do
      more = ffi.C.sb_more_events(thread_id)
      if not more then break end
      if not warming then ffi.C.sb_event_start(thread_id) end
      finish_event(thread_id)
      if not warming then ffi.C.sb_event_stop(thread_id) end
      ended, done = now(), done + 1
      local second = math.floor(ended - began) + 1
      seconds[second] = (seconds[second] or 0) + 1
   end
   for second = 1, math.floor(ended - began) do seconds[second] = seconds[second] or 0 end
   return ended, seconds, more
end

-- Work within our slices only. The waiting is outside of the events, so that it is no latency.
local function run_slices(thread_id)
   local slices, last = own_slices()
   local lines, most = {}, most_in_slice(#slices)
   for place, slice in ipairs(slices) do
      sleep_until(slice[1])
      local began = now()
      local ended, seconds, more = work_until(slice[2], most, began, thread_id, slice[3])
      lines[place] = string.format("tidemark: %s %d of thread %d from %.6f to %.6f: %s\n",
         slice[3] and "warm-up" or "slice", place, sysbench.tid, began, ended, table.concat(seconds, " "))
      if not more then break end
   end
   -- Written when no server works any more: whoever reads shall not take the processor from one.
   sleep_until(last)
   io.stdout:write(table.concat(lines))
   io.stdout:flush()
end

-- --- a suite's script

local function options_with(own)
   local all = {}
   for name, option in pairs(OPTIONS) do all[name] = option end
   for name, option in pairs(own or {}) do all[name] = option end
   return all
end

-- Makes sysbench's entry points from what the suite's script has of its own:
--
--   options   its options besides those above, name = {text, default}
--   prepare   function(connection, engine): loads the table `sysbench.opt.table`, or the unit `sysbench.opt.unit`;
--             engine is the driver's name, "pgsql" or "mysql"
--   start     function(connection): called once by each thread, before its first transaction
--   event     function(): one transaction
function tidemark.script(suite)
   local connection, first_event
   local without_pause = thread_run -- sysbench's own loop

   sysbench.cmdline.options = options_with(suite.options)

   local function prepare()
      local driver = sysbench.sql.driver()
      local loading = driver:connect()
      suite.prepare(loading, driver:name())
      loading:disconnect()
   end
   sysbench.cmdline.commands = {prepare = {prepare}}

   function thread_init()
      connection = sysbench.sql.driver():connect()
      suite.start(connection)
   end

   local transaction = suite.event
   function event()
      if not first_event then first_event = now() end
      transaction()
   end

   function thread_run(thread_id)
      if sysbench.opt.slice_ms > 0 then run_slices(thread_id) else without_pause(thread_id) end
   end

   -- Says when this thread began and ended, and keeps its connection open for a moment: whoever counts the cost of
   -- the server's processes finds them still alive.
   function thread_done()
      local ended = now()
      io.stdout:write(string.format("tidemark: thread %d from %.6f to %.6f\n",
         sysbench.tid, first_event or ended, ended))
      io.stdout:flush()
      ffi.C.usleep(sysbench.opt.linger_ms * 1000)
      connection:disconnect()
   end
end

return tidemark
