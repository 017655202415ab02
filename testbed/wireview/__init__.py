"""What a person sees of MRC packets: scapy layers, `mrc-testbed decode`, a dissector for Wireshark."""
