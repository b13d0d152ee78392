-- sysbench's oltp_read_write transaction for levels of clients: 20 queries, of which each group draws its table anew.
--
--   sysbench oltp_sweep.lua --table=N ... prepare       loads table N
--   sysbench oltp_sweep.lua --threads=N ... run         runs transactions

local tidemark = require("tidemark")
local sbtest = require("sbtest")

local POINT_SELECTS = 10

local statements, draw_id -- of one thread, set by `start`

-- 75 % of the ids from 1 % of the table, in its middle: sysbench 1.0's own default distribution.
local function special_id() return sysbench.rand.special(1, sysbench.opt.table_size) end

local IDS = {uniform = sbtest.uniform_id, special = special_id}

local function start(connection)
   draw_id = IDS[sysbench.opt.distribution]
   if not draw_id then error("unknown distribution: " .. sysbench.opt.distribution) end
   statements = sbtest.prepared(connection, sbtest.READS_AND_WRITES)
end

local function transaction()
   statements.begin:execute()
   local t = sbtest.any_table()
   for _ = 1, POINT_SELECTS do statements.point[t]:query(draw_id()) end
   for _, name in ipairs(sbtest.RANGES) do
      local from = draw_id()
      statements[name][sbtest.any_table()]:query(from, from + sysbench.opt.range_size - 1)
   end
   statements.update_index[sbtest.any_table()]:execute(draw_id())
   statements.update_nonindex[sbtest.any_table()]:execute(sbtest.C, draw_id())
   local id
   t, id = sbtest.any_table(), draw_id()
   statements.delete[t]:execute(id)
   statements.insert_same[t]:execute(id, sbtest.uniform_id(), sbtest.C, sbtest.PAD)
   statements.commit:execute()
end

tidemark.script {
   options = {
      range_size = {"Number of ids in a range", 100},
      distribution = {"Distribution of ids: uniform or special", "uniform"},
   },
   prepare = sbtest.load,
   start = start,
   event = transaction,
}
