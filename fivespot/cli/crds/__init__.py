"""``fivespot crds``: CustomResourceDefinitions, and the RBAC of providers, as YAML."""
