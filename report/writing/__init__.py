"""Writing: rendering a page into a file, the data of the series explorer, the swap of whole sites."""
