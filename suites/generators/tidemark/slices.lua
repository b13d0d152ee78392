-- How a thread works: in the slices of its server, as transactions arrive, beside those that are measured, or for a
-- counted pass.
--
-- suites/generators/tidemark.lua chooses among them. The event is sysbench's global `event`.

local arrivals = require("tidemark.arrivals")
local background = require("tidemark.background")
local clock = require("tidemark.clock")
local ffi = require("ffi")
local numbers = require("tidemark.numbers")
local transactions = require("tidemark.transactions")

local now, sleep_until = clock.now, clock.sleep_until

local slices = {}

local own_kind, own_turn -- of a client's own transactions, and its number, in a suite that has a pace

-- Notes the kind of this client's own transactions, in a suite that has a pace.
function slices.own(kind) own_kind = kind end

-- Returns the number among those of its kind of the transaction that begins, in a suite that has a pace.
function slices.take_turn()
   local number = own_turn or background.turn(own_kind, now())
   own_turn = nil
   return number
end

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
function slices.retry(problem, body, ...)
   local began, tries, finished = now(), 0, false
   while not finished do
      if type(problem) ~= "table" or problem.errcode ~= sysbench.error.RESTART_EVENT then error(problem, 0) end
      tries = tries + 1
      transactions.require_hope("a transaction", tries, began, now(), problem)
      finished, problem = pcall(body, ...)
   end
end

-- Runs one transaction, again if the server has rolled it back. The loop is in `slices.retry`, which is rarely called:
-- LuaJIT does not compile a loop around another one, and interpreting it would cost a sixth more CPU per transaction.
local function finish_event(thread_id)
   local finished, problem = pcall(event, thread_id)
   if not finished then slices.retry(problem, event, thread_id) end
end

-- Returns the maximum number of events of this thread in one slice. A step that uses rows up distributes its events
-- evenly over the slices, so that they are balanced against those of the other servers.
local function most_in_slice(count)
   if sysbench.opt.events == 0 then return math.huge end
   return math.max(1, math.floor(sysbench.opt.events / background.own_threads(sysbench.opt.threads) / count))
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
-- second since `began`, whether there is more work, and the slowest event that ended in each second, in seconds. Warm-up transactions are counted here, but are not events of
-- sysbench.
local function work_until(deadline, most, began, thread_id, warming)
   local ended, more, done = began, true, 0
   local seconds, before, next_second = {}, 0, began + 1
   local slowest, longest = {}, 0
   while ended < deadline and done < most do
      local previous = ended
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
         slowest[#seconds + 1], longest = longest, 0
         before = close_seconds(seconds, before, done, ended - began)
         next_second = began + #seconds + 1
      end
      if ended - previous > longest then longest = ended - previous end
      done = done + 1
   end
   if done > before then
      seconds[#seconds + 1] = done - before
      slowest[#seconds] = longest
   end
   return ended, seconds, more, slowest
end

-- Writes what was printed before, kinds and slices. After the last slice, so that processing the output does not take
-- CPU time from a server.
local function report(lines)
   io.stdout:write(table.concat(lines) .. transactions.lines()) -- at once: other threads write too
   io.stdout:flush()
end

-- Returns the line with the slowest event of each of `count` seconds of a slice, in milliseconds; 0 without one.
local function longest_line(place, slowest, count)
   local parts = {}
   for second = 1, count do parts[second] = string.format("%.3f", (slowest[second] or 0) * 1000) end
   return string.format("tidemark: longest in slice %d of thread %d: %s\n", place, sysbench.tid, table.concat(parts, " "))
end

-- Works only in the slices of this server. Waiting is not part of an event, and so not of its latency.
function slices.run(thread_id)
   local turns, last = own_slices()
   local lines, most, before = {}, most_in_slice(#turns), 0
   for place, slice in ipairs(turns) do
      sleep_until(slice[1])
      local began = now()
      transactions.count(not slice[3], began, before)
      if not slice[3] then before = before + slice[2] - slice[1] end
      local ended, seconds, more, slowest = work_until(slice[2], most, began, thread_id, slice[3])
      lines[place] = string.format("tidemark: %s %d of thread %d from %.6f to %.6f: %s\n",
         slice[3] and "warm-up" or "slice", place, sysbench.tid, began, ended, table.concat(seconds, " "))
      if not slice[3] then lines[place] = lines[place] .. longest_line(place, slowest, #seconds) end
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
-- server's own time.
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

-- Works in the slices of this server as transactions arrive, or after the pauses of this thread: `due_after(moment)`
-- returns when the next transaction is due, given that the thread is free at `moment`.
function slices.run_arrivals(thread_id, due_after)
   next_due = due_after
   local turns, last = own_slices()
   local lines, from, counted_from = {}, 0, 0
   for place, slice in ipairs(turns) do
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
function slices.run_background(thread_id, kind, rate, work)
   local turns, last = own_slices()
   local due_next = rate > 0 and background.clock(kind, rate, thread_id, sysbench.opt.threads)
   local from, counted_from, due, done, latest = 0, 0, 0, 0, 0
   local pending
   local function carry_out(number)
      work(kind, number)
      background.ended(kind)
   end
   for _, slice in ipairs(turns) do
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

-- --- without slices, and counted passes

-- Works without pauses until sysbench ends it.
function slices.run_whole(thread_id)
   while ffi.C.sb_more_events(thread_id) do
      ffi.C.sb_event_start(thread_id)
      finish_event(thread_id)
      ffi.C.sb_event_stop(thread_id)
   end
   report({})
end

-- The first transactions of a counted pass, whose cost decides how many follow, and the seconds after which fewer decide:
-- two at least, as the first one may connect.
local SAMPLED, SAMPLE_SECONDS = 6, 10

-- The seconds between two reports of a counted pass, between two looks for an answer, and for which it is waited for.
local REPORT_SECONDS, LOOK_SECONDS, ANSWER_SECONDS = 10, 0.02, 60

local function say(...)
   io.stdout:write(string.format(...))
   io.stdout:flush()
end

-- Tells Tidemark the seconds that a transaction takes. Returns how many are to precede the marks, those that have ended
-- included, and how many are to be between them, from the file in which it answers.
local function ask_length(seconds, file)
   local deadline = now() + ANSWER_SECONDS
   local answer
   say("tidemark: counted pass: %.6f s a transaction\n", seconds)
   repeat
      if now() > deadline then error("Tidemark did not say how many transactions a counted pass has", 0) end
      sleep_until(now() + LOOK_SECONDS)
      answer = io.open(file)
   until answer
   local warm, counted = answer:read("*n", "*n")
   answer:close()
   return warm, counted
end

-- Runs one transaction of a counted pass, again with the same numbers if the server has rolled it back.
local function finish_counted(thread_id)
   numbers.begin()
   local finished, problem = pcall(event, thread_id)
   if not finished then
      slices.retry(problem, function()
         numbers.again()
         event(thread_id)
      end)
   end
end

-- Runs the first transactions. Returns how many there were, and the seconds of one: the mean of the later half, because
-- a server under callgrind translates its code when it first executes it.
local function sample(thread_id)
   local ends = {[0] = now()}
   repeat
      finish_counted(thread_id)
      ends[#ends + 1] = now()
   until #ends == SAMPLED or (#ends > 1 and ends[#ends] - ends[0] > SAMPLE_SECONDS)
   local half = math.floor(#ends / 2)
   return #ends, (ends[#ends] - ends[half]) / (#ends - half)
end

-- Runs fixed numbers of transactions between marks: statements at which the tool that runs the server writes what it
-- has counted. The first mark is warm-up of the mark itself. Between the second and the third is a mark alone, which is
-- subtracted; between the third and the fourth are the transactions and a mark. `mark()` sends one on the connection of
-- the transactions, and `file` is the path of the file that says how many these are.
function slices.run_counted(thread_id, mark, file)
   local began = now()
   local done, seconds = sample(thread_id)
   local warm, counted = ask_length(seconds, file)
   local reported = now()
   local function finish()
      finish_counted(thread_id)
      done = done + 1
      if now() - reported >= REPORT_SECONDS then
         reported = now()
         say("tidemark: counted pass at %d of %d after %.1f s\n", done, warm + counted, reported - began)
      end
   end
   for _ = done + 1, warm do finish() end
   for _ = 1, 3 do mark() end
   for _ = 1, counted do
      ffi.C.sb_event_start(thread_id)
      finish()
      ffi.C.sb_event_stop(thread_id)
   end
   mark()
end

return slices
