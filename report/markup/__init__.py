"""The parts that pages share: the frame, tables, cells, numbers with units."""
