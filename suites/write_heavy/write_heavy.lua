-- The ten write-heavy workloads for sysbench 1.0, for its drivers pgsql and mysql.
--
--   sysbench write_heavy.lua --table=N ... prepare       loads table N; with one process per table, the rows depend
--                                                        only on the seed, not on the number of threads
--   sysbench write_heavy.lua --workload=NAME ... run     runs one of the workloads below
--
-- Rows are drawn by Tidemark's own generator. sysbench's generator draws `k` from a skewed distribution in 1.0 and from
-- a uniform one on master, and 1.0 seeds it only for `run`, so that two loads with the same seed would differ.

local tidemark = require("tidemark")
local sbtest = require("sbtest")

local INLIST = 10
local POINT_SELECTS = 10

-- State of one thread, set by `start`.
local statements, zipf, walks

local uniform_id, any_table = sbtest.uniform_id, sbtest.any_table

-- Statements are {text, types of the parameters: "int", or the length of a string}; most are those of sbtest.lua.
local inlist_marks = string.rep("?, ", INLIST - 1) .. "?"
local inlist_types = {120}
for _ = 1, INLIST do inlist_types[#inlist_types + 1] = "int" end

local UPDATE_INLIST = {"UPDATE sbtest%d SET c = ? WHERE id IN (" .. inlist_marks .. ")", inlist_types}
local INSERT_NEXT = {"INSERT INTO sbtest%d (k, c, pad) VALUES (?, ?, ?)", {"int", 120, 60}}
local UPDATE_INDEX, UPDATE_NONINDEX = sbtest.WRITES.update_index, sbtest.WRITES.update_nonindex

-- Executes the statement `name` on table t. A string argument is a format of sysbench.rand.string.
local function execute(name, t, ...) statements[name][t]:execute(...) end

local function query(name, t, ...) statements[name][t]:query(...) end

local function four_writes(t)
   local id = uniform_id()
   execute("update_index", t, uniform_id())
   execute("update_nonindex", t, sbtest.C, uniform_id())
   execute("delete", t, id)
   execute("insert_same", t, id, uniform_id(), sbtest.C, sbtest.PAD)
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
   for _, name in ipairs(sbtest.RANGES) do
      local from = uniform_id()
      query(name, t, from, from + sysbench.opt.range_size - 1)
   end
   four_writes(t)
   statements.commit:execute()
end

-- name of the workload -> {its statements by name, function that runs one transaction}
local TESTS = {
   ["update-inlist"] = {{update_inlist = UPDATE_INLIST}, function()
      local ids = {}
      for i = 1, INLIST do ids[i] = uniform_id() end
      execute("update_inlist", any_table(), sbtest.C, unpack(ids))
   end},
   ["update-index"] = {{update_index = UPDATE_INDEX}, function()
      execute("update_index", any_table(), uniform_id())
   end},
   ["update-nonindex"] = {{update_nonindex = UPDATE_NONINDEX}, function()
      execute("update_nonindex", any_table(), sbtest.C, uniform_id())
   end},
   ["update-one"] = {{update_nonindex = UPDATE_NONINDEX}, function()
      execute("update_nonindex", any_table(), sbtest.C, 1)
   end},
   ["update-zipf"] = {{update_nonindex = UPDATE_NONINDEX}, function()
      execute("update_nonindex", any_table(), sbtest.C, zipf())
   end},
   ["write-only"] = {sbtest.WRITES, write_only},
   ["read-write"] = {sbtest.READS_AND_WRITES, read_write},
   ["delete"] = {{delete = sbtest.WRITES.delete}, function()
      local t = any_table()
      execute("delete", t, walks[t]())
   end},
   ["insert"] = {{insert_next = INSERT_NEXT}, function()
      execute("insert_next", any_table(), uniform_id(), sbtest.C, sbtest.PAD)
   end},
}

local function start(connection)
   local test = TESTS[sysbench.opt.workload]
   if not test then error("unknown test: " .. sysbench.opt.workload) end
   zipf = tidemark.zipfian(sysbench.opt.table_size, sysbench.opt.zipf_exponent)
   walks = {}
   for t = 1, sysbench.opt.tables do walks[t] = tidemark.walk(sysbench.opt.table_size) end
   statements = sbtest.prepared(connection, test[1])
end

tidemark.script {
   options = {
      workload = {"Workload to run", "update-index"},
      range_size = {"Number of ids in a range of the read-write workload", 100},
      zipf_exponent = {"Exponent of the Zipf distribution of ids in update-zipf", 0.8},
   },
   prepare = sbtest.load,
   start = start,
   event = function() TESTS[sysbench.opt.workload][2]() end,
}
