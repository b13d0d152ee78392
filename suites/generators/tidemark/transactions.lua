-- Kinds of transactions: how many of each were finished, how often each was tried again and why, and how long each took.
--
-- suites/generators/tidemark.lua uses this module; scripts of suites call `tidemark.transaction`.

local ffi = require("ffi")

local transactions = {}

-- A transaction that its own application ended without committing, such as a payment without funds: what the function
-- given to `transactions.run` returns then.
transactions.REFUSED = {}

-- Latencies are counted in buckets, each 2 % wider than the one before, from 1 µs up. What is reported of a bucket is
-- its middle, so that no latency is off by more than 1 %. The last one is a year and a half.
local WIDTH = math.log(1.02)
local BUCKETS = 1600

-- Why a server rolls a transaction back that an application would begin again, in the order of the report.
local CAUSES = {"serialisation", "deadlock", "duplicate-key"}
local BY_NUMBER = {[1213] = "deadlock", [1020] = "serialisation", [1062] = "duplicate-key"} -- MySQL, MariaDB
local BY_STATE = {["40001"] = "serialisation", ["40P01"] = "deadlock", ["23505"] = "duplicate-key"} -- Postgres
local DUPLICATE_KEY = 1062

-- An application that fails this often in one transaction has a mistake, which trying again does not mend. So has one
-- whose first tries failed and that has not succeeded after so many seconds: a try may wait for a lock.
local MAX_TRIES, MAX_SECONDS, FIRST_TRIES = 1000, 20, 3

local now, connection, counting = nil, nil, true
local names, kinds = {}, {}
local intended -- when the next transaction should have begun; nil: when it begins
local offset -- from the monotonic clock to the second of the server's own counted time; nil: without slices

-- Prepares a thread for the kinds called `list`. `clock` returns seconds, `own` is the thread's connection.
function transactions.start(list, clock, own, engine)
   now, connection, names = clock, own, list
   for _, name in ipairs(list) do
      kinds[name] = {done = 0, all = 0, refused = 0, sum = 0, longest = 0, retried = {},
         buckets = ffi.new("uint32_t[?]", BUCKETS), seconds = {}}
      for _, cause in ipairs(CAUSES) do kinds[name].retried[cause] = 0 end
   end
   -- The driver of MySQL ignores deadlocks and 1020 by itself, that of Postgres all three.
   sysbench.hooks.sql_error_ignorable = function(problem) return problem.sql_errno == DUPLICATE_KEY end
   -- A ROLLBACK after a statement of its own would be warned of in the output.
   if engine == "pgsql" then own:query("SET client_min_messages = error") end
end

-- Whether what follows is counted: not while warming up. A slice that is begins at `began`, after `before` seconds of
-- earlier ones.
function transactions.count(is_counted, began, before)
   counting = is_counted
   offset = is_counted and began and before - began or nil
end

-- The next transaction should have begun at `moment`, from which its latency is measured.
function transactions.intend(moment) intended = moment end

-- Returns why the server rolled a transaction back; raises what no application would try again.
local function cause_of(problem)
   if type(problem) ~= "table" or problem.errcode ~= sysbench.error.RESTART_EVENT then error(problem, 0) end
   local cause = BY_NUMBER[problem.sql_errno] or BY_STATE[problem.sql_state]
   if not cause then
      error(string.format("error %d, state %s: %s in %s", problem.sql_errno, problem.sql_state, problem.sql_errmsg,
         problem.query), 0)
   end
   return cause
end

-- Raises what the server said last of a transaction that it has rolled back for the `tries`-th time since `began`, in
-- seconds of the monotonic clock, when there is no use in trying it again. `moment` is now.
function transactions.require_hope(name, tries, began, moment, problem)
   if tries < MAX_TRIES and (tries < FIRST_TRIES or moment - began < MAX_SECONDS) then return end
   error(string.format("%s was rolled back %d times in %.1f s: %s in %s", name, tries, moment - began,
      problem.sql_errmsg, problem.query), 0)
end

-- Rolls back and begins again until the transaction succeeds. Apart from `run`, which LuaJIT compiles without a loop.
local function try_again(kind, name, problem, body, ...)
   local began = now()
   for tries = 1, MAX_TRIES do
      local cause = cause_of(problem)
      transactions.require_hope(name, tries, began, now(), problem)
      if counting then kind.retried[cause] = kind.retried[cause] + 1 end
      connection:query("ROLLBACK")
      local finished, result = pcall(body, ...)
      if finished then return result end
      problem = result
   end
end

local function record(kind, ended, began)
   local seconds = ended - began
   local microseconds = math.max(seconds * 1e6, 1)
   local bucket = math.min(math.floor(math.log(microseconds) / WIDTH), BUCKETS - 1)
   kind.buckets[bucket] = kind.buckets[bucket] + 1
   kind.done, kind.sum = kind.done + 1, kind.sum + seconds
   if seconds > kind.longest then kind.longest = seconds end
   if offset then
      local second = math.max(math.floor(ended + offset), 0) + 1
      if seconds > (kind.seconds[second] or 0) then kind.seconds[second] = seconds end
   end
end

-- Runs one transaction of a kind: `body(...)`, which begins and commits by itself. When the server rolls it back, it is
-- begun again, and the latency is that of all tries. Returns what `body` returns.
function transactions.run(name, body, ...)
   local kind = kinds[name] or error("a kind that the script does not declare: " .. tostring(name), 0)
   local began = intended or now()
   intended = nil
   local finished, result = pcall(body, ...)
   if not finished then result = try_again(kind, name, result, body, ...) end
   if result == transactions.REFUSED then
      if counting then kind.refused = kind.refused + 1 end
      return result
   end
   kind.all = kind.all + 1
   if counting then record(kind, now(), began) end
   return result
end

local function buckets_of(kind)
   local parts = {}
   for bucket = 0, BUCKETS - 1 do
      if kind.buckets[bucket] > 0 then parts[#parts + 1] = string.format(" %d:%d", bucket, kind.buckets[bucket]) end
   end
   return table.concat(parts)
end

-- The slowest of a kind in each second of the server's own time, in milliseconds.
local function longest_of(kind)
   local parts, last = {}, 0
   for second in pairs(kind.seconds) do last = math.max(last, second) end
   for second = 1, last do parts[second] = string.format(" %.3f", (kind.seconds[second] or 0) * 1000) end
   return table.concat(parts)
end

-- Returns a line for each kind, of this thread, and one more with its slowest in each second.
function transactions.lines()
   local lines = {}
   for _, name in ipairs(names) do
      local kind, failed, causes = kinds[name], 0, {}
      for _, cause in ipairs(CAUSES) do
         failed = failed + kind.retried[cause]
         causes[#causes + 1] = string.format("%s %d", cause, kind.retried[cause])
      end
      lines[#lines + 1] = string.format(
         "tidemark: kind %s of thread %d done %d failed %d %s refused %d all %d sum_ms %.3f max_ms %.3f:%s\n",
         name, sysbench.tid, kind.done, failed, table.concat(causes, " "), kind.refused, kind.all,
         kind.sum * 1000, kind.longest * 1000, buckets_of(kind))
      if next(kind.seconds) then
         lines[#lines + 1] = string.format("tidemark: longest %s of thread %d:%s\n", name, sysbench.tid, longest_of(kind))
      end
   end
   return table.concat(lines)
end

return transactions
