"""A suite for measuring the harness itself: transactions with and without kinds, and one of known length."""

SUITE_FILES = {
    "suite.toml": """\
name = "stub"
title = "what the harness costs"
generator = "sysbench"
script = "stub.lua"
engines = ["postgres"]
seed = 11

[scale]
unit = "row"

[scale.tables]
numbers = { rows = 1000, bytes_per_row = 60 }

[profiles.smoke]
title = "seconds"
seconds = 2
slice_seconds = 1
repetitions = 1
data_to_memory = 0.001
scale = [1, 1]
buffer_to_memory = 0.02
settle_seconds = 0

[[steps]]
name = "plain"
title = "four statements, a plain event"
options = { work = "plain" }

[[steps]]
name = "kinds"
title = "the same statements, counted under a kind"
options = { work = "kinds" }

[[steps]]
name = "wait"
title = "a transaction that takes 5 ms"
options = { work = "wait" }
""",
    "stub.lua": """\
local tidemark = require("tidemark")

local begin, read, write, commit, wait

local function prepare(connection)
   if sysbench.opt.unit > 0 then return end
   connection:query("CREATE TABLE numbers (id INTEGER PRIMARY KEY, n BIGINT NOT NULL)")
   connection:query("INSERT INTO numbers SELECT id, 0 FROM generate_series(1, 1000) id")
end

local function start(connection)
   begin, commit = tidemark.statement(connection, "BEGIN"), tidemark.statement(connection, "COMMIT")
   read = tidemark.statement(connection, "SELECT n FROM numbers WHERE id = ?", {"int"})
   write = tidemark.statement(connection, "UPDATE numbers SET n = n + 1 WHERE id = ?", {"int"})
   wait = tidemark.statement(connection, "SELECT pg_sleep(0.005)")
end

local function four(id)
   begin:execute()
   read:query(id)
   write:execute(id)
   commit:execute()
end

local WORK = {
   plain = function() four(sysbench.rand.uniform(1, 1000)) end,
   kinds = function() tidemark.transaction("four", four, sysbench.rand.uniform(1, 1000)) end,
   wait = function() tidemark.transaction("wait", wait.query, wait) end,
}

tidemark.script {
   options = {work = {"Work", "plain"}},
   kinds = {"four", "wait"},
   prepare = prepare,
   start = start,
   event = function() WORK[sysbench.opt.work]() end,
}
""",
}
