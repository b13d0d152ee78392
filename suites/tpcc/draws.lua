-- What TPC-C draws at random: keys, names, and the inputs of the five transactions (clauses 2.1.6, 2.4.1 to 2.8.1).
--
--   local draws = require("draws")
--
-- Every function gets `uniform(least, most)`, a source of uniform integers: a seeded one for loading, sysbench's for
-- running.

local draws = {}

draws.DISTRICTS = 10 -- of a warehouse
draws.CUSTOMERS = 3000 -- of a district, and as many loaded orders
draws.ITEMS = 100000
draws.LAST_NAMES = 1000

-- The constants C of NURand, the same for every version and session. For last names the one of the run differs from
-- the one of the load by 65 to 119, but not by 96 or 112 (clause 2.1.6.1).
draws.C_LAST_LOAD = 157
draws.C_LAST_RUN = 244
draws.C_CUSTOMER = 259
draws.C_ITEM = 7911

local bit = require("bit")

-- Non-uniform integers from x to y, of which some are frequent (clause 2.1.6).
function draws.nurand(uniform, a, c, x, y)
   return (bit.bor(uniform(0, a), uniform(x, y)) + c) % (y - x + 1) + x
end

function draws.customer(uniform) return draws.nurand(uniform, 1023, draws.C_CUSTOMER, 1, draws.CUSTOMERS) end

function draws.item(uniform) return draws.nurand(uniform, 8191, draws.C_ITEM, 1, draws.ITEMS) end

local SYLLABLES = {[0] = "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

-- The last name of a number from 0 to 999: a syllable for each of its digits (clause 4.3.2.3).
function draws.last_name(number)
   return SYLLABLES[math.floor(number / 100)] .. SYLLABLES[math.floor(number / 10) % 10] .. SYLLABLES[number % 10]
end

-- A last name, with the constant of the load or of the run.
function draws.last(uniform, c) return draws.last_name(draws.nurand(uniform, 255, c, 0, draws.LAST_NAMES - 1)) end

-- Shuffles `list` in place: R. Durstenfeld, "Algorithm 235: Random permutation", CACM 7(7), 1964.
function draws.shuffle(uniform, list)
   for i = #list, 2, -1 do
      local j = uniform(1, i)
      list[i], list[j] = list[j], list[i]
   end
   return list
end

-- --- which transaction comes next

-- Cards of a deck, in percent of all transactions (clause 5.2.4.2: at least 43 payments and 4 of each of the last three).
draws.MIX = {{"new-order", 45}, {"payment", 43}, {"order-status", 4}, {"delivery", 4}, {"stock-level", 4}}

-- Returns a function that gives one card after the other of a deck of 100, which is shuffled whenever it is used up.
function draws.deck(uniform)
   local cards, at = {}, 0
   for _, kind in ipairs(draws.MIX) do
      for _ = 1, kind[2] do cards[#cards + 1] = kind[1] end
   end
   return function()
      if at % #cards == 0 then
         draws.shuffle(uniform, cards)
         at = 0
      end
      at = at + 1
      return cards[at]
   end
end

-- --- inputs of the transactions

-- Returns a function that gives the warehouse of the next transaction of a thread, which is numbered from 0. Warehouses
-- are divided among the threads: of T threads, thread t works on warehouses t + 1, t + 1 + T and so on. Where there are
-- more threads than warehouses, several work on one.
function draws.home_warehouses(uniform, thread, threads, warehouses)
   local others = math.max(0, math.floor((warehouses - thread - 1) / threads))
   return function() return (thread + threads * uniform(0, others)) % warehouses + 1 end
end

-- A warehouse other than `home`; `home` if it is the only one.
function draws.other_warehouse(uniform, home, warehouses)
   if warehouses == 1 then return home end
   local other = uniform(1, warehouses - 1)
   return other < home and other or other + 1
end

-- A line's order by its stock row. All transactions lock stock in this order, so that no two of them wait in a circle.
local function by_stock(one, other)
   if one.warehouse ~= other.warehouse then return one.warehouse < other.warehouse end
   return one.item < other.item
end

-- Clause 2.4.1: district, customer, and 5 to 15 lines, of which 1 in 100 is supplied by another warehouse. 1 order in
-- 100 ends with an item that does not exist, and rolls back; it is the last line, and all others are sorted.
function draws.new_order(uniform, home, warehouses)
   local input = {
      warehouse = home,
      district = uniform(1, draws.DISTRICTS),
      customer = draws.customer(uniform),
      rolls_back = uniform(1, 100) == 1,
      all_local = 1,
      lines = {},
   }
   local count = uniform(5, 15)
   for number = 1, count do
      local line = {item = draws.item(uniform), warehouse = home, quantity = uniform(1, 10)}
      if uniform(1, 100) == 1 then line.warehouse = draws.other_warehouse(uniform, home, warehouses) end
      if line.warehouse ~= home then input.all_local = 0 end
      if not (input.rolls_back and number == count) then input.lines[#input.lines + 1] = line end
   end
   table.sort(input.lines, by_stock)
   if input.rolls_back then
      input.lines[count] = {item = draws.ITEMS + 1, warehouse = home, quantity = 1}
   end
   return input
end

-- A customer by last name in 60 of 100 cases, else by number (clauses 2.5.1.2 and 2.6.1.2).
local function name_or_number(uniform, input)
   if uniform(1, 100) <= 60 then
      input.last = draws.last(uniform, draws.C_LAST_RUN)
   else
      input.customer = draws.customer(uniform)
   end
   return input
end

-- Clause 2.5.1: an amount in cents, and a customer who lives in another warehouse in 15 of 100 cases.
function draws.payment(uniform, home, warehouses)
   local input = {
      warehouse = home,
      district = uniform(1, draws.DISTRICTS),
      amount = uniform(100, 500000),
   }
   input.customer_warehouse, input.customer_district = home, input.district
   if uniform(1, 100) > 85 and warehouses > 1 then
      input.customer_warehouse = draws.other_warehouse(uniform, home, warehouses)
      input.customer_district = uniform(1, draws.DISTRICTS)
   end
   return name_or_number(uniform, input)
end

-- Clause 2.6.1.
function draws.order_status(uniform, home)
   return name_or_number(uniform, {customer_warehouse = home, customer_district = uniform(1, draws.DISTRICTS)})
end

-- Clause 2.7.1.
function draws.delivery(uniform, home) return {warehouse = home, carrier = uniform(1, 10)} end

-- Clause 2.8.1: the district is the terminal's own.
function draws.stock_level(uniform, home, district)
   return {warehouse = home, district = district, threshold = uniform(10, 20)}
end

-- --- keying and thinking

-- Seconds for which a person keys the input, and the mean of those for which they think (clause 5.2.5.7).
draws.PEOPLE = {
   ["new-order"] = {18, 12},
   ["payment"] = {3, 12},
   ["order-status"] = {2, 10},
   ["delivery"] = {2, 5},
   ["stock-level"] = {2, 5},
}

-- Seconds to think after a transaction: negative exponential, cut at ten means (clause 5.2.5.4). `fraction` is uniform
-- in (0, 1].
function draws.thinking(fraction, kind)
   local mean = draws.PEOPLE[kind][2]
   return math.min(-math.log(fraction) * mean, 10 * mean)
end

return draws
