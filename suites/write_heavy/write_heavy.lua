-- The ten write-heavy tests for sysbench 1.0, on its pgsql and mysql drivers alike.
--
--   sysbench write_heavy.lua --table=N ... prepare     loads table N; one process per table, so that one seed
--                                                      gives the same rows whatever the number of threads
--   sysbench write_heavy.lua --workload=NAME ... run       runs one of the tests below
--
-- Rows are drawn by a generator of our own: sysbench's draws `k` with a skewed distribution on 1.0 and a uniform
-- one on master, and 1.0 seeds it only for `run`, so that two loads with one seed would differ.

local bit = require("bit")
local ffi = require("ffi")

ffi.cdef [[
struct tidemark_time { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct tidemark_time *time);
int usleep(unsigned int microseconds);
]]

sysbench.cmdline.options = {
   workload = {"Test to run", "update-index"},
   tables = {"Number of tables", 1},
   table_size = {"Rows loaded into each table", 10000},
   table = {"Table to load (prepare)", 1},
   table_seed = {"Seed of the rows (prepare)", 1},
   range_size = {"Ids in a range of the read-write tests", 100},
   zipf_exponent = {"Exponent of the zipfian ids of update-zipf", 0.8},
   linger_ms = {"Milliseconds for which connections stay open, idle, after the last transaction", 0},
   walk_from = {"Rows that each thread of the delete test has deleted before", 0},
   slice_ms = {"Milliseconds of a slice, in which one of several servers works; 0: work without pause", 0},
   slices = {"What we do in each slice, in order: 0 wait, w warm up, 1 work", ""},
   slice_origin = {"Second of the monotonic clock at which the first slice begins", "0"},
   slice_gap_ms = {"Idle milliseconds at the end of each slice", 0},
}

local CLOCK_MONOTONIC = 1
local INLIST = 10
local POINT_SELECTS = 10
local C_FORMAT = "###########-###########-###########-###########-###########-"
   .. "###########-###########-###########-###########-###########"
local PAD_FORMAT = "###########-###########-###########-###########-###########"

local time_buffer = ffi.new("struct tidemark_time")

local function now()
   ffi.C.clock_gettime(CLOCK_MONOTONIC, time_buffer)
   return tonumber(time_buffer.seconds) + tonumber(time_buffer.nanoseconds) / 1e9
end

-- Numbers from zipf's law over 1..n by rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion
-- to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996. Constant time per draw;
-- Debian's sysbench 1.0.20 has no zipfian generator of its own. Small ids are the frequent ones.
local function zipfian(n, s)
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
-- section that has no factor in common with n. Thread `first` of `step` threads takes every step-th element.
-- It goes on after the first `passed` of them.
local function permutation(n, first, step, passed)
   local stride = math.max(1, math.floor(n * 0.6180339887))
   while gcd(stride, n) ~= 1 do stride = stride + 1 end
   -- Sums stay exact in a double, where index * stride would not from some hundred million rows on.
   local jump, at = (step * stride) % n, ((first - step) * stride) % n
   for _ = 1, passed do at = (at + jump) % n end
   return function()
      at = (at + jump) % n
      return at + 1
   end
end

-- State of one thread, filled by thread_init.
local connection, statements, zipf, walks, first_event

local function uniform_id() return sysbench.rand.uniform(1, sysbench.opt.table_size) end

local function any_table() return sysbench.rand.uniform(1, sysbench.opt.tables) end

-- How each statement is written and what its parameters are: "int", or the length of a string.
local inlist_marks = string.rep("?, ", INLIST - 1) .. "?"
local inlist_types = {120}
for _ = 1, INLIST do inlist_types[#inlist_types + 1] = "int" end

local STATEMENTS = {
   update_inlist = {"UPDATE sbtest%d SET c = ? WHERE id IN (" .. inlist_marks .. ")", inlist_types},
   update_index = {"UPDATE sbtest%d SET k = k + 1 WHERE id = ?", {"int"}},
   update_nonindex = {"UPDATE sbtest%d SET c = ? WHERE id = ?", {120, "int"}},
   delete = {"DELETE FROM sbtest%d WHERE id = ?", {"int"}},
   insert_same = {"INSERT INTO sbtest%d (id, k, c, pad) VALUES (?, ?, ?, ?)", {"int", "int", 120, 60}},
   insert_next = {"INSERT INTO sbtest%d (k, c, pad) VALUES (?, ?, ?)", {"int", 120, 60}},
   point = {"SELECT c FROM sbtest%d WHERE id = ?", {"int"}},
   simple_range = {"SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ?", {"int", "int"}},
   sum_range = {"SELECT SUM(k) FROM sbtest%d WHERE id BETWEEN ? AND ?", {"int", "int"}},
   order_range = {"SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c", {"int", "int"}},
   distinct_range = {"SELECT DISTINCT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c", {"int", "int"}},
}

local function prepare_statement(text, types)
   local statement = connection:prepare(text)
   local parameters = {}
   for i, kind in ipairs(types) do
      if kind == "int" then
         parameters[i] = statement:bind_create(sysbench.sql.type.INT)
      else
         parameters[i] = statement:bind_create(sysbench.sql.type.CHAR, kind)
      end
   end
   if #parameters > 0 then statement:bind_param(unpack(parameters)) end
   return {statement = statement, parameters = parameters}
end

local function prepare_all(names)
   statements = {begin = prepare_statement("BEGIN", {}), commit = prepare_statement("COMMIT", {})}
   for _, name in ipairs(names) do
      local text, types = STATEMENTS[name][1], STATEMENTS[name][2]
      statements[name] = {}
      for t = 1, sysbench.opt.tables do
         statements[name][t] = prepare_statement(string.format(text, t), types)
      end
   end
end

-- Executes statement `name` on table t. A string argument is a format of sysbench.rand.string.
local function execute(name, t, ...)
   local prepared = statements[name][t]
   for i = 1, select("#", ...) do
      local value = select(i, ...)
      if type(value) == "string" then
         prepared.parameters[i]:set_rand_str(value)
      else
         prepared.parameters[i]:set(value)
      end
   end
   prepared.statement:execute()
end

-- Results of the driver must be freed by hand for statements that return rows.
local function query(name, t, ...)
   local prepared = statements[name][t]
   for i = 1, select("#", ...) do prepared.parameters[i]:set((select(i, ...))) end
   local result = prepared.statement:execute()
   if result then result:free() end
end

local function four_writes(t)
   local id = uniform_id()
   execute("update_index", t, uniform_id())
   execute("update_nonindex", t, C_FORMAT, uniform_id())
   execute("delete", t, id)
   execute("insert_same", t, id, uniform_id(), C_FORMAT, PAD_FORMAT)
end

local function write_only()
   statements.begin.statement:execute()
   four_writes(any_table())
   statements.commit.statement:execute()
end

local function read_write()
   local t = any_table()
   statements.begin.statement:execute()
   for _ = 1, POINT_SELECTS do query("point", t, uniform_id()) end
   for _, name in ipairs({"simple_range", "sum_range", "order_range", "distinct_range"}) do
      local from = uniform_id()
      query(name, t, from, from + sysbench.opt.range_size - 1)
   end
   four_writes(t)
   statements.commit.statement:execute()
end

local WRITES = {"update_index", "update_nonindex", "delete", "insert_same"}
local READS_AND_WRITES = {
   "point", "simple_range", "sum_range", "order_range", "distinct_range",
   "update_index", "update_nonindex", "delete", "insert_same",
}

-- name -> {statements it needs, one transaction}
local TESTS = {
   ["update-inlist"] = {{"update_inlist"}, function()
      local ids = {}
      for i = 1, INLIST do ids[i] = uniform_id() end
      execute("update_inlist", any_table(), C_FORMAT, unpack(ids))
   end},
   ["update-index"] = {{"update_index"}, function() execute("update_index", any_table(), uniform_id()) end},
   ["update-nonindex"] = {{"update_nonindex"}, function()
      execute("update_nonindex", any_table(), C_FORMAT, uniform_id())
   end},
   ["update-one"] = {{"update_nonindex"}, function() execute("update_nonindex", any_table(), C_FORMAT, 1) end},
   ["update-zipf"] = {{"update_nonindex"}, function()
      execute("update_nonindex", any_table(), C_FORMAT, zipf())
   end},
   ["write-only"] = {WRITES, write_only},
   ["read-write"] = {READS_AND_WRITES, read_write},
   ["delete"] = {{"delete"}, function()
      local t = any_table()
      execute("delete", t, walks[t]())
   end},
   ["insert"] = {{"insert_next"}, function()
      execute("insert_next", any_table(), uniform_id(), C_FORMAT, PAD_FORMAT)
   end},
}

local function chosen_test()
   local test = TESTS[sysbench.opt.workload]
   if not test then error("unknown test: " .. sysbench.opt.workload) end
   return test
end

function thread_init()
   connection = sysbench.sql.driver():connect()
   zipf = zipfian(sysbench.opt.table_size, sysbench.opt.zipf_exponent)
   walks = {}
   for t = 1, sysbench.opt.tables do
      walks[t] = permutation(sysbench.opt.table_size, sysbench.tid, sysbench.opt.threads, sysbench.opt.walk_from)
   end
   prepare_all(chosen_test()[1])
end

function event()
   if not first_event then first_event = now() end
   TESTS[sysbench.opt.workload][2]()
end

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

local function sleep_until(moment)
   local left = moment - now()
   if left > 0 then ffi.C.usleep(math.floor(left * 1e6)) end
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

local without_pause = thread_run -- sysbench's own loop

function thread_run(thread_id)
   if sysbench.opt.slice_ms > 0 then run_slices(thread_id) else without_pause(thread_id) end
end

-- Says when this thread began and ended, and keeps its connection open for a moment: whoever counts the cost of
-- the server's processes finds them still alive.
function thread_done()
   local ended = now()
   io.stdout:write(string.format("tidemark: thread %d from %.6f to %.6f\n", sysbench.tid, first_event or ended, ended))
   io.stdout:flush()
   ffi.C.usleep(sysbench.opt.linger_ms * 1000)
   connection:disconnect()
end

-- Uniform integers from 0 to n - 1 by xorshift128: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software
-- 8(14), 2003. The same numbers on every platform and sysbench.
local function generator(seed)
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

-- `count` groups of 11 digits with hyphens between, as sysbench writes c (10 groups) and pad (5).
local GROUP = "%05d%06d"
local C_DIGITS = string.rep(GROUP .. "-", 9) .. GROUP
local PAD_DIGITS = string.rep(GROUP .. "-", 4) .. GROUP

local function digits(draw, count)
   local numbers = {}
   for i = 1, 2 * count, 2 do
      numbers[i], numbers[i + 1] = draw(100000), draw(1000000)
   end
   return unpack(numbers)
end

local function load_table()
   local driver = sysbench.sql.driver()
   local con = driver:connect()
   local draw = generator(sysbench.opt.table_seed + sysbench.opt.table)
   local name = "sbtest" .. sysbench.opt.table
   local id = "BIGINT NOT NULL AUTO_INCREMENT"
   if driver:name() == "pgsql" then id = "BIGINT GENERATED BY DEFAULT AS IDENTITY" end
   con:query(string.format([[CREATE TABLE %s (id %s, k INTEGER NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '',
      pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id))]], name, id))
   con:bulk_insert_init("INSERT INTO " .. name .. " (k, c, pad) VALUES")
   for _ = 1, sysbench.opt.table_size do
      con:bulk_insert_next(string.format("(%d, '%s', '%s')", draw(sysbench.opt.table_size) + 1,
         string.format(C_DIGITS, digits(draw, 10)), string.format(PAD_DIGITS, digits(draw, 5))))
   end
   con:bulk_insert_done()
   con:query(string.format("CREATE INDEX k_%d ON %s (k)", sysbench.opt.table, name))
   con:disconnect()
end

sysbench.cmdline.commands = {prepare = {load_table}}
