"""The choices of a variant as words of CMake, with which MySQL and MariaDB are configured alike."""

from build.recipes.choices import BuildChoices


def configure_words(choices: BuildChoices, flags: str) -> tuple[str, ...]:
    """Return the words that CMake takes for the choices of a variant; later ones replace earlier ones.

    `flags` are the recipe's own compiler flags, after which those of the variant come. The C++ compiler is
    the one that belongs to the C compiler: clang++-16 to clang-16.
    """
    words: list[str] = []
    if choices.compiler:
        words.append(f"-DCMAKE_CXX_COMPILER={_cxx_of(choices.compiler)}")
    if choices.flags:
        compiled = f"{flags} {choices.flags}"
        words += [f"-DCMAKE_{language}_FLAGS_RELWITHDEBINFO={compiled}" for language in ("C", "CXX")]
    if choices.linker_flags:
        kinds = ("EXE", "SHARED", "MODULE")
        words += [f"-DCMAKE_{kind}_LINKER_FLAGS={choices.linker_flags}" for kind in kinds]
    return (*words, *choices.options)


def _cxx_of(compiler: str) -> str:
    folder, slash, name = compiler.rpartition("/")
    for c, cxx in (("clang", "clang++"), ("gcc", "g++")):
        if name.startswith(c):
            return folder + slash + cxx + name.removeprefix(c)
    return compiler
