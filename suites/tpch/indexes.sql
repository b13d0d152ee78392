CREATE INDEX orders_custkey ON orders (o_custkey);
CREATE INDEX lineitem_part_supp ON lineitem (l_partkey, l_suppkey);
CREATE INDEX partsupp_suppkey ON partsupp (ps_suppkey);
CREATE INDEX customer_nationkey ON customer (c_nationkey);
CREATE INDEX supplier_nationkey ON supplier (s_nationkey);
CREATE INDEX nation_regionkey ON nation (n_regionkey);
