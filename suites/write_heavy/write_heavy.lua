-- The ten write-heavy workloads for sysbench 1.0, for its drivers pgsql and mysql.
--
--   sysbench write_heavy.lua --table=N ... prepare       loads table N; with one process per table, the rows depend
--                                                        only on the seed, not on the number of threads
--   sysbench write_heavy.lua --workload=NAME ... run     runs one of the workloads below
--
-- Rows are drawn by Tidemark's own generator. sysbench's generator draws `k` from a skewed distribution in 1.0 and from
-- a uniform one on master, and 1.0 seeds it only for `run`, so that two loads with the same seed would differ.

local tidemark = require("tidemark")

local INLIST = 10
local POINT_SELECTS = 10
local C_FORMAT = "###########-###########-###########-###########-###########-"
   .. "###########-###########-###########-###########-###########"
local PAD_FORMAT = "###########-###########-###########-###########-###########"

-- State of one thread, set by `start`.
local statements, zipf, walks

local function uniform_id() return sysbench.rand.uniform(1, sysbench.opt.table_size) end

local function any_table() return sysbench.rand.uniform(1, sysbench.opt.tables) end

-- name -> {text, types of the parameters: "int", or the length of a string}
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

local function prepare_all(connection, names)
   statements = {begin = tidemark.statement(connection, "BEGIN"), commit = tidemark.statement(connection, "COMMIT")}
   for _, name in ipairs(names) do
      local text, types = STATEMENTS[name][1], STATEMENTS[name][2]
      statements[name] = {}
      for t = 1, sysbench.opt.tables do
         statements[name][t] = tidemark.statement(connection, string.format(text, t), types)
      end
   end
end

-- Executes the statement `name` on table t. A string argument is a format of sysbench.rand.string.
local function execute(name, t, ...) statements[name][t]:execute(...) end

local function query(name, t, ...) statements[name][t]:query(...) end

local function four_writes(t)
   local id = uniform_id()
   execute("update_index", t, uniform_id())
   execute("update_nonindex", t, C_FORMAT, uniform_id())
   execute("delete", t, id)
   execute("insert_same", t, id, uniform_id(), C_FORMAT, PAD_FORMAT)
end

local function write_only()
   statements.begin:execute()
   four_writes(any_table())
   statements.commit:execute()
end

local function read_write()
   local t = any_table()
   statements.begin:execute()
   for _ = 1, POINT_SELECTS do query("point", t, uniform_id()) end
   for _, name in ipairs({"simple_range", "sum_range", "order_range", "distinct_range"}) do
      local from = uniform_id()
      query(name, t, from, from + sysbench.opt.range_size - 1)
   end
   four_writes(t)
   statements.commit:execute()
end

local WRITES = {"update_index", "update_nonindex", "delete", "insert_same"}
local READS_AND_WRITES = {
   "point", "simple_range", "sum_range", "order_range", "distinct_range",
   "update_index", "update_nonindex", "delete", "insert_same",
}

-- name of the workload -> {names of its statements, function that runs one transaction}
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

local function start(connection)
   local test = TESTS[sysbench.opt.workload]
   if not test then error("unknown test: " .. sysbench.opt.workload) end
   zipf = tidemark.zipfian(sysbench.opt.table_size, sysbench.opt.zipf_exponent)
   walks = {}
   for t = 1, sysbench.opt.tables do walks[t] = tidemark.walk(sysbench.opt.table_size) end
   prepare_all(connection, test[1])
end

-- Groups of 11 digits separated by hyphens, as in sysbench's own c (10 groups) and pad (5 groups).
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

local function load_table(connection, engine)
   local draw = tidemark.generator(sysbench.opt.table_seed + sysbench.opt.table)
   local name = "sbtest" .. sysbench.opt.table
   local id = "BIGINT NOT NULL AUTO_INCREMENT"
   if engine == "pgsql" then id = "BIGINT GENERATED BY DEFAULT AS IDENTITY" end
   connection:query(string.format([[CREATE TABLE %s (id %s, k INTEGER NOT NULL DEFAULT 0,
      c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id))]], name, id))
   connection:bulk_insert_init("INSERT INTO " .. name .. " (k, c, pad) VALUES")
   for _ = 1, sysbench.opt.table_size do
      connection:bulk_insert_next(string.format("(%d, '%s', '%s')", draw(sysbench.opt.table_size) + 1,
         string.format(C_DIGITS, digits(draw, 10)), string.format(PAD_DIGITS, digits(draw, 5))))
   end
   connection:bulk_insert_done()
   connection:query(string.format("CREATE INDEX k_%d ON %s (k)", sysbench.opt.table, name))
end

tidemark.script {
   options = {
      workload = {"Workload to run", "update-index"},
      range_size = {"Number of ids in a range of the read-write workload", 100},
      zipf_exponent = {"Exponent of the Zipf distribution of ids in update-zipf", 0.8},
   },
   prepare = load_table,
   start = start,
   event = function() TESTS[sysbench.opt.workload][2]() end,
}
