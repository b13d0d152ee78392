"""The report site and the pages to mail: values from the history in, HTML and SVG out."""
