"""Result tables that Tidemark did not write: spreadsheets, and the tables of mdcallag/mytools."""
