-- The module shared by the sysbench scripts of all suites: slices, random numbers and prepared statements.
--
-- A suite's script begins with `local tidemark = require("tidemark")` and ends with `tidemark.script {...}`. Tidemark
-- sets LUA_PATH so that sysbench finds this file. To run a script by hand:
--
--   LUA_PATH="/path/to/suites/generators/?.lua;;" sysbench write_heavy.lua ... run
--
-- docs/suites.md explains the options, and the output lines that begin with `tidemark:`.

local arrivals = require("arrivals")
local background = require("background")
local bit = require("bit")
local ffi = require("ffi")
local statements = require("statements")
local transactions = require("transactions")

ffi.cdef [[
struct tidemark_time { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct tidemark_time *time);
int usleep(unsigned int microseconds);
int access(const char *path, int mode);
]]

local tidemark = {}

-- The options that Tidemark passes to every script. A suite with a [scale] gets `scale` and `unit`, any other suite
-- gets `tables`, `table_size` and `table`.
local OPTIONS = {
   tables = {"Number of tables", 1},
   table_size = {"Rows loaded into each table", 10000},
   table = {"Table to load (prepare)", 1},
   scale = {"Number of units of the suite's scale", 1},
   unit = {"Unit of the scale to load; 0: create all tables and load those of fixed size (prepare)", 0},
   table_seed = {"Seed of the rows (prepare)", 1},
   linger_ms = {"Milliseconds for which connections stay open at most, idle, after the last transaction", 0},
   walk_from = {"Rows that each thread has already used up, for steps that use rows up", 0},
   slice_ms = {"Length of a slice in milliseconds; 0: work without pauses", 0},
   slices = {"One character per slice: 0 wait, w warm up, 1 work", ""},
   slice_origin = {"Begin of the first slice in seconds of the monotonic clock", "0"},
   slice_gap_ms = {"Idle milliseconds at the end of each slice", 0},
   counted = {"Transactions of a counted pass; 0: no counted pass", 0},
   counted_warm = {"Transactions before those of a counted pass", 0},
   mark = {"SQL statement that marks the begin and the end of a counted pass", ""},
   arrivals = {"Transactions that arrive in each second of work, over all threads; 0: each follows the one before", "0"},
   arrivals_seed = {"Seed of the arrivals", 1},
   background = {"Transactions of other connections beside each client, such as insert:2,delete:2 a second", ""},
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

-- Seconds between two looks for the file that ends the linger: too few for the costs of those that still work.
local LOOK_SECONDS = 0.02

-- Waits for `linger_ms`, or until the file is there that Tidemark creates when it has read all that it measures.
local function linger()
   local till, measured = now() + sysbench.opt.linger_ms / 1000, os.getenv("TIDEMARK_MEASURED_FILE")
   while now() < till and not (measured and ffi.C.access(measured, 0) == 0) do
      sleep_until(measured and math.min(till, now() + LOOK_SECONDS) or till)
   end
end

-- --- random numbers

-- Uniform integers from 0 to n - 1 by xorshift128: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software
-- 8(14), 2003. It is used for loading, because the numbers are the same on every platform and version of sysbench;
-- sysbench 1.0 seeds its own generator only for `run`.
function tidemark.generator(seed)
   local x, y, z, w = bit.tobit(seed), 362436069, 521288629, 88675123
   local function draw(n)
      local t = bit.bxor(x, bit.lshift(x, 11))
      x, y, z = y, z, w
      w = bit.bxor(w, bit.rshift(w, 19), t, bit.rshift(t, 8))
      return (w % 4294967296) % n
   end
   for _ = 1, 64 do draw(2) end -- until sequences of similar seeds have diverged
   return draw
end

-- The low 32 bits of a product, whose exact value a double cannot hold.
local function times(h, factor)
   local high = (bit.band(bit.rshift(h, 16), 0xffff) * factor) % 65536
   return bit.tobit(bit.band(h, 0xffff) * factor + high * 65536)
end

-- A number from 0 to 2^32 - 1 that looks drawn and follows from `number`, for values that both the loader and the client
-- know: the 32-bit finalizer of A. Appleby's MurmurHash3, 2011.
function tidemark.hash(number)
   local h = bit.tobit(number)
   h = times(bit.bxor(h, bit.rshift(h, 16)), 0x85ebca6b)
   h = times(bit.bxor(h, bit.rshift(h, 13)), 0xc2b2ae35)
   return bit.bxor(h, bit.rshift(h, 16)) % 4294967296
end

-- Zipf-distributed integers from 1 to n with exponent s, by rejection-inversion: W. Hörmann and G. Derflinger,
-- "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996. The time
-- per number is constant, and small numbers are the most frequent. Debian's sysbench 1.0.20 has no such generator.
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

-- A walk that visits every id from 1 to n once, in an order that looks random: multiples of a stride near the golden
-- section that is coprime to n. Ids are divided among the threads: each thread takes every threads-th element of the
-- walk, after skipping those of its first `walk_from` transactions. For steps that use rows up, `rows` (1 unless given)
-- in each transaction.
function tidemark.walk(n, rows)
   local first, step = sysbench.tid, sysbench.opt.threads
   local stride = math.max(1, math.floor(n * 0.6180339887))
   while gcd(stride, n) ~= 1 do stride = stride + 1 end
   -- Sums are exact in a double; index * stride would not be with several hundred million rows.
   local jump, at = (step * stride) % n, ((first - step) * stride) % n
   for _ = 1, math.floor(sysbench.opt.walk_from * (rows or 1)) do at = (at + jump) % n end
   return function()
      at = (at + jump) % n
      return at + 1
   end
end

-- Replaces sysbench's random numbers, of one thread, by ours. sysbench 1.0 seeds its generator by random(3), which its
-- threads call in an order that differs from run to run: with one seed it draws one of two sequences.
local function draw_reproducibly(seed)
   local draw = tidemark.generator(seed)
   local function digit_or_letter(mark)
      if mark == "#" then return string.char(48 + draw(10)) end
      if mark == "@" then return string.char(97 + draw(26)) end
   end
   sysbench.rand.uniform = function(least, most) return least + draw(most - least + 1) end
   sysbench.rand.default = sysbench.rand.uniform
   sysbench.rand.uniform_double = function() return draw(4294967296) / 4294967296 end
   sysbench.rand.string = function(format) return (format:gsub("[#@]", digit_or_letter)) end
   statements.random_string = sysbench.rand.string
end

-- Inserts rows 1 to `rows` into what `into` says, a table and perhaps its columns; `row_of(row)` returns the values of one.
function tidemark.insert(connection, into, rows, row_of)
   connection:bulk_insert_init("INSERT INTO " .. into .. " VALUES")
   for row = 1, rows do connection:bulk_insert_next("(" .. row_of(row) .. ")") end
   connection:bulk_insert_done()
end

-- --- statements (statements.lua)

function tidemark.text(value) return statements.text(value) end

function tidemark.statement(connection, text, types) return statements.statement(connection, text, types) end

function tidemark.question(connection, text) return statements.question(connection, text) end

-- --- kinds of transactions

tidemark.REFUSED = transactions.REFUSED

function tidemark.transaction(kind, body, ...) return transactions.run(kind, body, ...) end

-- Returns how many transactions of the leading kind of the suite's `pace` have ended in this run, and how many of the
-- following one have begun.
function tidemark.paced() return background.counts() end

-- --- slices

local own_kind, own_turn -- of a client's own transactions, and its number, in a suite that has a pace

-- Returns the slices of this server as {begin, end, whether it is a warm-up}, and the end of all slices, in seconds of
-- the monotonic clock.
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

-- Repeats a transaction, `body(...)`, that the server has rolled back, for example because of a deadlock, until it
-- succeeds. Raises what the server says if it fails again and again; `problem` is what it said first.
function tidemark.retry(problem, body, ...)
   local began, tries, finished = now(), 0, false
   while not finished do
      if type(problem) ~= "table" or problem.errcode ~= sysbench.error.RESTART_EVENT then error(problem, 0) end
      tries = tries + 1
      transactions.require_hope("a transaction", tries, began, now(), problem)
      finished, problem = pcall(body, ...)
   end
end

-- Runs one transaction, again if the server has rolled it back. The loop is in `tidemark.retry`, which is rarely called:
-- LuaJIT does not compile a loop around another one, and interpreting it would cost a sixth more CPU per transaction.
local function finish_event(thread_id)
   local finished, problem = pcall(event, thread_id)
   if not finished then tidemark.retry(problem, event, thread_id) end
end

-- Returns the maximum number of events of this thread in one slice. A step that uses rows up distributes its events
-- evenly over the slices, so that they are balanced against those of the other servers.
local function most_in_slice(slices)
   if sysbench.opt.events == 0 then return math.huge end
   return math.max(1, math.floor(sysbench.opt.events / background.own_threads(sysbench.opt.threads) / slices))
end

-- Ends the seconds that have passed: the transactions between `before` and `done` ended in the first of them, and none
-- in those after it. Returns how many transactions are now in ended seconds.
local function close_seconds(seconds, before, done, passed)
   while #seconds < math.floor(passed) do
      seconds[#seconds + 1], before = done - before, done
   end
   return before
end

-- Works until `deadline`, `most` events, or until there is no more work. Returns the end, the number of events in each
-- second since `began`, and whether there is more work. Warm-up transactions are counted here, but are not events of
-- sysbench.
local function work_until(deadline, most, began, thread_id, warming)
   local ended, more, done = began, true, 0
   local seconds, before, next_second = {}, 0, began + 1
   while ended < deadline and done < most do
      if own_kind then
         own_turn = background.turn(own_kind, deadline)
         if not own_turn then
            ended = now()
            break
         end
      end
      more = ffi.C.sb_more_events(thread_id)
      if not more then break end
      if not warming then ffi.C.sb_event_start(thread_id) end
      finish_event(thread_id)
      if not warming then ffi.C.sb_event_stop(thread_id) end
      ended = now()
      if ended >= next_second then
         before = close_seconds(seconds, before, done, ended - began)
         next_second = began + #seconds + 1
      end
      done = done + 1
   end
   if done > before then seconds[#seconds + 1] = done - before end
   return ended, seconds, more
end

-- Writes what was printed before, kinds and slices. After the last slice, so that processing the output does not take
-- CPU time from a server.
local function report(lines)
   io.stdout:write(table.concat(lines) .. transactions.lines()) -- at once: other threads write too
   io.stdout:flush()
end

-- Works only in the slices of this server. Waiting is not part of an event, and so not of its latency.
local function run_slices(thread_id)
   local slices, last = own_slices()
   local lines, most, before = {}, most_in_slice(#slices), 0
   for place, slice in ipairs(slices) do
      sleep_until(slice[1])
      local began = now()
      transactions.count(not slice[3], began, before)
      if not slice[3] then before = before + slice[2] - slice[1] end
      local ended, seconds, more = work_until(slice[2], most, began, thread_id, slice[3])
      lines[place] = string.format("tidemark: %s %d of thread %d from %.6f to %.6f: %s\n",
         slice[3] and "warm-up" or "slice", place, sysbench.tid, began, ended, table.concat(seconds, " "))
      if not more then break end
   end
   if own_kind then background.leave(own_kind) end
   sleep_until(last)
   report(lines)
end

-- --- arrivals at a rate, and pauses

-- The arrivals of one thread: the one it has taken and not begun, those that were due in measured slices, and the most
-- that one of these began too late.
local pending, due, latest = nil, 0, 0

-- Returns when the next transaction of this thread is due, given that it is free at `moment`; both in seconds of the
-- server's own time. Set by thread_run.
local next_due

-- Begins the transactions of a slice when they are due. Its first second of own time is `from`; those due before
-- `counted_from` are warm-up. What is due and could not begin before the end of the slice waits for the next one.
local function work_when_due(slice, from, counted_from, thread_id)
   local began, deadline = slice[1], slice[2]
   local till, ended, done = from + deadline - began, now(), 0
   local seconds, before, more = {}, 0, true
   while more do
      pending = pending or next_due(from + math.max(ended - began, 0))
      if pending >= till then break end
      local intended = began + pending - from
      sleep_until(intended)
      if now() >= deadline then break end
      more = ffi.C.sb_more_events(thread_id)
      if not more then break end
      if pending >= counted_from then due, latest = due + 1, math.max(latest, now() - intended) end
      pending = nil
      transactions.count(not slice[3], slice[1], from - counted_from)
      transactions.intend(intended)
      if not slice[3] then ffi.C.sb_event_start(thread_id) end
      finish_event(thread_id)
      if not slice[3] then ffi.C.sb_event_stop(thread_id) end
      ended = now()
      before = close_seconds(seconds, before, done, ended - began)
      done = done + 1
   end
   -- The slice lasted as long as something could arrive, also while nothing did.
   ended = math.max(ended, deadline)
   before = close_seconds(seconds, before, done, ended - began)
   seconds[#seconds + 1] = done - before
   return ended, seconds, more
end

-- Takes what was due and never began off the list, of which the first thread speaks for all.
local function count_never_begun(counted_from, till)
   local function never_begun(moment)
      if moment >= counted_from then due, latest = due + 1, math.max(latest, till - moment) end
   end
   if pending and pending < till then never_begun(pending) end
   while sysbench.tid == 0 do
      local moment = arrivals.take()
      if moment >= till then break end
      never_begun(moment)
   end
end

-- Works in the slices of this server as transactions arrive, or after the pauses of this thread.
local function run_arrivals(thread_id)
   local slices, last = own_slices()
   local lines, from, counted_from = {}, 0, 0
   for place, slice in ipairs(slices) do
      local length = slice[2] - slice[1]
      if slice[3] then counted_from = from + length end
      sleep_until(slice[1])
      local ended, seconds, more = work_when_due(slice, from, counted_from, thread_id)
      lines[place] = string.format("tidemark: %s %d of thread %d from %.6f to %.6f: %s\n",
         slice[3] and "warm-up" or "slice", place, sysbench.tid, slice[1], ended, table.concat(seconds, " "))
      from = from + length
      if not more then break end
   end
   sleep_until(last)
   if tonumber(sysbench.opt.arrivals) > 0 then
      count_never_begun(counted_from, from)
      lines[#lines + 1] = string.format("tidemark: arrivals of thread %d due %d late_ms %.3f\n",
         sysbench.tid, due, latest * 1000)
   end
   report(lines)
end

-- --- transactions in the background

-- What was due in the last moments of a step, in seconds, and has not begun, is no fault of the server.
local GRACE = 0.1

-- Carries out transactions of a kind in the slices of this server, beside those that are measured: `rate` a second,
-- over all threads of the kind, or with 0 as many as its pace allows. They are no events of sysbench's. What keeps pace
-- with another kind has caught up when it returns.
local function run_background(thread_id, kind, rate, work)
   local slices, last = own_slices()
   local due_next = rate > 0 and background.clock(kind, rate, thread_id, sysbench.opt.threads)
   local from, counted_from, due, done, latest = 0, 0, 0, 0, 0
   local pending
   local function carry_out(number)
      work(kind, number)
      background.ended(kind)
   end
   for _, slice in ipairs(slices) do
      local length = slice[2] - slice[1]
      if slice[3] then counted_from = from + length end
      sleep_until(slice[1])
      transactions.count(not slice[3], slice[1], from - counted_from)
      while now() < slice[2] do
         local intended = now()
         if due_next then
            pending = pending or due_next()
            if pending >= from + length then break end
            intended = slice[1] + pending - from
            sleep_until(intended)
         end
         local number = now() < slice[2] and background.turn(kind, slice[2])
         if not number then break end
         if not due_next or pending >= counted_from then
            due, done, latest = due + 1, done + 1, math.max(latest, now() - intended)
         end
         pending = nil
         if due_next then transactions.intend(intended) end
         carry_out(number)
      end
      from = from + length
   end
   sleep_until(last)
   while due_next do
      pending = pending or due_next()
      if pending >= from - GRACE then break end
      if pending >= counted_from then due, latest = due + 1, math.max(latest, from - pending) end
      pending = nil
   end
   transactions.count(false)
   background.leave(kind)
   for number in background.rest, kind do carry_out(number) end
   report({string.format("tidemark: background %s of thread %d due %d done %d late_ms %.3f apart %d\n",
      kind, thread_id, due_next and due or 0, done, due_next and latest * 1000 or 0, background.apart())})
end

-- --- counted passes

-- Runs fixed numbers of transactions between marks: statements at which the tool that runs the server writes what it
-- has counted. The first mark is warm-up of the mark itself. Between the second and the third is a mark alone, which is
-- subtracted; between the third and the fourth are the transactions and a mark.
local function run_counted(thread_id, connection)
   local function mark() connection:query(sysbench.opt.mark) end
   for _ = 1, sysbench.opt.counted_warm do finish_event(thread_id) end
   for _ = 1, 3 do mark() end
   for _ = 1, sysbench.opt.counted do
      ffi.C.sb_event_start(thread_id)
      finish_event(thread_id)
      ffi.C.sb_event_stop(thread_id)
   end
   mark()
end

-- --- a suite's script

local function options_with(own)
   local all = {}
   for name, option in pairs(OPTIONS) do all[name] = option end
   for name, option in pairs(own or {}) do all[name] = option end
   return all
end

-- Defines sysbench's entry points from the fields of `suite`:
--
--   options   the script's own options, name = {text, default}
--   prepare   function(connection, engine): loads the table `sysbench.opt.table`, or the unit `sysbench.opt.unit`;
--             engine is the driver's name, "pgsql" or "mysql"
--   finish    function(connection, engine): called once, after everything is loaded; optional
--   kinds     names of the kinds of transactions, whose events call `tidemark.transaction`; optional
--   start     function(connection, engine): called once by every thread, before its first transaction
--   event     function(kind, number): runs one transaction; of a suite with a pace it is told the kind, and its number
--             among those of its kind, from 0
--   kind      function(): the kind of the step's own transactions; in suites with a pace
--   pace      {leader = kind, follower = kind, most = number}: two kinds that keep pace where a step has both: the
--             follower never overtakes, and is `most` transactions behind at most; optional
--   pause     function(): seconds for which this thread waits before its next transaction; nil if it does not; optional
function tidemark.script(suite)
   local connection, first_event, beside, beside_rate

   sysbench.cmdline.options = options_with(suite.options)

   local function command_of(work)
      return {function()
         local driver = sysbench.sql.driver()
         local loading = driver:connect()
         work(loading, driver:name())
         loading:disconnect()
      end}
   end
   sysbench.cmdline.commands = {prepare = command_of(suite.prepare)}
   if suite.finish then sysbench.cmdline.commands.finish = command_of(suite.finish) end

   local function rate() return tonumber(sysbench.opt.arrivals) end

   function init()
      if rate() > 0 then arrivals.init(sysbench.opt.arrivals_seed, rate()) end
      background.init(sysbench.opt.background, suite.pace, sysbench.opt.threads)
   end

   function thread_init()
      if sysbench.opt.counted > 0 then draw_reproducibly(sysbench.opt.table_seed) end
      local driver = sysbench.sql.driver()
      connection = driver:connect()
      if suite.kinds then transactions.start(suite.kinds, now, connection, driver:name()) end
      if rate() > 0 then arrivals.start(rate()) end
      beside, beside_rate = background.start(sysbench.opt.background, suite.pace, sysbench.tid,
         sysbench.opt.threads, now)
      if suite.pace then own_kind = suite.kind() end
      suite.start(connection, driver:name())
   end

   local transaction = suite.event
   local function one(kind, number)
      if not first_event then first_event = now() end
      transaction(kind, number)
   end

   function event()
      if not own_kind then return one() end
      local number = own_turn or background.turn(own_kind, now())
      own_turn = nil
      one(own_kind, number)
      background.ended(own_kind)
   end

   function thread_run(thread_id)
      if sysbench.opt.counted > 0 then
         run_counted(thread_id, connection)
      elseif beside then
         if sysbench.opt.slice_ms > 0 then run_background(thread_id, beside, beside_rate, one) end
      elseif rate() > 0 then
         next_due = arrivals.take
         run_arrivals(thread_id)
      elseif suite.pause and suite.pause() then
         next_due = function(moment) return moment + suite.pause() end
         run_arrivals(thread_id)
      elseif sysbench.opt.slice_ms > 0 then
         run_slices(thread_id)
      else
         while ffi.C.sb_more_events(thread_id) do
            ffi.C.sb_event_start(thread_id)
            finish_event(thread_id)
            ffi.C.sb_event_stop(thread_id)
         end
         report({})
      end
      background.meet()
   end

   -- Prints the begin and end of this thread, and keeps its connection open until the costs of the server's processes
   -- have been read, which end with their connections.
   function thread_done()
      local ended = now()
      io.stdout:write(string.format("tidemark: thread %d from %.6f to %.6f\n",
         sysbench.tid, first_event or ended, ended))
      io.stdout:flush()
      linger()
      connection:disconnect()
   end
end

return tidemark
