-- Statements of the sysbench scripts: prepared ones, and those whose rows the client reads. tidemark.lua has them as its own.

local ffi = require("ffi")

local statements = {
   random_string = nil, -- replaces sysbench.rand.string in a counted pass
}

-- The longest string, in bytes, that sysbench's driver for Postgres can pass as a parameter. It copies 256 bytes of a
-- longer one, and writes a zero behind where it would have ended: into other memory (pgsql_drv_execute, 1.0.20).
local LONGEST_PARAMETER = 255

local function is_postgres(connection)
   return connection.driver.sname ~= nil and ffi.string(connection.driver.sname) == "pgsql"
end

-- Whether the server may keep statements; not behind a pooler that gives each transaction another of its connections.
local function prepares() return sysbench.opt.db_ps_mode ~= "disable" end

-- --- statements whose rows the client reads

local Question = {}
Question.__index = Question

local questions = 0 -- of this thread

local function literal(value)
   if type(value) ~= "string" then return tostring(value) end
   return "'" .. value:gsub("'", "''") .. "'"
end

local function result_of(self, ...)
   local place, values = 0, {...}
   local text = self.text:gsub("%?", function()
      place = place + 1
      return literal(values[place])
   end)
   return self.connection:query(text)
end

-- Returns the columns of the first row as strings, nil for NULL; nothing if there is no row.
function Question:row(...)
   local result = result_of(self, ...)
   if result ~= nil and result.nrows > 0 then return unpack(result:fetch_row(), 1, result.nfields) end
end

-- Returns all rows, each a table of strings.
function Question:rows(...)
   local result, rows = result_of(self, ...), {}
   if result == nil then return rows end -- a null pointer, which is true
   for place = 1, result.nrows do rows[place] = result:fetch_row() end
   return rows
end

-- A statement, with a question mark for each parameter, whose rows the client reads. sysbench 1.0 cannot read rows of
-- prepared statements: those of Postgres come in binary, those of MySQL not at all. On Postgres the statement is
-- prepared in SQL, so that its plan is kept; MySQL and MariaDB keep no plans. Parameters are numbers or strings.
function statements.question(connection, text)
   if not is_postgres(connection) or not prepares() then
      return setmetatable({connection = connection, text = text}, Question)
   end
   questions = questions + 1
   local place, marks, name = 0, {}, "tidemark_" .. questions
   local prepared = text:gsub("%?", function()
      place = place + 1
      marks[place] = "?"
      return "$" .. place
   end)
   connection:query(string.format("PREPARE %s AS %s", name, prepared))
   local call = place > 0 and string.format("EXECUTE %s (%s)", name, table.concat(marks, ", ")) or "EXECUTE " .. name
   return setmetatable({connection = connection, text = call}, Question)
end

-- --- prepared statements

local Statement = {}
Statement.__index = Statement

-- A string that is an argument as it is.
function statements.text(value) return {value} end

-- Ends the string of a parameter, which may be shorter than the one before. Where nothing is prepared sysbench reads up
-- to a zero, and not as many bytes as there are.
local function set_text(parameter, value)
   parameter:set(value)
   parameter.buffer[math.min(#value, parameter.max_len - 1)] = 0
end

-- Sets the parameters and executes the statement. A string argument is a format of sysbench.rand.string.
function Statement:execute(...)
   for i = 1, select("#", ...) do
      local value = select(i, ...)
      if type(value) == "table" then
         set_text(self.parameters[i], value[1])
      elseif type(value) == "string" and statements.random_string then
         set_text(self.parameters[i], statements.random_string(value))
      elseif type(value) == "string" then
         self.parameters[i]:set_rand_str(value)
      else
         self.parameters[i]:set(value)
      end
   end
   return self.prepared:execute()
end

-- Does the same for statements that return rows, whose results must be freed explicitly.
function Statement:query(...)
   local result = self:execute(...)
   if result then result:free() end
end

-- A statement with a parameter that is too long for sysbench's prepared ones.
local LongStatement = {}
LongStatement.__index = LongStatement

function LongStatement:execute(...)
   local values = {...}
   for i, value in ipairs(values) do
      if type(value) == "table" then values[i] = value[1] end
   end
   result_of(self.question, unpack(values))
end

local function longest_of(types)
   local longest = 0
   for _, kind in ipairs(types) do
      if kind ~= "int" then longest = math.max(longest, kind) end
   end
   return longest
end

-- Prepares `text`. `types` has one entry per parameter: "int", or the most bytes of a string. On Postgres a statement
-- with a string of more than 255 is prepared in SQL; it can only be executed, and takes no formats.
function statements.statement(connection, text, types)
   types = types or {}
   if is_postgres(connection) and longest_of(types) > LONGEST_PARAMETER then
      return setmetatable({question = statements.question(connection, text)}, LongStatement)
   end
   local prepared, parameters = connection:prepare(text), {}
   for i, kind in ipairs(types) do
      if kind == "int" then
         parameters[i] = prepared:bind_create(sysbench.sql.type.INT)
      else
         parameters[i] = prepared:bind_create(sysbench.sql.type.CHAR, kind + 1)
      end
   end
   if #parameters > 0 then prepared:bind_param(unpack(parameters)) end
   return setmetatable({prepared = prepared, parameters = parameters}, Statement)
end

return statements
