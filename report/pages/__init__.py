"""One module for each kind of page: values in, elements out."""
