"""The public Python API of Contend. Everything else is private."""
