"""Tests of the store write into each kind of database."""

from tests.history.both_stores import target as target
