"""MRC packets for people: scapy layers, `mrc-testbed decode`, a dissector for Wireshark."""
