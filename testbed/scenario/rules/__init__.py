"""What no single field can say: mistakes that two or more places of a file make together."""
