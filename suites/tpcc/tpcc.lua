-- The suite tpcc, derived from TPC-C 5.11 of the Transaction Processing Performance Council.
--
--   sysbench tpcc.lua --scale=W --unit=N ... prepare    loads unit N: 0 all tables and the items, N > 0 warehouse N
--   sysbench tpcc.lua --scale=W ... finish              indexes, foreign keys, statistics
--   sysbench tpcc.lua --scale=W --threads=T ... run     runs the mix on W warehouses

local tidemark = require("tidemark")
local draws = require("draws")
local tables = require("tables")
local loading = require("loading")
local terminals = require("terminals")

local function prepare(connection, engine)
   if sysbench.opt.unit == 0 then
      tables.create(connection, engine)
      loading.items(connection)
   else
      loading.warehouse(connection, sysbench.opt.unit)
   end
end

local uniform, next_card, next_home -- of one thread
local kind, last_kind -- of its next transaction, if it is known already, and of the one before
local INPUTS = {
   ["new-order"] = draws.new_order,
   ["payment"] = draws.payment,
   ["order-status"] = draws.order_status,
   ["delivery"] = draws.delivery,
   ["stock-level"] = function(draw, home)
      return draws.stock_level(draw, home, sysbench.tid % draws.DISTRICTS + 1)
   end,
}

local function start(connection)
   uniform = sysbench.rand.uniform
   next_card = draws.deck(uniform)
   next_home = draws.home_warehouses(uniform, sysbench.tid, sysbench.opt.threads, sysbench.opt.scale)
   terminals.start(connection)
end

local function next_kind() return sysbench.opt.kind == "" and next_card() or sysbench.opt.kind end

-- Thinking about the transaction before, and keying in the next one, in seconds; nil unless terminals have people.
local function pause()
   if sysbench.opt.terminals ~= "people" then return nil end
   kind = kind or next_kind()
   local thinking = last_kind and draws.thinking(1 - sysbench.rand.uniform_double(), last_kind) or 0
   return thinking + draws.PEOPLE[kind][1]
end

local function transaction()
   local chosen = kind or next_kind()
   kind, last_kind = nil, chosen
   local input = INPUTS[chosen](uniform, next_home(), sysbench.opt.scale)
   tidemark.transaction(chosen, terminals.TRANSACTIONS[chosen], input)
end

local kinds = {}
for place, card in ipairs(draws.MIX) do kinds[place] = card[1] end

tidemark.script {
   options = {
      kind = {"The only kind of transaction to run; empty: the mix", ""},
      terminals = {"Who sits at the terminals: programs, which do not wait, or people, who key in and think", "programs"},
   },
   prepare = prepare,
   finish = tables.finish,
   kinds = kinds,
   start = start,
   event = transaction,
   pause = pause,
}
