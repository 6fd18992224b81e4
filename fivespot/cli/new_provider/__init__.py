"""`fivespot new-provider`: the project of a schedule provider, ready to be changed."""
