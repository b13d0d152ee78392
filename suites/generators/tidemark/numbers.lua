-- Random numbers that repeat: those of loading, skewed ones, walks that use rows up, and those of counted passes.

local bit = require("bit")
local statements = require("tidemark.statements")

local numbers = {}

-- Uniform integers from 0 to n - 1 by xorshift128: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software
-- 8(14), 2003. It is used for loading, because the numbers are the same on every platform and version of sysbench;
-- sysbench 1.0 seeds its own generator only for `run`.
function numbers.generator(seed)
   local x, y, z, w = bit.tobit(seed), 362436069, 521288629, 88675123
   local function draw(n)
      local t = bit.bxor(x, bit.lshift(x, 11))
      x, y, z = y, z, w
      w = bit.bxor(w, bit.rshift(w, 19), t, bit.rshift(t, 8))
      return (w % 4294967296) % n
   end
   for _ = 1, 64 do draw(2) end -- until sequences of similar seeds have diverged
   return draw
end

-- The low 32 bits of a product, whose exact value a double cannot hold.
local function times(h, factor)
   local high = (bit.band(bit.rshift(h, 16), 0xffff) * factor) % 65536
   return bit.tobit(bit.band(h, 0xffff) * factor + high * 65536)
end

-- A number from 0 to 2^32 - 1 that looks drawn and follows from `number`, for values that both the loader and the client
-- know: the 32-bit finalizer of A. Appleby's MurmurHash3, 2011.
function numbers.hash(number)
   local h = bit.tobit(number)
   h = times(bit.bxor(h, bit.rshift(h, 16)), 0x85ebca6b)
   h = times(bit.bxor(h, bit.rshift(h, 13)), 0xc2b2ae35)
   return bit.bxor(h, bit.rshift(h, 16)) % 4294967296
end

-- Zipf-distributed integers from 1 to n with exponent s, by rejection-inversion: W. Hörmann and G. Derflinger,
-- "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996. The time
-- per number is constant, and small numbers are the most frequent. Debian's sysbench 1.0.20 has no such generator.
function numbers.zipfian(n, s)
   local function integral(x) return (x ^ (1 - s) - 1) / (1 - s) end
   local function inverse(y) return (1 + y * (1 - s)) ^ (1 / (1 - s)) end
   local upper = integral(n + 0.5)
   local lower = integral(1.5) - 1
   local shortcut = 2 - inverse(integral(2.5) - 2 ^ -s)
   return function()
      while true do
         local u = upper + sysbench.rand.uniform_double() * (lower - upper)
         local x = inverse(u)
         local k = math.min(math.max(math.floor(x + 0.5), 1), n)
         if k - x <= shortcut or u >= integral(k + 0.5) - k ^ -s then return k end
      end
   end
end

local function gcd(a, b)
   while b ~= 0 do a, b = b, a % b end
   return a
end

-- What each source of numbers has drawn since a transaction of a counted pass began, and how many of that the current
-- try has used.
local draws = {}

local function repeatable(source)
   local own = {drawn = {}, used = 0}
   draws[#draws + 1] = own
   return function(...)
      own.used = own.used + 1
      if own.drawn[own.used] == nil then own.drawn[own.used] = source(...) end
      return own.drawn[own.used]
   end
end

-- Begins a transaction of a counted pass.
function numbers.begin()
   for _, own in ipairs(draws) do own.drawn, own.used = {}, 0 end
end

-- Begins it again, after the server has rolled it back: it draws the same numbers, so that all versions do the same work.
function numbers.again()
   for _, own in ipairs(draws) do own.used = 0 end
end

-- A walk that visits every id from 1 to n once, in an order that looks random: multiples of a stride near the golden
-- section that is coprime to n. Ids are divided among the threads: each thread takes every threads-th element of the
-- walk, after skipping those of its first `walk_from` transactions. For steps that use rows up, `rows` (1 unless given)
-- in each transaction.
function numbers.walk(n, rows)
   local first, step = sysbench.tid, sysbench.opt.threads
   local stride = math.max(1, math.floor(n * 0.6180339887))
   while gcd(stride, n) ~= 1 do stride = stride + 1 end
   -- Sums are exact in a double; index * stride would not be with several hundred million rows.
   local jump, at = (step * stride) % n, ((first - step) * stride) % n
   for _ = 1, math.floor(sysbench.opt.walk_from * (rows or 1)) do at = (at + jump) % n end
   local function next_id()
      at = (at + jump) % n
      return at + 1
   end
   return sysbench.opt.counted_file ~= "" and repeatable(next_id) or next_id
end

-- Replaces sysbench's random numbers, of one thread, by ours. sysbench 1.0 seeds its generator by random(3), which its
-- threads call in an order that differs from run to run: with one seed it draws one of two sequences.
function numbers.draw_reproducibly(seed)
   local draw = repeatable(numbers.generator(seed))
   local function digit_or_letter(mark)
      if mark == "#" then return string.char(48 + draw(10)) end
      if mark == "@" then return string.char(97 + draw(26)) end
   end
   sysbench.rand.uniform = function(least, most) return least + draw(most - least + 1) end
   sysbench.rand.default = sysbench.rand.uniform
   sysbench.rand.uniform_double = function() return draw(4294967296) / 4294967296 end
   sysbench.rand.string = function(format) return (format:gsub("[#@]", digit_or_letter)) end
   statements.random_string = sysbench.rand.string
end

return numbers
