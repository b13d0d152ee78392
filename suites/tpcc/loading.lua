-- Fills the nine tables as clause 4.3.3 says.
--
--   local loading = require("loading")
--
-- Every row depends on the suite's seed and the number of its warehouse alone, times included. Random strings are
-- pieces of one random text per warehouse.

local tidemark = require("tidemark")
local draws = require("draws")

local loading = {}

local LOADED_AT = "2026-01-01 00:00:00" -- of every row
local DELIVERED = math.floor(draws.CUSTOMERS * 0.7) -- orders of a district: 2,100, and 900 are new
local PAID = 10 -- by every customer
local ORIGINAL = "ORIGINAL"

local LETTERS_AND_DIGITS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
local TEXT = 60000 -- characters, from which strings are cut

-- What a part of the data is drawn from: `uniform`, and `text(least, most)`, a string of a random length.
local function source(seed)
   local draw = tidemark.generator(seed)
   local function uniform(least, most) return least + draw(most - least + 1) end
   local letters = {}
   for i = 1, TEXT do
      local place = uniform(1, #LETTERS_AND_DIGITS)
      letters[i] = LETTERS_AND_DIGITS:sub(place, place)
   end
   local text = table.concat(letters)
   return {
      uniform = uniform,
      text = function(least, most)
         local length = least == most and least or uniform(least, most)
         local from = 1 + draw(TEXT - length)
         return text:sub(from, from + length - 1)
      end,
   }
end

-- Returns a function that says, `rows` times, whether the next row is one of a tenth that is chosen at random: exactly
-- a tenth, by D. Knuth, The Art of Computer Programming 2, algorithm 3.4.2 S.
local function tenth_of(from, rows)
   local wanted, left = math.floor(rows / 10), rows
   return function()
      local chosen = from.uniform(1, left) <= wanted
      left = left - 1
      if chosen then wanted = wanted - 1 end
      return chosen
   end
end

-- i_data or s_data (clauses 4.3.3.1): 26 to 50 characters, of which 8 are ORIGINAL if it is `original`.
local function data(from, original)
   local text = from.text(26, 50)
   if not original then return text end
   local at = from.uniform(0, #text - #ORIGINAL)
   return text:sub(1, at) .. ORIGINAL .. text:sub(at + #ORIGINAL + 1)
end

local function zip(from) return string.format("%04d11111", from.uniform(0, 9999)) end

-- Two streets, city, state and zip, in SQL.
local function address(from)
   return string.format("'%s', '%s', '%s', '%s', '%s'", from.text(10, 20), from.text(10, 20), from.text(10, 20),
      from.text(2, 2):upper(), zip(from))
end

-- Inserts what `rows(insert)` gives to its argument, each time one row in SQL.
local function fill(connection, target, rows)
   connection:bulk_insert_init("INSERT INTO " .. target .. " VALUES")
   rows(function(format, ...) connection:bulk_insert_next(string.format(format, ...)) end)
   connection:bulk_insert_done()
end

local function items(connection, from)
   local original = tenth_of(from, draws.ITEMS)
   fill(connection, "item", function(insert)
      for item = 1, draws.ITEMS do
         insert("(%d, %d, '%s', %.2f, '%s')", item, from.uniform(1, 10000), from.text(14, 24),
            from.uniform(100, 10000) / 100, data(from, original()))
      end
   end)
end

local function warehouse_and_districts(connection, from, warehouse)
   local ytd = PAID * draws.CUSTOMERS
   fill(connection, "warehouse", function(insert)
      insert("(%d, '%s', %s, %.4f, %d)", warehouse, from.text(6, 10), address(from), from.uniform(0, 2000) / 10000,
         ytd * draws.DISTRICTS)
   end)
   fill(connection, "district", function(insert)
      for district = 1, draws.DISTRICTS do
         insert("(%d, %d, '%s', %s, %.4f, %d, %d)", warehouse, district, from.text(6, 10), address(from),
            from.uniform(0, 2000) / 10000, ytd, draws.CUSTOMERS + 1)
      end
   end)
end

local function stock(connection, from, warehouse)
   local original, pieces = tenth_of(from, draws.ITEMS), {}
   fill(connection, "stock", function(insert)
      for item = 1, draws.ITEMS do
         for district = 1, 10 do pieces[district] = from.text(24, 24) end
         insert("(%d, %d, %d, '%s', 0, 0, 0, '%s')", warehouse, item, from.uniform(10, 100),
            table.concat(pieces, "', '"), data(from, original()))
      end
   end)
end

-- The first 1,000 customers of a district have all last names in turn; others one that is drawn.
local function last_name(from, customer)
   if customer <= draws.LAST_NAMES then return draws.last_name(customer - 1) end
   return draws.last(from.uniform, draws.C_LAST_LOAD)
end

local function customers(connection, from, warehouse, district)
   local bad_credit = tenth_of(from, draws.CUSTOMERS)
   fill(connection, "customer", function(insert)
      for customer = 1, draws.CUSTOMERS do
         insert("(%d, %d, %d, '%s', 'OE', '%s', %s, '%08d%08d', '%s', '%s', 50000, %.4f, -%d, %d, 1, 0, '%s')",
            warehouse, district, customer, from.text(8, 16), last_name(from, customer), address(from),
            from.uniform(0, 99999999), from.uniform(0, 99999999), LOADED_AT, bad_credit() and "BC" or "GC",
            from.uniform(0, 5000) / 10000, PAID, PAID, from.text(300, 500))
      end
   end)
   local columns = "history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
   fill(connection, columns, function(insert)
      for customer = 1, draws.CUSTOMERS do
         insert("(%d, %d, %d, %d, %d, '%s', %d, '%s')", customer, district, warehouse, district, warehouse,
            LOADED_AT, PAID, from.text(12, 24))
      end
   end)
end

-- One order for each customer, in the order of a random permutation (clause 4.3.3.1); the last 900 are not delivered.
local function orders(connection, from, warehouse, district)
   local customer_of, lines_of = {}, {}
   for order = 1, draws.CUSTOMERS do customer_of[order] = order end
   draws.shuffle(from.uniform, customer_of)
   fill(connection, "orders", function(insert)
      for order = 1, draws.CUSTOMERS do
         lines_of[order] = from.uniform(5, 15)
         local carrier = order <= DELIVERED and from.uniform(1, 10) or "NULL"
         insert("(%d, %d, %d, %d, '%s', %s, %d, 1)", warehouse, district, order, customer_of[order], LOADED_AT,
            carrier, lines_of[order])
      end
   end)
   fill(connection, "order_line", function(insert)
      for order = 1, draws.CUSTOMERS do
         local delivered = order <= DELIVERED
         local time = delivered and "'" .. LOADED_AT .. "'" or "NULL"
         for number = 1, lines_of[order] do
            insert("(%d, %d, %d, %d, %d, %d, %s, 5, %.2f, '%s')", warehouse, district, order, number,
               from.uniform(1, draws.ITEMS), warehouse, time, delivered and 0 or from.uniform(1, 999999) / 100,
               from.text(24, 24))
         end
      end
   end)
   fill(connection, "new_orders", function(insert)
      for order = DELIVERED + 1, draws.CUSTOMERS do insert("(%d, %d, %d)", warehouse, district, order) end
   end)
end

-- Fills the table of items, which all warehouses share.
function loading.items(connection) items(connection, source(sysbench.opt.table_seed)) end

-- Fills one warehouse, with all that belongs to it.
function loading.warehouse(connection, warehouse)
   local from = source(sysbench.opt.table_seed + warehouse)
   warehouse_and_districts(connection, from, warehouse)
   stock(connection, from, warehouse)
   for district = 1, draws.DISTRICTS do
      customers(connection, from, warehouse, district)
      orders(connection, from, warehouse, district)
   end
end

return loading
