"""BGP between the switches of a fabric, by the daemons of FRR: one zebra and bgpd a switch, and bfdd where asked."""
