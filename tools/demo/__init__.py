"""The whole system on this machine, with an account of what happens."""
