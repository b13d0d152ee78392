-- Connections that stay open, for the memory that each of them costs (docs/connections.md).
--
--   sysbench connections.lua --table=N ... prepare       loads table N
--   sysbench connections.lua --threads=N ... run         opens N connections and holds them until it is ended
--
-- Every thread opens one connection and sends SELECT 1. With --transactions it then prepares sysbench's
-- oltp_read_write on all tables, runs so many transactions of it, and idles.

local ffi = require("ffi")
local clock = require("tidemark.clock")
local tidemark = require("tidemark")
local sbtest = require("sbtest")

ffi.cdef [[int getppid(void);]]

local POINT_SELECTS, RANGE = 10, 100
local SECOND = 1000000 -- in microseconds

local driver -- kept, because what is collected closes

local function report(...)
   io.stdout:write(string.format(...))
   io.stdout:flush()
end

-- Sends a statement that returns rows.
local function ask(connection, text) connection:query(text):free() end

-- Reads every page of tables and indexes: what the server caches for all connections is no connection's own.
local function scan(connection)
   for t = 1, sysbench.opt.tables do
      ask(connection, string.format("SELECT MAX(pad) FROM sbtest%d", t))
      ask(connection, string.format("SELECT COUNT(k) FROM sbtest%d WHERE k >= 0", t))
   end
end

-- Rows at the beginning of each table, so that the caches of all servers hold those that are used.
local function used_id() return sysbench.rand.uniform(1, math.min(sysbench.opt.used_rows, sysbench.opt.table_size)) end

-- Returns the statements on every table, and how many there are. BEGIN and COMMIT are not prepared: not every server
-- can do that.
local function prepared(connection)
   local statements, count = {}, 0
   for _, some in ipairs({sbtest.READS, sbtest.WRITES}) do
      for name, description in pairs(some) do
         statements[name] = {}
         for t = 1, sysbench.opt.tables do
            statements[name][t] = tidemark.statement(connection, string.format(description[1], t), description[2])
            count = count + 1
         end
      end
   end
   return statements, count
end

-- One transaction on table `t`, as of oltp_read_write.
local function transaction(connection, statements, t)
   connection:query("BEGIN")
   for _ = 1, POINT_SELECTS do statements.point[t]:query(used_id()) end
   for _, name in ipairs(sbtest.RANGES) do
      local from = used_id()
      statements[name][t]:query(from, from + RANGE - 1)
   end
   statements.update_index[t]:execute(used_id())
   statements.update_nonindex[t]:execute(sbtest.C, used_id())
   local id = used_id()
   statements.delete[t]:execute(id)
   statements.insert_same[t]:execute(id, sbtest.uniform_id(), sbtest.C, sbtest.PAD)
   connection:query("COMMIT")
end

-- The same after the server has rolled it back, because of a deadlock.
local function again(connection, statements, t)
   connection:query("ROLLBACK")
   transaction(connection, statements, t)
end

-- Runs transactions on all tables in turn.
local function work(connection, statements)
   for number = 1, sysbench.opt.transactions do
      local t = (number + sysbench.tid) % sysbench.opt.tables + 1
      local finished, problem = pcall(transaction, connection, statements, t)
      if not finished then tidemark.retry(problem, again, connection, statements, t) end
   end
end

tidemark.script {
   options = {
      transactions = {"Transactions of every connection before it idles; 0: none", 0},
      used_rows = {"Rows of each table that transactions use", 2000},
      scan = {"Whether the connection first reads all tables", false},
   },
   prepare = sbtest.load,
   start = function() end,
   event = function() end,
}

-- In place of what tidemark.script defines: threads connect after all of them have loaded this script, and hold what
-- they opened until sysbench is ended.
function thread_init() end

function thread_run()
   local parent, began = ffi.C.getppid(), clock.now()
   driver = sysbench.sql.driver()
   local connection = driver:connect()
   ask(connection, "SELECT 1")
   report("tidemark: connected %d from %.6f to %.6f\n", sysbench.tid, began, clock.now())
   if sysbench.opt.scan then scan(connection) end
   local count = 0
   if sysbench.opt.transactions > 0 then
      local statements
      statements, count = prepared(connection)
      work(connection, statements)
   end
   report("tidemark: holding %d with %d prepared statements\n", sysbench.tid, count)
   -- A connection that idles does not notice that Tidemark was killed: then the first thread ends all of them.
   while sysbench.tid ~= 0 do ffi.C.usleep(3600 * SECOND) end
   while ffi.C.getppid() == parent do ffi.C.usleep(SECOND) end
   os.exit(1)
end

function thread_done() end
