INSERT INTO orders
SELECT o_orderkey + 8, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk,
       o_shippriority, o_comment
FROM orders
WHERE o_orderkey = $key;
INSERT INTO lineitem
SELECT l_orderkey + 8, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax,
       l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment
FROM lineitem
WHERE l_orderkey = $key;
