"""What a switch port is, in both worlds: levels, counts, rules and the choice of a next hop. Pure."""
