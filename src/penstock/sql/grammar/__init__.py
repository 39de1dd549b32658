"""The grammar of statements, one module a family; `statement` is the entry."""
