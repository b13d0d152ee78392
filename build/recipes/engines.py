"""The registry of the modules with the recipes of each engine."""

from build.engines import EngineRegistry
from build.recipes import mariadb, mysql, postgres
from build.recipes.recipe import RecipeModule
from build.version import Engine

RECIPES: EngineRegistry[RecipeModule] = EngineRegistry(
    "recipes", __name__, {Engine.POSTGRES: postgres, Engine.MYSQL: mysql, Engine.MARIADB: mariadb}
)
