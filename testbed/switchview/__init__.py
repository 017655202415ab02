"""What a switch has counted, under the names that operators know from SONiC, Cumulus and SAI. Pure."""
