-- The module shared by the sysbench scripts of all suites: options, entry points, and what scripts call.
--
-- A suite's script begins with `local tidemark = require("tidemark")` and ends with `tidemark.script {...}`. Tidemark
-- sets LUA_PATH so that sysbench finds this file. To run a script by hand:
--
--   LUA_PATH="/path/to/suites/generators/?.lua;;" sysbench write_heavy.lua ... run
--
-- docs/suites.md explains what scripts can read and call. suites/generators/transcript.py and kinds.py parse the output
-- lines that begin with `tidemark:`.

local arrivals = require("tidemark.arrivals")
local background = require("tidemark.background")
local clock = require("tidemark.clock")
local numbers = require("tidemark.numbers")
local slices = require("tidemark.slices")
local statements = require("tidemark.statements")
local transactions = require("tidemark.transactions")

local tidemark = {}

-- The options that scripts read. A suite with a [scale] gets `scale` and `unit`, any other suite gets `tables`,
-- `table_size` and `table`.
local OPTIONS = {
   tables = {"Number of tables", 1},
   table_size = {"Rows loaded into each table", 10000},
   table = {"Table to load (prepare)", 1},
   scale = {"Number of units of the suite's scale", 1},
   unit = {"Unit of the scale to load; 0: create all tables and load those of fixed size (prepare)", 0},
   table_seed = {"Seed of the rows (prepare)", 1},
}

-- The options that this module alone reads; suites/generators/sysbench.py passes them.
local OWN_OPTIONS = {
   linger_ms = {"Milliseconds for which connections stay open at most, idle, after the last transaction", 0},
   walk_from = {"Rows that each thread has already used up, for steps that use rows up", 0},
   slice_ms = {"Length of a slice in milliseconds; 0: work without pauses", 0},
   slices = {"One character per slice: 0 wait, w warm up, 1 work", ""},
   slice_origin = {"Begin of the first slice in seconds of the monotonic clock", "0"},
   slice_gap_ms = {"Idle milliseconds at the end of each slice", 0},
   counted_file = {"File for which a counted pass waits: its transactions before the marks and between; empty: no pass", ""},
   mark = {"SQL statement that marks the begin and the end of a counted pass", ""},
   arrivals = {"Transactions that arrive in each second of work, over all threads; 0: each follows the one before", "0"},
   arrivals_seed = {"Seed of the arrivals", 1},
   background = {"Transactions of other connections beside each client, such as insert:2,delete:2 a second", ""},
}
-- --- random numbers (numbers.lua)

function tidemark.generator(seed) return numbers.generator(seed) end

function tidemark.hash(number) return numbers.hash(number) end

function tidemark.zipfian(n, s) return numbers.zipfian(n, s) end

function tidemark.walk(n, rows) return numbers.walk(n, rows) end

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
-- --- slices (slices.lua)

function tidemark.retry(problem, body, ...) return slices.retry(problem, body, ...) end

-- --- a suite's script

local function options_with(own)
   local all = {}
   for _, options in ipairs({OPTIONS, OWN_OPTIONS, own or {}}) do
      for name, option in pairs(options) do all[name] = option end
   end
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
   local connection, first_event, beside, beside_rate, own_kind

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
      if sysbench.opt.counted_file ~= "" then numbers.draw_reproducibly(sysbench.opt.table_seed) end
      local driver = sysbench.sql.driver()
      connection = driver:connect()
      if suite.kinds then transactions.start(suite.kinds, clock.now, connection, driver:name()) end
      if rate() > 0 then arrivals.start(rate()) end
      beside, beside_rate = background.start(sysbench.opt.background, suite.pace, sysbench.tid,
         sysbench.opt.threads, clock.now)
      own_kind = suite.pace and suite.kind()
      if own_kind then slices.own(own_kind) end
      suite.start(connection, driver:name())
   end

   local transaction = suite.event
   local function run(kind, number)
      if not first_event then first_event = clock.now() end
      transaction(kind, number)
   end

   function event()
      if not own_kind then return run() end
      run(own_kind, slices.take_turn())
      background.ended(own_kind)
   end

   function thread_run(thread_id)
      if sysbench.opt.counted_file ~= "" then
         slices.run_counted(thread_id, function() connection:query(sysbench.opt.mark) end, sysbench.opt.counted_file)
      elseif beside then
         if sysbench.opt.slice_ms > 0 then slices.run_background(thread_id, beside, beside_rate, run) end
      elseif rate() > 0 then
         slices.run_arrivals(thread_id, arrivals.take)
      elseif suite.pause and suite.pause() then
         slices.run_arrivals(thread_id, function(moment) return moment + suite.pause() end)
      elseif sysbench.opt.slice_ms > 0 then
         slices.run(thread_id)
      else
         slices.run_whole(thread_id)
      end
      background.meet()
   end

   -- Prints the begin and end of this thread, and keeps its connection open until the costs of the server's processes
   -- have been read, which end with their connections.
   function thread_done()
      local ended = clock.now()
      io.stdout:write(string.format("tidemark: thread %d from %.6f to %.6f\n",
         sysbench.tid, first_event or ended, ended))
      io.stdout:flush()
      clock.linger()
      connection:disconnect()
   end
end

return tidemark
