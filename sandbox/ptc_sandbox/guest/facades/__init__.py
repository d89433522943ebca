"""The modules that programs may import: stand-ins with allow-listed members, never the modules themselves."""
