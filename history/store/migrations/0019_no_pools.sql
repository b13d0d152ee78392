-- Boxes share no tasks any more: the plan names the boxes of each. What they agreed on says nothing of a result.

DROP TABLE placements;

DROP TABLE pool_boxes;
