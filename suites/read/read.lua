-- The 22 read microbenchmarks for sysbench 1.0: points, ranges, and transactions that only read.
--
--   sysbench read.lua --table=N ... prepare              loads table N
--   sysbench read.lua --workload=NAME ... run            runs one of the workloads below

local tidemark = require("tidemark")
local sbtest = require("sbtest")

local POINT_SELECTS = 10

local statements, n -- of one thread, set by `start`

local function ids(draw)
   local found = {}
   for i = 1, n do found[i] = draw(i) end
   return unpack(found)
end

local function first_of_hot() return math.floor(sysbench.opt.table_size / 2) end

local function in_list()
   return "(" .. string.rep("?, ", n - 1) .. "?)", (function()
      local types = {}
      for i = 1, n do types[i] = "int" end
      return types
   end)()
end

local function points_text()
   local marks, types = in_list()
   local text = string.format("SELECT %s FROM sbtest%%d WHERE %s IN %s", sysbench.opt.columns, sysbench.opt.key, marks)
   return {text, types}
end

local function range_text()
   local text = "SELECT %s FROM sbtest%%d WHERE %s BETWEEN ? AND ?"
   return {string.format(text, sysbench.opt.columns, sysbench.opt.key), {"int", "int"}}
end

local function points(draw)
   return function() statements.points[sbtest.any_table()]:query(ids(draw)) end
end

-- A transaction of ten points and the ranges called `names`, of n ids each, on one table.
local function read_only(names)
   return function()
      local t = sbtest.any_table()
      statements.begin:execute()
      for _ = 1, POINT_SELECTS do statements.point[t]:query(sbtest.uniform_id()) end
      for _, name in ipairs(names) do
         local from = sbtest.uniform_id()
         statements[name][t]:query(from, from + n - 1)
      end
      statements.commit:execute()
   end
end

-- name of the workload -> {function that returns its statements, function that runs one transaction}
local WORKLOADS = {
   ["points"] = {
      function() return {points = points_text()} end,
      points(sbtest.uniform_id),
   },
   ["hot-points"] = {
      function() return {points = points_text()} end,
      points(function(i) return first_of_hot() + i end),
   },
   ["range"] = {
      function() return {range = range_text()} end,
      function()
         local from = sbtest.uniform_id()
         statements.range[sbtest.any_table()]:query(from, from + n)
      end,
   },
   ["scan"] = {
      function() return {scan = {"SELECT * FROM sbtest%d WHERE LENGTH(c) < 0", {}}} end,
      function() statements.scan[sysbench.tid % sysbench.opt.tables + 1]:query() end,
   },
   ["read-only"] = {
      function() return sbtest.READS end,
      read_only(sbtest.RANGES),
   },
   ["count"] = {
      function() return {count = {"SELECT COUNT(c) FROM sbtest%d WHERE id BETWEEN ? AND ?", {"int", "int"}}} end,
      function()
         local from = sbtest.uniform_id()
         statements.count[sbtest.any_table()]:query(from, from + n - 1)
      end,
   },
}
for _, name in ipairs(sbtest.RANGES) do
   WORKLOADS[name] = {
      function() return {point = sbtest.READS.point, [name] = sbtest.READS[name]} end,
      read_only({name}),
   }
end

local transaction

local function chosen()
   local workload = WORKLOADS[sysbench.opt.workload]
   if not workload then error("unknown workload: " .. sysbench.opt.workload) end
   n = sysbench.opt.n
   return workload
end

local function start(connection)
   local workload = chosen()
   statements, transaction = sbtest.prepared(connection, workload[1]()), workload[2]
end

tidemark.script {
   options = {
      workload = {"Workload to run", "points"},
      n = {"Ids of a list, or of a range", 1},
      columns = {"Columns that points and ranges select", "c"},
      key = {"Column by which points and ranges select: id or k", "id"},
   },
   prepare = sbtest.load,
   start = start,
   event = function() transaction() end,
}

-- `statements`: the command with which Tidemark asks for the statements whose plans it stores (plans = true).
sysbench.cmdline.commands.statements = {function() sbtest.print_statements(chosen()[1](), sysbench.opt.n) end}
