DELETE FROM lineitem WHERE l_orderkey = $key;
DELETE FROM orders WHERE o_orderkey = $key;
