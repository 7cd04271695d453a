"""The same debate in Contend, in bare clients and in other frameworks."""
