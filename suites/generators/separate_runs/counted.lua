-- A counted pass of a script that knows nothing of Tidemark: sysbench is given this one, which loads it.
--
-- The script's own events, functions and options stay as they are. What is added are marks on its connection, and random
-- numbers that repeat. suites/generators/separate_runs/plain_sysbench.py sets the variables.

local ffi = require("ffi")
local slices = require("tidemark.slices")

ffi.cdef [[
void srandom(unsigned int seed);
int sb_rand_init(void);
]]

local script, length_file = os.getenv("TIDEMARK_SCRIPT"), os.getenv("TIDEMARK_COUNTED_FILE")
local statement, seed = os.getenv("TIDEMARK_MARK"), tonumber(os.getenv("TIDEMARK_SEED"))

-- The one that the script has opened by sysbench's own module. Scripts of 0.5 have one that only `db_query` knows.
local connection, is_another

local driver_of = sysbench.sql.driver
function sysbench.sql.driver(...)
   local driver = driver_of(...)
   local noting = {}
   function noting.name() return driver:name() end
   function noting.connect()
      is_another = connection ~= nil
      connection = driver:connect()
      return connection
   end
   return setmetatable(noting, {__index = driver})
end

local function mark()
   if is_another then
      error("a thread of the script connects more than once, and a counted pass has one connection", 0)
   end
   if connection then connection:query(statement) else db_query(statement) end
end

-- Draws the same numbers in every pass, in the distributions of sysbench. By itself it draws one of two sequences with
-- one seed, as its threads are seeded by random(3) in an order that differs from run to run, and its unique numbers
-- differ always. Scripts seed Lua's generator by the time.
local seed_lua = math.randomseed
function math.randomseed() end
local function draw_reproducibly()
   ffi.C.srandom(seed)
   ffi.C.sb_rand_init()
   seed_lua(seed)
end

local loop = thread_run
assert(loadfile(script))()
local own_loop, connect, transaction = thread_run ~= loop, thread_init, event

function thread_init(thread_id)
   draw_reproducibly()
   if connect then connect(thread_id) end
end

function event(thread_id)
   local finished, problem = pcall(transaction, thread_id)
   if finished then
      if problem then error("the script ends by itself, before a counted pass does", 0) end
      return
   end
   local prepare_again = sysbench.hooks.before_restart_event
   if prepare_again and type(problem) == "table" and problem.errcode == sysbench.error.RESTART_EVENT then
      prepare_again(problem)
   end
   error(problem, 0)
end

function thread_run(thread_id)
   if own_loop then error("the script has a thread_run of its own, whose events no counted pass can tell apart", 0) end
   slices.run_counted(thread_id, mark, length_file)
end
