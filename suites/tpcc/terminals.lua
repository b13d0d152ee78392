-- The five transactions of TPC-C as an application without stored procedures sends them (clauses 2.4 to 2.8).
--
--   local terminals = require("terminals")
--
-- Rows are locked in one order by all of them: warehouse, district, customer, stock by key. Sums of money are cents in
-- the script and decimals in SQL.

local tidemark = require("tidemark")
local draws = require("draws")

local terminals = {}

local TIME = "CURRENT_TIMESTAMP(6)"

-- name -> statement, with a question mark for each parameter.
local TEXTS = {
   -- new-order
   warehouse_tax = "SELECT w_tax FROM warehouse WHERE w_id = ?",
   district_number = "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
   next_number = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
   discount = "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
   insert_order = "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)"
      .. " VALUES (?, ?, ?, ?, " .. TIME .. ", ?, ?)",
   insert_new_order = "INSERT INTO new_orders (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)",
   item = "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?",
   update_stock = "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1,"
      .. " s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
   insert_line = "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id,"
      .. " ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
   -- payment
   pay_warehouse = "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
   warehouse = "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?",
   pay_district = "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
   district = "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district"
      .. " WHERE d_w_id = ? AND d_id = ?",
   by_name = "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
   payer = "SELECT c_credit, c_balance, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,"
      .. " c_phone, c_since, c_credit_lim, c_discount FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
      .. " FOR UPDATE",
   customer_data = "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
   pay = "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?,"
      .. " c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
   pay_bad_credit = "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?,"
      .. " c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
   insert_history = "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
      .. " VALUES (?, ?, ?, ?, ?, " .. TIME .. ", ?, ?)",
   -- order-status
   balance = "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
   newest_order = "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?"
      .. " ORDER BY o_id DESC LIMIT 1",
   lines = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line"
      .. " WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
   -- delivery
   oldest_new_order = "SELECT no_o_id FROM new_orders WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1"
      .. " FOR UPDATE",
   delete_new_order = "DELETE FROM new_orders WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
   customer_of = "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
   deliver_order = "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
   deliver_lines = "UPDATE order_line SET ol_delivery_d = " .. TIME
      .. " WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
   total = "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
   deliver_customer = "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1"
      .. " WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
   -- stock-level
   newest_number = "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
   low_stock = "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id"
      .. " WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id BETWEEN ? AND ? AND s_quantity < ?",
}

-- One statement for each district of the customer, whose column of dist_info it reads.
local STOCK = "SELECT s_quantity, s_data, s_dist_%02d FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"

local MOST_DATA = 500 -- characters of c_data
local NEWEST_ORDERS = 20 -- that stock-level looks at

local connection
local sql, stock_of = {}, {} -- statements of one thread

function terminals.start(own)
   connection = own
   for name, text in pairs(TEXTS) do sql[name] = tidemark.question(connection, text) end
   for district = 1, draws.DISTRICTS do
      stock_of[district] = tidemark.question(connection, string.format(STOCK, district))
   end
end

local function begin() connection:query("BEGIN") end

local function commit() connection:query("COMMIT") end

local function cents(text) return math.floor(tonumber(text) * 100 + 0.5) end

-- A customer's number, which `input` gives directly or by last name: of n customers with that name, ordered by first
-- name, the one at n/2, rounded up (clause 2.5.2.2).
local function customer_number(input)
   if input.customer then return input.customer end
   local named = sql.by_name:rows(input.customer_warehouse, input.customer_district, input.last)
   local middle = named[math.ceil(#named / 2)] or error("no customer is called " .. input.last, 0)
   return tonumber(middle[1])
end

-- --- new-order

-- What is left of an item after `ordered` are taken: it is stocked up when it would fall below 10 (clause 2.4.2.2).
local function stocked(quantity, ordered)
   if quantity >= ordered + 10 then return quantity - ordered end
   return quantity - ordered + 91
end

-- Books one line. Returns whether there is such an item.
local function order_line(input, order, number)
   local line = input.lines[number]
   local price = sql.item:row(line.item)
   if not price then return false end
   local quantity, _, info = stock_of[input.district]:row(line.warehouse, line.item)
   sql.update_stock:row(stocked(tonumber(quantity), line.quantity), line.quantity,
      line.warehouse == input.warehouse and 0 or 1, line.warehouse, line.item)
   sql.insert_line:row(input.warehouse, input.district, order, number, line.item, line.warehouse, line.quantity,
      line.quantity * cents(price) / 100, info)
   return true
end

local function new_order(input)
   begin()
   sql.warehouse_tax:row(input.warehouse)
   local _, next_number = sql.district_number:row(input.warehouse, input.district)
   local order = tonumber(next_number)
   sql.next_number:row(input.warehouse, input.district)
   sql.discount:row(input.warehouse, input.district, input.customer)
   sql.insert_order:row(input.warehouse, input.district, order, input.customer, #input.lines, input.all_local)
   sql.insert_new_order:row(input.warehouse, input.district, order)
   for number = 1, #input.lines do
      if not order_line(input, order, number) then
         connection:query("ROLLBACK")
         return tidemark.REFUSED
      end
   end
   commit()
end

-- --- payment

local function payment(input)
   local amount = input.amount / 100
   begin()
   sql.pay_warehouse:row(amount, input.warehouse)
   local warehouse = sql.warehouse:row(input.warehouse)
   sql.pay_district:row(amount, input.warehouse, input.district)
   local district = sql.district:row(input.warehouse, input.district)
   local w, d, c = input.customer_warehouse, input.customer_district, customer_number(input)
   if sql.payer:row(w, d, c) == "BC" then
      local data = string.format("%d %d %d %d %d %.2f ", c, d, w, input.district, input.warehouse, amount)
         .. sql.customer_data:row(w, d, c)
      sql.pay_bad_credit:row(amount, amount, data:sub(1, MOST_DATA), w, d, c)
   else
      sql.pay:row(amount, amount, w, d, c)
   end
   sql.insert_history:row(c, d, w, input.district, input.warehouse, amount, warehouse .. "    " .. district)
   commit()
end

-- --- order-status, delivery, stock-level

local function order_status(input)
   local w, d = input.customer_warehouse, input.customer_district
   begin()
   local c = customer_number(input)
   sql.balance:row(w, d, c)
   local order = sql.newest_order:row(w, d, c)
   sql.lines:rows(w, d, tonumber(order))
   commit()
end

-- The oldest new order of a district, locked; nil if there is none. Where two terminals deliver for one warehouse,
-- Postgres finds no row when it has waited for one that the other has deleted, and so is asked again.
local function oldest_new_order(warehouse, district)
   return tonumber(sql.oldest_new_order:row(warehouse, district) or sql.oldest_new_order:row(warehouse, district))
end

local function deliver(w, d, order, carrier)
   sql.delete_new_order:row(w, d, order)
   local customer = tonumber((sql.customer_of:row(w, d, order)))
   sql.deliver_order:row(carrier, w, d, order)
   sql.deliver_lines:row(w, d, order)
   local total = sql.total:row(w, d, order)
   sql.deliver_customer:row(tonumber(total), w, d, customer)
end

local function delivery(input)
   begin()
   for district = 1, draws.DISTRICTS do
      local order = oldest_new_order(input.warehouse, district)
      if order then deliver(input.warehouse, district, order, input.carrier) end
   end
   commit()
end

local function stock_level(input)
   begin()
   local next_number = tonumber((sql.newest_number:row(input.warehouse, input.district)))
   sql.low_stock:row(input.warehouse, input.district, next_number - NEWEST_ORDERS, next_number - 1, input.threshold)
   commit()
end

-- Name of a kind -> function that runs one transaction with an input that `draws` made.
terminals.TRANSACTIONS = {
   ["new-order"] = new_order,
   ["payment"] = payment,
   ["order-status"] = order_status,
   ["delivery"] = delivery,
   ["stock-level"] = stock_level,
}

return terminals
