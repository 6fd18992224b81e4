"""Schedule providers: the kit to write one, and the ones that come with fivespot."""
