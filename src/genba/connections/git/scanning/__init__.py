"""Which commits and branches are about which issue."""
