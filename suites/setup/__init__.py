"""Loading the files of a suite with the client program of the server's engine."""
