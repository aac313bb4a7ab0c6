"""`edit`: drop, rename, add and recode features."""
