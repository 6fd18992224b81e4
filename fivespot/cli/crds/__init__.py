"""`fivespot crds`: the definitions of kinds, and the rights of providers, as YAML."""
